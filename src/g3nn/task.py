"""A node-labelling task: features, edges, some labels, and which nodes are for training, validation and test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from g3nn.errors import G3NNWarning, Problems

if TYPE_CHECKING:
    from torch_geometric.data import Data

Matrix = Any
"""A scipy CSR array or a dense numpy array."""

UNKNOWN = -1
"""The label of a node whose class nobody has told us."""


@dataclass(frozen=True, eq=False)
class NodeTask:
    """n nodes with d features, E edges, K classes and a split. Made by `NodeTask.build`, which checks everything.

    features: (n, d) float32, a scipy CSR array or a dense numpy array.
    edges:    (2, E) int64. Undirected: each pair once, with i < j. Directed: (source, target). No self-loops.
    labels:   (n,) int64 in 0..K-1, or -1 where unknown.
    train, val, test: sorted node indices. Only `train` is the observed part L; every other node belongs to U.
    """

    features: Matrix
    edges: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    num_classes: int
    directed: bool = False
    name: str = "custom"
    setting: str = "standard"

    @property
    def num_nodes(self) -> int:
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_edges(self) -> int:
        return int(self.edges.shape[1])

    @property
    def unlabelled(self) -> np.ndarray:
        """U: every node whose label training may not see."""
        mask = np.ones(self.num_nodes, dtype=bool)
        mask[self.train] = False
        return np.flatnonzero(mask)

    def __repr__(self) -> str:
        return (
            f"NodeTask({self.name!r}, {self.setting!r}: {self.num_nodes} nodes, {self.num_edges} edges, "
            f"{self.num_features} features, {self.num_classes} classes, "
            f"{len(self.train)}/{len(self.val)}/{len(self.test)} train/val/test)"
        )

    @classmethod
    def build(
        cls,
        features: Any,
        edges: Any,
        labels: Any,
        train: Any,
        val: Any,
        test: Any = (),
        *,
        num_classes: int | None = None,
        directed: bool = False,
        name: str = "custom",
        setting: str = "standard",
    ) -> NodeTask:
        """Check and normalise raw parts. Masks or index lists, dense or sparse features, edges in any order.

        Raises one `InputError` that lists every problem.
        """
        problems = Problems()
        matrix = _features(features, problems)
        n = int(matrix.shape[0])
        pairs = _edges(edges, n, directed, problems)
        y = _to_numpy(labels)
        if y.shape != (n,):
            problems.add("labels", f"shape {y.shape}", f"one label per node, shape ({n},)")
            problems.raise_if_any()
        if not (np.issubdtype(y.dtype, np.integer) or np.all(y == np.round(y))):
            problems.add("labels", f"values of type {y.dtype}", "whole numbers 0..K-1, or -1 for unknown")
            problems.raise_if_any()
        y = y.astype(np.int64)
        split = {
            key: _indices(key, value, n, problems) for key, value in (("train", train), ("val", val), ("test", test))
        }
        K = int(num_classes) if num_classes is not None else int(y.max(initial=-1)) + 1
        _check_labels(y, K, split, n, problems)
        problems.raise_if_any()
        return cls(matrix, pairs, y, split["train"], split["val"], split["test"], K, directed, name, setting)

    @classmethod
    def from_pyg(cls, data: Data, *, name: str = "custom", setting: str = "standard") -> NodeTask:
        """From a PyG `Data` with x, edge_index, y, train_mask, val_mask and (optionally) test_mask."""
        problems = Problems()
        for key in ("x", "edge_index", "y", "train_mask", "val_mask"):
            if data.get(key) is None:
                problems.add(f"data.{key}", "nothing", "a tensor", f"Set data.{key} before converting.")
        problems.raise_if_any()
        test = data.get("test_mask")
        return cls.build(
            data.x,
            data.edge_index,
            data.y,
            data.train_mask,
            data.val_mask,
            () if test is None else test,
            directed=data.is_directed(),
            name=name,
            setting=setting,
        )

    def to_pyg(self) -> Data:
        """A PyG `Data` with dense x; an undirected edge becomes two arcs, as PyG expects."""
        import torch
        from torch_geometric.data import Data

        x = self.features.toarray() if sp.issparse(self.features) else self.features
        arcs = self.edges if self.directed else np.concatenate([self.edges, self.edges[::-1]], axis=1)
        masks = {}
        for key in ("train", "val", "test"):
            mask = torch.zeros(self.num_nodes, dtype=torch.bool)
            mask[torch.from_numpy(getattr(self, key))] = True
            masks[f"{key}_mask"] = mask
        y = torch.from_numpy(self.labels)
        return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(arcs.copy()), y=y, **masks)

    def with_edges(self, edges: np.ndarray, *, setting: str | None = None) -> NodeTask:
        """The same task on another set of edges."""
        return replace(self, edges=edges, setting=setting or self.setting)

    def with_split(
        self, train: np.ndarray, val: np.ndarray, test: np.ndarray, *, setting: str | None = None
    ) -> NodeTask:
        """The same graph with other training, validation and test nodes."""
        return NodeTask.build(
            self.features,
            self.edges,
            self.labels,
            train,
            val,
            test,
            num_classes=self.num_classes,
            directed=self.directed,
            name=self.name,
            setting=setting or self.setting,
        )


def _to_numpy(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def _features(features: Any, problems: Problems) -> Matrix:
    """(n, d) float32, sparse if it came sparse. Raises at once when there is no matrix to go on with."""
    if getattr(features, "is_sparse", False) or str(getattr(features, "layout", "")) == "torch.sparse_csr":
        coo = features.to_sparse_coo().coalesce().cpu()
        rows, cols = coo.indices().numpy()
        features = sp.csr_array((coo.values().numpy(), (rows, cols)), shape=tuple(coo.shape))
    matrix: Matrix = sp.csr_array(features) if sp.issparse(features) else _to_numpy(features)
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] == 0:
        problems.add("features", f"shape {matrix.shape}", "a matrix (n, d) with at least one node and one feature")
        problems.raise_if_any()
    matrix = matrix.astype(np.float32)
    stored = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(stored).all():
        bad = int((~np.isfinite(stored)).sum())
        problems.add("features", f"{bad} NaN or infinite values", "finite numbers", "Fill or drop them first.")
    if sp.issparse(matrix):
        matrix.sum_duplicates()
        matrix.sort_indices()
    return matrix


def _edges(edges: Any, n: int, directed: bool, problems: Problems) -> np.ndarray:
    """(2, E) int64, each pair once, no self-loop. What was merged or dropped is said in one warning."""
    pairs = _to_numpy(edges)
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
        example = int(pairs[outside][0])
        problems.add(
            "edges", f"{int(outside.sum())} ends outside the graph, e.g. {example}", f"node numbers 0..{n - 1}"
        )
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
            stacklevel=4,
        )
    return np.stack([arcs // n, arcs % n])


def distinct(codes: np.ndarray) -> np.ndarray:
    """Sorted, each once: numpy.unique, but for its hash table, which is far slower than sorting at 10^7 codes."""
    codes = np.sort(codes)
    first = np.ones(codes.size, dtype=bool)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first]


def _indices(key: str, value: Any, n: int, problems: Problems) -> np.ndarray:
    """A boolean mask or a list of node numbers, as sorted unique numbers."""
    raw = _to_numpy(value)
    if raw.dtype == bool or (raw.dtype == np.uint8 and raw.shape == (n,)):
        if raw.shape != (n,):
            problems.add(key, f"a mask of shape {raw.shape}", f"a mask of shape ({n},) or a list of node numbers")
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(raw)
    if raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    if raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        problems.add(key, f"shape {raw.shape} of type {raw.dtype}", "a boolean mask or a list of node numbers")
        return np.zeros(0, dtype=np.int64)
    if raw.min() < 0 or raw.max() >= n:
        problems.add(key, f"node numbers {raw.min()}..{raw.max()}", f"node numbers 0..{n - 1}")
        return np.zeros(0, dtype=np.int64)
    return np.unique(raw).astype(np.int64)


def _check_labels(y: np.ndarray, K: int, split: dict[str, np.ndarray], n: int, problems: Problems) -> None:
    if K < 2:
        problems.add("labels", f"{max(K, 0)} classes", "at least 2 classes")
    wrong = (y < UNKNOWN) | (y >= K)
    if wrong.any():
        problems.add(
            "labels", f"{int(wrong.sum())} values outside the classes, e.g. {int(y[wrong][0])}", f"-1..{K - 1}"
        )
    for key in ("train", "val", "test"):
        unknown = int((y[split[key]] == UNKNOWN).sum())
        if unknown:
            problems.add(key, f"{unknown} nodes without a label", "labelled nodes only", f"Take them out of {key}.")
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        shared = np.intersect1d(split[first], split[second]).size
        if shared:
            problems.add(f"{first} and {second}", f"{shared} nodes in both", "disjoint sets of nodes")
    if split["train"].size == 0:
        problems.add("train", "no labelled node", "at least one labelled node of each class")
    elif not wrong.any():
        missing = np.setdiff1d(np.arange(K), y[split["train"]])
        if missing.size:
            named = ", ".join(map(str, missing[:5]))
            advice = "Label a node of each class, or number the classes without gaps."
            problems.add("train", f"no training label of class {named}", "at least one of each class", advice)
    if split["train"].size == n:
        problems.add("train", f"all {n} nodes", "at least one unlabelled node", "There is nothing left to predict.")
    if split["val"].size == 0:
        problems.add(
            "val", "no validation node", "at least one labelled node outside train", "Early stopping needs it."
        )
