"""Nodes of one graph as something that scikit-learn can cut into folds."""

from __future__ import annotations

from typing import Any

import numpy as np

from g3nn.base.errors import Problems


class Nodes:
    """Some nodes of a graph, all of them at first; indexing keeps the whole graph and remembers which are meant.

    So `cross_val_score(G3NNClassifier(), Nodes(X, edges), y)` works: each fit sees the whole graph and the labels of
    its own fold alone, and each prediction answers for the nodes of the other fold.

    X, edges, weights: as `G3NNClassifier.fit` takes them. index: (m,) the numbers of the nodes that are meant.
    """

    def __init__(self, X: Any, edges: Any = None, *, directed: bool = False, weights: Any = None) -> None:
        self.X, self.edges, self.directed, self.weights = X, edges, directed, weights
        self.num_nodes = _count(X)
        self.index = np.arange(self.num_nodes)

    @property
    def shape(self) -> tuple[int]:
        """(m,): scikit-learn takes what has a shape for an array, and cuts it into folds as one."""
        return (len(self.index),)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, key: Any) -> Nodes:
        """Numbers, a mask or a slice, counted among the nodes that are meant here."""
        if isinstance(key, tuple):  # scikit-learn asks for [rows, ...]
            key = key[0]
        chosen = Nodes(self.X, self.edges, directed=self.directed, weights=self.weights)
        chosen.index = np.atleast_1d(self.index[key])
        return chosen

    def __repr__(self) -> str:
        return f"Nodes({len(self)} of {self.num_nodes})"


def _count(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is None and hasattr(X, "__len__"):
        return len(X)
    if not shape:
        problems = Problems()
        problems.add("X", type(X).__name__, "a matrix or data frame with one row for each node")
        problems.raise_if_any()
    assert shape is not None
    return int(shape[0])
