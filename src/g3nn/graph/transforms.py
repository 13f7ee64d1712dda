"""Features as they are kept with a graph, without losing anything, and the transforms that models read them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from g3nn.base.errors import Problems
from g3nn.base.parse import Matrix
from g3nn.graph.features import AS_IS, COUNT, GUESS, NUMBER, FeatureTable, counts_in_columns
from g3nn.kernels.sparse import is_binary

FEWEST_COUNTS = 50
LEAST_ZEROS, LEAST_ZEROS_IN_ALL = 0.25, 0.8
"""Share of zeros in each column of word counts, and in all of them together."""
_SAME_RATIO = 1e-5
_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Form:
    """What happens to each of d columns; missing values stay missing. Models read the result in a
    `FeatureTransform`.

    - Numbers: (x - mean) / scale, mean and standard deviation of the known values. A column that never changes becomes
      0. In a sparse matrix, a column that is mostly zero is not centred, so that it stays sparse; its scale is then the
      root mean square of the values that are not zero.
    - Counts and all others stay as they are.

    counts, numbers: (d,) booleans. mean, scale: (d,), 0 and 1 where a column is no number; the scale of a constant is
    infinite.
    """

    counts: np.ndarray
    numbers: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, table: FeatureTable) -> Form:
        x, kinds = table.matrix, column_kinds(table)
        mean, scale = np.zeros(len(kinds)), np.ones(len(kinds))
        numbers = kinds == NUMBER
        if sp.issparse(x):
            stored = counts_in_columns(x, _is_not_zero)
            full = numbers & (2 * stored >= table.num_nodes)
            scale[numbers] = _stored_scales(x, stored)[numbers]
            mean[full], scale[full] = _moments(x[:, np.flatnonzero(full)].toarray())
        else:
            width = max(1, _CELLS_AT_ONCE // table.num_nodes)
            for start in range(0, len(kinds), width):
                columns = np.flatnonzero(numbers[start : start + width]) + start
                mean[columns], scale[columns] = _moments(x[:, columns])
        return cls(kinds == COUNT, numbers, mean, scale)

    def apply(self, table: FeatureTable, problems: Problems) -> FeatureTable:
        """(n, d) float32. A sparse table stays sparse, unless most columns have to be centred."""
        negative = self.counts & (counts_in_columns(table.matrix, lambda values: values < 0) > 0)
        if negative.any():
            given = f"negative counts in column {table.title(negative)}"
            problems.add("X", given, "values like those of the fit, where these columns held word counts")
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = self._sparse(table.matrix) if sp.issparse(table.matrix) else self._dense(table.matrix)
        far = counts_in_columns(matrix, np.isinf) > 0
        if far.any():
            given = f"numbers that are infinite or far from all those of the fit in column {table.title(far)}"
            problems.add("X", given, "values like those of the fit")
        return replace(table, matrix=matrix)

    def _dense(self, x: np.ndarray) -> np.ndarray:
        treated = np.empty(x.shape, dtype=np.float32)
        for place in _row_blocks(x):
            rows = x[place].astype(np.float64)
            rows -= self.mean
            rows /= self.scale
            treated[place] = rows
        return treated

    def _sparse(self, x: sp.csr_array) -> Matrix:
        centred = self.mean != 0
        if 2 * centred.sum() > len(centred):
            return self._dense(x.toarray())
        values = x.data / self.scale[x.indices]
        treated = sp.csr_array((values.astype(np.float32), x.indices, x.indptr), shape=x.shape)
        if not centred.any():
            return treated
        full, rest = np.flatnonzero(centred), np.flatnonzero(~centred)
        block = ((x[:, full].toarray() - self.mean[full]) / self.scale[full]).astype(np.float32)
        order = np.argsort(np.concatenate([rest, full]))
        treated = sp.csr_array(sp.hstack([treated[:, rest], sp.csr_array(block)], format="csr")[:, order])
        treated.sort_indices()
        return treated


def column_kinds(table: FeatureTable) -> np.ndarray:
    """(d,): the kind of each column, guessed where it is not given.

    Columns are counts if they are never negative or missing and zero in at least a quarter of the rows, provided that
    there are at least 50 such columns and four fifths of all their values are zero. So are, beside these, indicators
    that are seldom zero and whose rows or columns were scaled. So are columns of 0 and 1, if none is missing in
    at least 50 of them; fewer stay as they are. Everything else is a number.
    """
    x = table.matrix
    given = np.full(x.shape[1], GUESS) if table.kinds is None else table.kinds
    kinds = given.astype(f"<U{len(NUMBER)}")  # Numpy cuts longer texts off.
    guessed = kinds == GUESS
    ones, zeros = counts_in_columns(x, lambda values: values == 1), x.shape[0] - counts_in_columns(x, _is_not_zero)
    known = x.shape[0] - table.missing
    countable = counts_in_columns(x, lambda values: ~(values >= 0)) == 0
    counts = guessed & countable & (zeros >= LEAST_ZEROS * x.shape[0])
    if counts.sum() < FEWEST_COUNTS or zeros[counts].mean() < LEAST_ZEROS_IN_ALL * x.shape[0]:
        counts[:] = False
    flags = guessed & (ones + zeros == known) & (ones > 0) & (zeros > 0)
    kinds[guessed] = NUMBER
    kinds[flags] = AS_IS
    indicators = flags & (known == x.shape[0])
    if indicators.sum() >= FEWEST_COUNTS:
        kinds[indicators] = COUNT
    kinds[counts] = COUNT
    often = guessed & countable & ~counts & ~flags & (zeros > 0)
    if counts.any() and often.any():
        kinds[np.flatnonzero(often)[_scaled_indicators(x, counts, often)]] = COUNT
    return kinds


def _scaled_indicators(x: Matrix, counts: np.ndarray, often: np.ndarray) -> np.ndarray:
    """Which of the columns `often` have, wherever they are not zero, the same value, if so has each count; or the value
    of all counts of the row."""
    words, others = (sp.csr_array(x[:, np.flatnonzero(part)], dtype=np.float64) for part in (counts, often))
    entries = others.tocoo()
    row, column, values = entries.row, entries.col, entries.data
    found = np.zeros(others.shape[1], dtype=bool)
    low, high = _ends(words.T.tocsr())
    if np.allclose(low, high, rtol=_SAME_RATIO, atol=0):
        low, high = _ends(others.T.tocsr())
        found = np.isclose(low, high, rtol=_SAME_RATIO, atol=0)
    same = np.logical_and(*(np.isclose(values, end[row], rtol=_SAME_RATIO, atol=0) for end in _ends(words)))
    return found | (np.bincount(column[~same & (values != 0)], minlength=len(found)) == 0)


def _ends(x: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) each: the lowest and the highest value of each row that is not zero; 0 where there is none."""
    low, high = np.full(x.shape[0], np.inf), np.full(x.shape[0], -np.inf)
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    stored = x.data != 0
    np.minimum.at(low, row[stored], x.data[stored])
    np.maximum.at(high, row[stored], x.data[stored])
    empty = np.isinf(low)
    return np.where(empty, 0.0, low), np.where(empty, 0.0, high)


def _is_not_zero(values: np.ndarray) -> np.ndarray:
    return np.asarray(values != 0)


def _row_blocks(matrix: Matrix) -> Iterator[slice]:
    """All rows, in parts whose copies fit into memory."""
    height = max(1, _CELLS_AT_ONCE // matrix.shape[1])
    return (slice(start, start + height) for start in range(0, matrix.shape[0], height))


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(c,) each: mean and standard deviation of the known values of x (n, c); an infinite one where they are all
    equal, whatever rounding makes of their mean."""
    x = x.astype(np.float64)
    low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
    count = np.maximum((~np.isnan(x)).sum(axis=0), 1)
    mean = np.nansum(x, axis=0) / count
    deviation = np.sqrt(np.nansum((x - mean) ** 2, axis=0) / count)
    differ = (low < high) & (deviation > 0)
    return np.where(differ, mean, np.nan_to_num(low)), np.where(differ, deviation, np.inf)


def _stored_scales(x: sp.csr_array, stored: np.ndarray) -> np.ndarray:
    """(d,): the root mean square of the values that are not zero; infinite where there is none."""
    squares = np.bincount(x.indices, np.nan_to_num(x.data.astype(np.float64)) ** 2, minlength=x.shape[1])
    known = stored - counts_in_columns(x, np.isnan)
    scale = np.sqrt(squares / np.maximum(known, 1))
    return np.where(scale > 0, scale, np.inf)


_ROW = 4.0
"""The Euclidean length of a row of counts, where rows are scaled."""
HEAVY_TAIL = 10.0
"""A standardised value beyond this one lies in a heavy tail."""
LENGTH, UNIT, PRESENT_COLUMNS = "length", "unit", "present columns"
TRANSFORMS = (LENGTH, "given", "tfidf", "columns", "present", "ranks")
_OF_PRESENCE = frozenset({"present", LENGTH, "tfidf", "ranks", UNIT, PRESENT_COLUMNS})
_OF_LENGTH = frozenset({LENGTH, "tfidf", "ranks", UNIT})
_MOST_KNOTS = 1000
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class FeatureTransform:
    """What a model reads of d columns in the form that `Form` gives them, without missing values.

    name says what becomes of the columns of counts; all others stay as they are, unless it says so.

    - given: as they came.
    - present: 1 where they are not zero.
    - length: `present`, each row scaled to length 4.
    - unit: the same, scaled to length 1. Networks learn more slowly from it, and what a label prior learns from few
      labels is smoother.
    - tfidf: `present`, times log((1 + n) / (1 + n_c)) + 1 where n_c of the n fitted rows have column c; each row scaled
      to length 4.
    - columns: as they came, divided by their standard deviation over the fitted rows, not centred; 0 if that is 0.
    - present columns: the same of `present`. It takes the place of `columns` where all counts of a row are equal: they
      are probably indicators whose rows were scaled, and the scale says only how many there are.
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
    def fit(cls, name: str, matrix: Matrix, counts: np.ndarray, numbers: np.ndarray | None = None) -> FeatureTransform:
        """counts, numbers: (d,) booleans, the columns of each kind; only `ranks` needs the numbers."""
        weights = np.ones(len(counts))
        if name == "tfidf":
            present = np.asarray((matrix != 0).sum(axis=0)).ravel()
            weights[counts] = np.log((1 + matrix.shape[0]) / (1 + present[counts])) + 1
        if name == "columns":
            weights[counts] = _inverse(_deviations(matrix)[counts])
        if name == PRESENT_COLUMNS:
            share = np.asarray((matrix != 0).mean(axis=0)).ravel()
            weights[counts] = _inverse(np.sqrt(np.maximum(share * (1 - share), 0))[counts])
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
        for rows in _row_blocks(matrix):
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
            length = 1.0 if self.name == UNIT else _ROW
            values[counted] *= length * _inverse(np.sqrt(squares))[rows]
        if self.starts[-1]:
            by_column = np.argsort(x.indices, kind="stable")
            ends = np.searchsorted(x.indices[by_column], np.arange(x.shape[1] + 1))
            for c in np.flatnonzero(np.diff(self.starts)).tolist():
                entries = by_column[ends[c] : ends[c + 1]]
                values[entries] = self._scores(values[entries], c)
        return sp.csr_array((values.astype(np.float32), x.indices, x.indptr), shape=x.shape)

    def _scores(self, values: np.ndarray, column: int) -> np.ndarray:
        return np.interp(values, *self.knots[:, self.starts[column] : self.starts[column + 1]])


def transforms_of(matrix: Matrix, counts: np.ndarray, numbers: np.ndarray) -> tuple[FeatureTransform, ...]:
    """The transforms of a matrix that are worth trying, the likeliest first; no two give the same values.

    Counts are transformed in several ways if they differ between rows, and numbers by rank if some lie in a heavy tail.
    """
    names = set(TRANSFORMS) if _deviations(matrix)[counts].any() else {"given", "ranks"}
    if not _has_heavy_tails(matrix, numbers):
        names.discard("ranks")
    found: list[FeatureTransform] = []
    for name in TRANSFORMS:
        if name in names:
            scaled = name == "columns" and _rows_were_scaled(matrix, counts)
            made = FeatureTransform.fit(PRESENT_COLUMNS if scaled else name, matrix, counts, numbers)
            if not any(_are_same(made, other, matrix) for other in found):
                found.append(made)
    return tuple(found)


def _rows_were_scaled(matrix: Matrix, counts: np.ndarray) -> bool:
    """Whether the counts of each row are all equal, where they are not zero, but not all of them 1."""
    blocks = [sp.csr_array(matrix[rows][:, np.flatnonzero(counts)]) for rows in _row_blocks(matrix)]
    return all(map(is_binary, blocks)) and any(((block.data != 0) & (block.data != 1)).any() for block in blocks)


def _has_heavy_tails(matrix: Matrix, numbers: np.ndarray) -> bool:
    far = counts_in_columns(matrix, lambda values: (values > HEAVY_TAIL) | (values < -HEAVY_TAIL))
    return bool(far[numbers].any())


def _are_same(one: FeatureTransform, other: FeatureTransform, matrix: Matrix) -> bool:
    """The first block of rows that differ decides."""
    blocks = (matrix[place] for place in _row_blocks(matrix))
    return all(abs(one.apply(rows) - other.apply(rows)).max() <= _SAME for rows in blocks)


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
        for rows in _row_blocks(x):
            squares += ((x[rows] - mean) ** 2).sum(axis=0)
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
