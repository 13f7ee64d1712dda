"""From what a caller passes in to checked arrays: features, edges, labels, and the nodes of a split.

Each function records what is wrong in a `Problems` list and returns None where it cannot go on.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.errors import G3NNWarning, Problems

Matrix = Any
"""A scipy CSR array or a dense numpy array."""

UNKNOWN = -1
"""The label of a node whose class nobody has told us."""

_SPLIT = "a boolean mask or a list of node numbers"


def to_numpy(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def feature_matrix(features: Any, problems: Problems) -> Matrix:
    """(n, d) float32, sparse if it came sparse. Raises at once when there is no matrix to go on with."""
    if getattr(features, "is_sparse", False) or str(getattr(features, "layout", "")) == "torch.sparse_csr":
        coo = features.to_sparse_coo().coalesce().cpu()
        rows, cols = coo.indices().numpy()
        features = sp.csr_array((coo.values().numpy(), (rows, cols)), shape=tuple(coo.shape))
    matrix: Matrix = sp.csr_array(features) if sp.issparse(features) else to_numpy(features)
    if matrix.dtype.kind not in "biuf":
        problems.add("features", f"values of type {matrix.dtype}", "numbers")
        problems.raise_if_any()
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] == 0:
        problems.add("features", f"shape {matrix.shape}", "a matrix (n, d) with at least one node and one feature")
        problems.raise_if_any()
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    stored = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(stored).all():
        bad = int((~np.isfinite(stored)).sum())
        problems.add("features", f"{bad} NaN or infinite values", "finite numbers", "Fill or drop them first.")
    if sp.issparse(matrix):
        matrix.sum_duplicates()
        matrix.sort_indices()
    return matrix


def node_labels(labels: Any, n: int, problems: Problems) -> np.ndarray:
    """(n,) int64. Raises at once when there are no labels to go on with."""
    y = to_numpy(labels)
    if y.shape != (n,):
        problems.add("labels", f"shape {y.shape}", f"one label per node, shape ({n},)")
    elif y.dtype.kind not in "biuf" or not np.isfinite(y).all() or not (y == np.round(y)).all():
        problems.add("labels", f"values of type {y.dtype}", "whole numbers 0..K-1, or -1 for unknown")
    else:
        return y.astype(np.int64)
    problems.raise_if_any()
    raise AssertionError("unreachable: a problem was added above")


def edge_list(edges: Any, n: int, directed: bool, problems: Problems) -> np.ndarray:
    """(2, E) int64, each pair once, no self-loop. What was merged or dropped is said in one warning."""
    pairs = to_numpy(edges)
    if pairs.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        advice = "Transpose it: edges.T." if pairs.ndim == 2 and pairs.shape[1] == 2 else ""
        problems.add("edges", f"shape {pairs.shape}", "shape (2, E)", advice)
        return np.zeros((2, 0), dtype=np.int64)
    if not np.issubdtype(pairs.dtype, np.integer):
        problems.add("edges", f"values of type {pairs.dtype}", "node numbers (integers)")
        return np.zeros((2, 0), dtype=np.int64)
    pairs = pairs.astype(np.int64)
    outside = (pairs < 0) | (pairs >= n)
    if outside.any():
        found = f"{int(outside.sum())} ends outside the graph, e.g. {int(pairs[outside][0])}"
        problems.add("edges", found, f"node numbers 0..{n - 1}")
        return np.zeros((2, 0), dtype=np.int64)
    loops = int((pairs[0] == pairs[1]).sum())
    pairs = pairs[:, pairs[0] != pairs[1]]
    arcs = distinct(pairs[0] * n + pairs[1])
    repeated = pairs.shape[1] - arcs.size
    if not directed:
        i, j = arcs // n, arcs % n
        # Both arcs of an undirected edge are one edge stored twice, the usual convention: no reason to warn.
        arcs = distinct(np.minimum(i, j) * n + np.maximum(i, j))
    if loops or repeated:
        warnings.warn(
            f"edges: left out {loops} self-loops and merged {repeated} duplicates; {arcs.size} edges remain",
            G3NNWarning,
            stacklevel=3,
        )
    return np.stack([arcs // n, arcs % n])


def distinct(codes: np.ndarray) -> np.ndarray:
    """Sorted, each once: numpy.unique, but for its hash table, which is far slower than sorting at 10^7 codes."""
    codes = np.sort(codes)
    first = np.ones(codes.size, dtype=bool)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first]


def node_indices(key: str, value: Any, n: int, problems: Problems) -> np.ndarray | None:
    """A boolean mask or a list of node numbers, as sorted unique numbers."""
    raw = to_numpy(value)
    if raw.dtype == bool or (raw.dtype == np.uint8 and raw.shape == (n,)):
        if raw.shape == (n,):
            return np.flatnonzero(raw)
        problems.add(key, f"a mask of shape {raw.shape}", f"a mask of shape ({n},) or a list of node numbers")
    elif raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    elif raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        problems.add(key, f"shape {raw.shape} of type {raw.dtype}", _SPLIT)
    elif raw.min() < 0 or raw.max() >= n:
        problems.add(key, f"node numbers {raw.min()}..{raw.max()}", f"node numbers 0..{n - 1}")
    else:
        return np.unique(raw).astype(np.int64)
    return None


def check_classes(y: np.ndarray, K: int, problems: Problems) -> bool:
    """Whether every label is unknown or one of K >= 2 classes."""
    if K < 2:
        problems.add("labels", f"{max(K, 0)} classes", "at least 2 classes")
    wrong = (y < UNKNOWN) | (y >= K)
    if wrong.any():
        found = f"{int(wrong.sum())} values outside the classes, e.g. {int(y[wrong][0])}"
        problems.add("labels", found, f"-1..{K - 1}")
    return not wrong.any()


def check_split(y: np.ndarray, K: int, split: dict[str, np.ndarray | None], problems: Problems) -> None:
    """The parts of a split that could be read must hold labelled nodes, be disjoint, and leave something to do.

    K is 0 where the labels are wrong, and nothing can be said about which classes have training labels.
    """
    known = check_parts(y == UNKNOWN, split, problems)
    if "train" in known:
        _check_train(y, K, known["train"], problems)
    check_validation(known, problems)


def check_parts(unknown: np.ndarray, split: dict[str, np.ndarray | None], problems: Problems) -> dict[str, np.ndarray]:
    """The parts of a split that could be read, checked: labelled nodes, in one part only. unknown: (n,) booleans."""
    known = {key: nodes for key, nodes in split.items() if nodes is not None}
    for key, nodes in known.items():
        missing = int(unknown[nodes].sum())
        if missing:
            problems.add(key, f"{missing} nodes without a label", "labelled nodes only", f"Take them out of {key}.")
    for first, second in itertools.combinations(known, 2):
        shared = np.intersect1d(known[first], known[second]).size
        if shared:
            problems.add(f"{first} and {second}", f"{shared} nodes in both", "disjoint sets of nodes")
    return known


def check_validation(known: dict[str, np.ndarray], problems: Problems) -> None:
    if "val" in known and known["val"].size == 0:
        advice = "Early stopping needs it."
        problems.add("val", "no validation node", "at least one labelled node outside train", advice)


def _check_train(y: np.ndarray, K: int, train: np.ndarray, problems: Problems) -> None:
    missing = np.setdiff1d(np.arange(K), y[train])
    if train.size == 0:
        problems.add("train", "no labelled node", "at least one labelled node of each class")
    elif missing.size:
        named = ", ".join(map(str, missing[:5]))
        advice = "Label a node of each class, or number the classes without gaps."
        problems.add("train", f"no training label of class {named}", "at least one of each class", advice)
    if train.size == y.size:
        problems.add("train", f"all {y.size} nodes", "at least one unlabelled node", "Nothing is left to predict.")
