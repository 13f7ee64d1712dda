"""Pairs of nodes for the graph term of a batch: edges and non-edges, drawn uniformly from those of the whole graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.task import NodeTask
from g3nn.model.likelihoods import Pairs
from g3nn.model.pairs import MISSING
from g3nn.model.replicas import Noise
from g3nn.training.batches.rows import GraphRows


@dataclass(frozen=True, eq=False)
class BatchPairs:
    """What the objective asks of a `PairSource`, answered with pairs that were drawn beforehand."""

    edges: Pairs
    non_edges: Pairs
    num_edges: int
    num_non_edges: int

    def observed(self, noise: Noise, count: int) -> tuple[Pairs, float]:
        return self.edges, self.num_edges / max(self.edges.i.numel(), 1)

    def absent(self, noise: Noise, count: int, how: str) -> tuple[Pairs, float]:
        return self.non_edges, self.num_non_edges / max(self.non_edges.i.numel(), 1)


class PairDraws:
    """Draws edges and non-edges of a task by their nodes.

    isolated_nodes: if "missing", pairs with an isolated node do not count as non-edges.
    """

    def __init__(self, task: NodeTask, rows: GraphRows, isolated_nodes: str) -> None:
        device = rows.rowptr.device
        self._edges = torch.from_numpy(task.edges).to(device)
        self._weights = None if task.weights is None else torch.from_numpy(task.weights).to(device)
        self._taken = GraphRows.of_arcs(task.edges, task.num_nodes).to(device) if task.directed else rows
        alone = task.isolated if isolated_nodes == MISSING else np.zeros(0, dtype=bool)
        self._nodes = torch.from_numpy(np.flatnonzero(~alone)).to(device) if alone.any() else None
        self._size = task.num_nodes if self._nodes is None else self._nodes.numel()
        self._ordered = self._size * (self._size - 1)
        free = self._ordered - (1 if task.directed else 2) * task.num_edges
        self.num_edges, self.num_non_edges = task.num_edges, free if task.directed else free // 2
        self._free = free

    def edges(self, noise: Noise, count: int) -> tuple[Tensor, Tensor | None]:
        """(2, count) nodes, and the weights of these edges."""
        drawn = noise.integers(self.num_edges, count)[0].to(self._edges.device)
        return self._edges[:, drawn], None if self._weights is None else self._weights[drawn]

    def non_edges(self, noise: Noise, count: int, how: str) -> tuple[Tensor, Tensor | None]:
        """(2, count) nodes of pairs, and their weights: a pair that is an edge counts as none, the others for it too.
        how: "uniform" takes every pair as a non-edge."""
        number = noise.integers(self._ordered, count)[0].to(self._edges.device)
        i, j = number // (self._size - 1), number % (self._size - 1)
        j = j + (j >= i)
        if self._nodes is not None:
            i, j = self._nodes[i], self._nodes[j]
        if how == "uniform":
            return torch.stack([i, j]), None
        return torch.stack([i, j]), ~self._taken.contain(i, j) * (self._ordered / max(self._free, 1))
