"""The form in which features are kept with a graph, learned from those of the fit; it loses nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.parse import Matrix
from g3nn.estimator.features import AS_IS, COUNT, GUESS, NUMBER, FeatureTable

FEWEST_COUNTS = 50
LEAST_ZEROS, LEAST_ZEROS_IN_ALL = 0.25, 0.8
"""Share of zeros in each column of word counts, and in all of them together."""

_CELLS_AT_ONCE = 1 << 23
_SAME = 1e-5


@dataclass(frozen=True, eq=False)
class Form:
    """What happens to each of d columns; missing values stay missing. How models look at the result is up to `View`.

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
            stored = np.bincount(x.indices[x.data != 0], minlength=len(kinds))
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
        self._check_counts(table, problems)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = self._sparse(table.matrix) if sp.issparse(table.matrix) else self._dense(table.matrix)
        far = _columns_with(matrix, np.isinf)
        if far.any():
            given = f"numbers that are infinite or far from all those of the fit in column {table.title(far)}"
            problems.add("X", given, "values like those of the fit")
        return replace(table, matrix=matrix)

    def _check_counts(self, table: FeatureTable, problems: Problems) -> None:
        negative = self.counts & _columns_with(table.matrix, lambda values: values < 0)
        if negative.any():
            given = f"negative counts in column {table.title(negative)}"
            problems.add("X", given, "values like those of the fit, where these columns held word counts")

    def _dense(self, x: np.ndarray) -> np.ndarray:
        treated = np.empty(x.shape, dtype=np.float32)
        height = max(1, _CELLS_AT_ONCE // x.shape[1])
        for start in range(0, len(x), height):
            rows = x[start : start + height].astype(np.float64)
            rows -= self.mean
            rows /= self.scale
            treated[start : start + height] = rows
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
    that are seldom zero and whose rows or columns somebody has scaled. So are columns of 0 and 1, if none is missing in
    at least 50 of them; fewer stay as they are. Everything else is a number.
    """
    x = table.matrix
    given = np.full(x.shape[1], GUESS) if table.kinds is None else table.kinds
    kinds = given.astype(f"<U{len(NUMBER)}")  # Numpy cuts longer texts off.
    guessed = kinds == GUESS
    if sp.issparse(x):

        def counted(entries: np.ndarray) -> np.ndarray:
            return np.bincount(x.indices[entries], minlength=x.shape[1])

        ones, zeros = counted(x.data == 1), x.shape[0] - counted(x.data != 0)
        known = x.shape[0] - counted(np.isnan(x.data))
        countable = counted(~(x.data >= 0)) == 0
    else:
        ones, zeros, known = (part.sum(axis=0) for part in (x == 1, x == 0, ~np.isnan(x)))
        countable = (x >= 0).all(axis=0)
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
    if np.allclose(low, high, rtol=_SAME, atol=0):
        low, high = _ends(others.T.tocsr())
        found = np.isclose(low, high, rtol=_SAME, atol=0)
    same = np.logical_and(*(np.isclose(values, end[row], rtol=_SAME, atol=0) for end in _ends(words)))
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


def _columns_with(matrix: Matrix, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(d,) booleans: the columns in which some value, other than a zero that is not stored, passes a test."""
    if not sp.issparse(matrix):
        return np.asarray(test(matrix).any(axis=0))
    return np.bincount(matrix.indices[test(matrix.data)], minlength=matrix.shape[1]) > 0


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
    known = stored - np.bincount(x.indices[np.isnan(x.data)], minlength=x.shape[1])
    scale = np.sqrt(squares / np.maximum(known, 1))
    return np.where(scale > 0, scale, np.inf)
