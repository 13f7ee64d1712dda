"""Ways to look at the features of a graph. Which one suits it is not known beforehand: they are tried like models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from g3nn.base.parse import Matrix

LENGTH = 4.0
"""The Euclidean length of a row of counts, where rows are scaled."""

HEAVY_TAIL = 10.0
"""A standardised value beyond this one lies in a heavy tail."""

NAMES = ("length", "given", "tfidf", "columns", "present", "ranks")
PRESENT_COLUMNS = "present columns"
_OF_PRESENCE = frozenset({"present", "length", "tfidf", "ranks", PRESENT_COLUMNS})
_OF_LENGTH = frozenset({"length", "tfidf", "ranks"})

_MOST_KNOTS = 1000
_CELLS_AT_ONCE = 1 << 22
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class View:
    """What a model sees of d columns in the form that `Form` gives them, without missing values.

    name says what becomes of the columns of counts; all others stay as they are, unless it says so.

    - given: as they came.
    - present: 1 where they are not zero.
    - length: `present`, each row scaled to length 4.
    - tfidf: `present`, times log((1 + n) / (1 + n_c)) + 1 where n_c of the n fitted rows have column c; each row scaled
      to length 4.
    - columns: as they came, divided by their standard deviation over the fitted rows, not centred; 0 if that is 0.
    - present columns: the same of `present`. It takes the place of `columns` where all counts of a row are equal: they
      are probably indicators whose rows somebody has scaled, and the scale says only how many there are.
    - ranks: `length`; each number becomes the normal score of its rank among the fitted values of its column. In a
      sparse matrix, scores are counted from that of zero, so that it stays sparse.

    counts:  (d,) booleans. weights: (d,), what the counts of a column are multiplied by, 1 for all other columns.
    starts:  (d + 1,), where the knots of each column begin; it is ranked if it has any.
    knots:   (2, m): values of the fitted rows in ascending order, at most 1,000 for a column, and their normal scores.
    """

    name: str
    counts: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    knots: np.ndarray

    @classmethod
    def fit(cls, name: str, matrix: Matrix, counts: np.ndarray, numbers: np.ndarray | None = None) -> View:
        """counts, numbers: (d,) booleans, the columns of each kind; only `ranks` needs the numbers."""
        weights = np.ones(len(counts))
        if name == "tfidf":
            present = np.asarray((matrix != 0).sum(axis=0)).ravel()
            weights[counts] = np.log((1 + matrix.shape[0]) / (1 + present[counts])) + 1
        if name == "columns":
            weights[counts] = _inverse(_deviations(matrix)[counts])
        if name == PRESENT_COLUMNS:
            share = np.asarray((matrix != 0).mean(axis=0)).ravel()
            weights[counts] = _inverse(np.sqrt(share * (1 - share))[counts])
        knots = [np.zeros((2, 0))] * len(counts)
        if name == "ranks" and numbers is not None:
            columns = sp.csc_array(matrix) if sp.issparse(matrix) else matrix
            for c in np.flatnonzero(numbers).tolist():
                knots[c] = _knots(columns, c)
        starts = np.cumsum([0, *(part.shape[1] for part in knots)])
        return cls(name, counts, weights, starts, np.concatenate(knots, axis=1))

    def apply(self, matrix: Matrix) -> Matrix:
        """(n, d) float32 for any rows, sparse or dense as those of the fit were."""
        if self.name == "given":
            return matrix.astype(np.float32, copy=False)
        if sp.issparse(matrix):
            return self._sparse(matrix)
        seen = np.array(matrix, dtype=np.float32)
        for c in np.flatnonzero(np.diff(self.starts)).tolist():
            seen[:, c] = self._scores(matrix[:, c], c)
        height = max(1, _CELLS_AT_ONCE // matrix.shape[1])
        for start in range(0, len(matrix), height):
            rows = slice(start, start + height)
            counted = sp.csr_array(np.where(self.counts, matrix[rows], 0))
            seen[rows, self.counts] = self._sparse(counted).toarray()[:, self.counts]
        return seen

    def _sparse(self, x: sp.csr_array) -> sp.csr_array:
        values = x.data.astype(np.float64)
        counted = self.counts[x.indices]
        if self.name in _OF_PRESENCE:
            values[counted] = values[counted] != 0
        values *= self.weights[x.indices]
        if self.name in _OF_LENGTH:
            rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))[counted]
            squares = np.bincount(rows, values[counted] ** 2, minlength=x.shape[0])
            values[counted] *= LENGTH * _inverse(np.sqrt(squares))[rows]
        if self.starts[-1]:
            by_column = np.argsort(x.indices, kind="stable")
            ends = np.searchsorted(x.indices[by_column], np.arange(x.shape[1] + 1))
            for c in np.flatnonzero(np.diff(self.starts)).tolist():
                entries = by_column[ends[c] : ends[c + 1]]
                values[entries] = self._scores(values[entries], c)
        return sp.csr_array((values.astype(np.float32), x.indices, x.indptr), shape=x.shape)

    def _scores(self, values: np.ndarray, column: int) -> np.ndarray:
        return np.interp(values, *self.knots[:, self.starts[column] : self.starts[column + 1]])


def views_of(matrix: Matrix, counts: np.ndarray, numbers: np.ndarray) -> tuple[View, ...]:
    """The views of a matrix that are worth trying, the likeliest first; none looks like an earlier one.

    Counts are looked at in several ways if they differ between rows, and numbers by rank if some lie in a heavy tail.
    """
    names = set(NAMES) if _deviations(matrix)[counts].any() else {"given", "ranks"}
    if not _has_heavy_tails(matrix, numbers):
        names.discard("ranks")
    views: list[View] = []
    for name in NAMES:
        if name in names:
            scaled = name == "columns" and _rows_were_scaled(matrix, counts)
            view = View.fit(PRESENT_COLUMNS if scaled else name, matrix, counts, numbers)
            if not any(_look_alike(view, other, matrix) for other in views):
                views.append(view)
    return tuple(views)


def _rows_were_scaled(matrix: Matrix, counts: np.ndarray) -> bool:
    """Whether the counts of each row are all equal, where they are not zero, but not all of them 1."""
    height, all_ones = max(1, _CELLS_AT_ONCE // matrix.shape[1]), True
    for start in range(0, matrix.shape[0], height):
        rows = matrix[start : start + height]
        rows = sp.csr_array(rows if sp.issparse(rows) else np.where(counts, rows, 0))
        counted = counts[rows.indices] & (rows.data != 0)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[counted]
        values = rows.data[counted]
        first = np.zeros(rows.shape[0])
        first[row[::-1]] = values[::-1]
        if not np.allclose(values, first[row], rtol=1e-5, atol=0):
            return False
        all_ones = all_ones and bool((values == 1).all())
    return not all_ones


def _has_heavy_tails(matrix: Matrix, numbers: np.ndarray) -> bool:
    if sp.issparse(matrix):
        return bool((np.abs(matrix.data[numbers[matrix.indices]]) > HEAVY_TAIL).any())
    return any(bool((np.abs(matrix[:, c]) > HEAVY_TAIL).any()) for c in np.flatnonzero(numbers))


def _look_alike(one: View, other: View, matrix: Matrix) -> bool:
    """Rows are looked at one by one, so the first that differ decide."""
    height = max(1, _CELLS_AT_ONCE // matrix.shape[1])
    for start in range(0, matrix.shape[0], height):
        rows = matrix[start : start + height]
        difference = abs(one.apply(rows) - other.apply(rows))
        if difference.max() > _SAME:
            return False
    return True


def _deviations(x: Matrix) -> np.ndarray:
    """(d,): the standard deviation of each column; exactly 0 for a constant, as 64 bits hold sums of 32-bit numbers."""
    n, d = x.shape
    if sp.issparse(x):
        mean = np.bincount(x.indices, x.data, minlength=d) / n
        squares = np.bincount(x.indices, (x.data - mean[x.indices]) ** 2, minlength=d)
        squares = squares + (n - np.bincount(x.indices, minlength=d)) * mean**2
    else:
        mean = x.mean(axis=0, dtype=np.float64)
        squares = np.zeros(d)
        height = max(1, _CELLS_AT_ONCE // d)
        for start in range(0, n, height):
            squares += ((x[start : start + height] - mean) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares / n))


def _knots(x: Matrix, column: int) -> np.ndarray:
    """(2, m): the different values of a column and the normal scores of their middle ranks, at most 1,000 of them with
    evenly spread scores. In a sparse matrix, here one by columns, scores are counted from that of zero."""
    n = x.shape[0]
    values = x.data[x.indptr[column] : x.indptr[column + 1]] if sp.issparse(x) else x[:, column]
    if len(values) < n:
        values = np.append(values, 0)
    different, often = np.unique(values, return_counts=True)
    often[different == 0] += n - len(values)
    scores = ndtri((np.cumsum(often) - often / 2) / n)
    if len(scores) > _MOST_KNOTS:
        kept = np.unique(np.searchsorted(scores, np.linspace(scores[0], scores[-1], _MOST_KNOTS)))
        different, scores = different[kept], scores[kept]
    return np.stack([different, scores - np.interp(0.0, different, scores) if sp.issparse(x) else scores])


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 / value, and 0 where it is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values, dtype=np.float64), where=values != 0)
