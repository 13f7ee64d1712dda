"""Checks of what is asked of an audit. Each records its problems and returns something to go on with."""

from __future__ import annotations

from typing import Any

import numpy as np

from g3nn.errors import Problems
from g3nn.parse import to_numpy
from g3nn.task import NodeTask

_LEAST_EDGES = 3
"""One to learn from, one to tell when to stop, and one to judge."""

_ROUNDING = 1e-3


def check_graph(task: NodeTask, problems: Problems) -> None:
    n = task.num_nodes
    pairs = n * (n - 1) if task.directed else n * (n - 1) // 2
    if task.num_edges < _LEAST_EDGES:
        given = f"a graph with {task.num_edges or 'no'} edge{'' if task.num_edges == 1 else 's'}"
        advice = "There is too little to learn from what an edge looks like."
        problems.add("edges", given, f"at least {_LEAST_EDGES} edges to audit", advice)
    elif task.num_edges == pairs:
        problems.add("edges", "a graph where every pair is linked", "at least one pair without an edge")


def checked_beliefs(q: Any, task: NodeTask, problems: Problems) -> np.ndarray:
    """(n, K) in double precision, rows that sum to one."""
    beliefs, shape = to_numpy(q), (task.num_nodes, task.num_classes)
    if beliefs.shape != shape:
        problems.add("q", f"shape {beliefs.shape}", f"a probability for each node and class, shape {shape}")
    elif beliefs.dtype.kind not in "biuf" or not np.isfinite(beliefs).all():
        problems.add("q", "values that are not finite numbers", "probabilities")
    elif (beliefs < 0).any() or (abs(beliefs.sum(1) - 1) > _ROUNDING).any():
        problems.add("q", "negative values, or rows that do not sum to 1", "probabilities")
    else:
        return beliefs.astype(np.float64) / beliefs.sum(1, keepdims=True, dtype=np.float64)
    return np.zeros(shape)


def checked_pairs(pairs: Any, n: int, problems: Problems) -> np.ndarray:
    """(2, P) int64."""
    given = to_numpy(pairs)
    if given.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if given.ndim != 2 or given.shape[0] != 2:
        advice = "Transpose it: pairs.T." if given.ndim == 2 and given.shape[1] == 2 else ""
        problems.add("pairs", f"shape {given.shape}", "shape (2, P)", advice)
    elif given.dtype.kind not in "iu":
        problems.add("pairs", f"values of type {given.dtype}", "node numbers (integers)")
    elif given.min() < 0 or given.max() >= n:
        problems.add("pairs", f"node numbers {given.min()}..{given.max()}", f"node numbers 0..{n - 1}")
    elif (given[0] == given[1]).any():
        problems.add("pairs", f"{int((given[0] == given[1]).sum())} pairs of a node with itself", "two different nodes")
    else:
        return given.astype(np.int64)
    return np.zeros((2, 0), dtype=np.int64)


def checked_count(count: Any, problems: Problems) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        problems.add("count", repr(count), "a whole number of at least 0")
        return 0
    return int(count)
