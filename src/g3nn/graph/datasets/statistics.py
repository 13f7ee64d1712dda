"""Sizes of a dataset."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from g3nn.graph.task import NodeTask

_BLOCK = 4096
"""Rows of the two-hop matrix computed at once: for a large graph the whole matrix does not fit in memory."""


def statistics(task: NodeTask) -> dict[str, float]:
    """The sizes of a task with the edges it has, whose direction is ignored; mean_two_hop is the mean number of other
    nodes within two hops of a node."""
    return {
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "classes": task.num_classes,
        "features": task.num_features,
        "mean_two_hop": mean_two_hop(task.edges, task.num_nodes),
        **{part: len(getattr(task, part)) for part in ("train", "val", "test")},
    }


def mean_two_hop(edges: np.ndarray, n: int) -> float:
    """nnz((A + I)^2) / n - 1, with A the (n, n) adjacency matrix: pairs that a walk of at most two steps joins."""
    i, j, own = edges[0], edges[1], np.arange(n)
    rows, columns = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    reach = sp.csr_array((np.ones(rows.size, dtype=np.int32), (rows, columns)), shape=(n, n))
    within = sum(int((reach[start : start + _BLOCK] @ reach).nnz) for start in range(0, n, _BLOCK))
    return within / n - 1
