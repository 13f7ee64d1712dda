"""What scikit-learn learned, as plain arrays: they can be saved, and read without running any code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from g3nn.base.parse import Matrix

_CHUNK = 2**22
"""Values of a feature matrix that are made dense at a time."""

_LARGEST = 700.0
"""The exponential of more overflows."""


def _of_two(scores: np.ndarray) -> np.ndarray:
    second = expit(scores)
    return np.concatenate([1 - second, second], axis=1)


_INVERSE_LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda scores: scores,
    "log": lambda scores: np.exp(np.minimum(scores, _LARGEST)),
    "logit": _of_two,
    "softmax": lambda scores: softmax(scores, axis=1),
}
"""From scores (n, w) to means (n, 1), to the probabilities of two classes (n, 2), or to those of several (n, w)."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Means g(x W + b). coef: W (d, w). intercept: b (w,). link: the name of the inverse of g."""

    coef: np.ndarray
    intercept: np.ndarray
    link: str

    @classmethod
    def constant(cls, d: int, values: np.ndarray) -> Linear:
        """The same for all rows."""
        return cls(np.zeros((d, len(values))), values, "identity")

    def predict(self, X: Matrix) -> np.ndarray:
        """(n, C) probabilities or (n, 1) means of the rows of X (n, d)."""
        return _INVERSE_LINKS[self.link](_by_rows(X, len(self.coef), lambda rows: rows @ self.coef + self.intercept))

    def standardised(self, mean: np.ndarray, scale: np.ndarray) -> Linear:
        """The model whose features are (x - mean) / scale of this one's."""
        coef = self.coef / scale[:, None]
        return replace(self, coef=coef, intercept=self.intercept - mean @ coef)

    def within(self, columns: np.ndarray, d: int) -> Linear:
        """The model for matrices with d columns, of which this one knows some."""
        coef = np.zeros((d, self.coef.shape[1]))
        coef[columns] = self.coef
        return replace(self, coef=coef)


@dataclass(frozen=True, eq=False)
class Trees:
    """Sums of decision trees: tree t adds to score t % w.

    columns: those of the features that trees look at. The arrays from `feature` to `value` have an entry for each node
    of all trees, one tree after the other. feature: a place in `columns`, -1 in a leaf. threshold: rows up to it go
    `left`, others `right`, and those without a value left where `missing_left`. starts: (T,), the roots. baseline:
    (w,), what the trees add to.
    """

    columns: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray
    starts: np.ndarray
    baseline: np.ndarray
    link: str

    def __post_init__(self) -> None:
        """Who walks through the trees does not look where it steps, and a file may hold anything: every step has to
        lead forward to another node."""
        size, inner = len(self.feature), np.flatnonzero(self.feature >= 0)
        nodes = (self.threshold, self.left, self.right, self.missing_left, self.value)
        sound = all(part.shape == (size,) for part in nodes) and self.baseline.ndim == 1 and len(self.baseline) > 0
        sound = sound and bool((self.feature < len(self.columns)).all())
        sound = sound and bool(((self.starts >= 0) & (self.starts < size)).all())
        if not sound or any(((side[inner] <= inner) | (side[inner] >= size)).any() for side in (self.left, self.right)):
            raise ValueError("nodes that are no trees")

    @classmethod
    def of(cls, trees: list[np.ndarray], baseline: np.ndarray, link: str) -> Trees:
        """trees: the records of the nodes of each, as `HistGradientBoostingClassifier` keeps them."""
        sizes = np.array([len(tree) for tree in trees])
        starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        nodes = np.concatenate(trees)
        inner, offset = nodes["is_leaf"] == 0, np.repeat(starts, sizes)
        feature = np.full(len(nodes), -1, dtype=np.int32)
        columns, feature[inner] = np.unique(nodes["feature_idx"][inner], return_inverse=True)
        left, right = (nodes[side].astype(np.int32) + offset for side in ("left", "right"))
        threshold, value = (nodes[name].astype(np.float64) for name in ("num_threshold", "value"))
        missing_left = nodes["missing_go_to_left"].astype(np.bool_)
        return cls(columns, feature, threshold, left, right, missing_left, value, starts, baseline, link)

    def predict(self, X: Matrix) -> np.ndarray:
        """(n, C) probabilities or (n, 1) means of the rows of X (n, d)."""
        return _INVERSE_LINKS[self.link](_by_rows(X, len(self.columns), self._scores))

    def _scores(self, rows: Matrix) -> np.ndarray:
        from g3nn.model.tabular.walk import add_leaves  # numba takes long to import.

        rows = rows[:, self.columns]
        dense = np.ascontiguousarray(rows.toarray() if sp.issparse(rows) else rows)
        nodes = self.feature, self.threshold, self.left, self.right, self.missing_left, self.value
        scores = np.tile(self.baseline, (len(dense), 1))
        add_leaves(dense, *nodes, self.starts, scores)
        return scores

    def within(self, columns: np.ndarray, d: int) -> Trees:
        """The model for matrices with d columns, of which this one knows some."""
        return replace(self, columns=columns[self.columns])


FeatureModel = Linear | Trees


def _by_rows(X: Matrix, width: int, scores: Callable[[Any], np.ndarray]) -> np.ndarray:
    """The scores of all rows, of which some are looked at together. width: the values of a row that are needed."""
    X = sp.csr_array(X) if sp.issparse(X) else X
    size = max(1, _CHUNK // max(1, width))
    return np.concatenate([scores(X[first : first + size]) for first in range(0, max(1, X.shape[0]), size)])
