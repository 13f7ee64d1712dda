"""Scales on which real values are normal: the value itself, its logarithm, a logarithm that has a sign, or its rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from g3nn.base.parse import Matrix

IDENTITY, LOG, SIGNED_LOG, RANKS = "identity", "log", "signed-log", "normal-scores"

_KNOTS = 12
"""Quantiles between which normal scores are straight lines; no more different values than that stay as they are."""

_FEWEST, _MOST, _FOLDS = 20, 2000, 3
"""With fewer labels nothing is chosen; of more, some are looked at; and in how many folds."""

_FEWEST_SIGNS = 6
"""Fewer values do not show that none is negative."""

_WIDE, _COMPONENTS = 100, 32
"""More features than that are reduced before they predict values."""

_SURE, _LEAST, _MOST_ERROR = 2.0, 0.1, 1.05
"""A scale is taken if its log-density is higher than that of the value itself by this many standard errors, and than
that of the best simpler scale by this many nats, and if its squared error is at most this many times the latter's."""

_POINTS, _SHARES = (tuple(part.tolist()) for part in np.polynomial.hermite_e.hermegauss(24))
"""Gauss-Hermite points of a standard normal, and how much each counts."""


@dataclass(frozen=True)
class Warp:
    """A rising function g of which a value y makes a number that is normal: g(y) = location + scale times our value.

    identity: y. log: log y. signed-log: asinh(y / unit), which is linear within a unit around 0 and a logarithm beyond.
    normal-scores: the standard normal quantile of the share of values below y and of half of those that equal y, by
    straight lines through knots (y, g) at about equal steps of g, and on beyond the last ones.

    low, high: answers are never outside. Both are in the caller's unit.
    """

    name: str = IDENTITY
    low: float = -math.inf
    high: float = math.inf
    unit: float = 1.0
    knots: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, values: np.ndarray) -> Warp:
        """For values (m,) that differ. Answers stay within their range and a deviation of g(y) around it; they may be
        anything if y itself is normal, but not below 0 if no value is."""
        warp = cls(name)
        if name == SIGNED_LOG:
            warp = cls(name, unit=float(np.median(np.abs(values[values != 0]))))
        if name == RANKS:
            order, last = np.sort(values), ndtri(1 - 0.5 / len(values))
            shares = ndtr(np.linspace(-last, last, min(_KNOTS, len(values))))
            knots = np.unique(np.quantile(order, shares, method="inverted_cdf"))
            below, up_to = (np.searchsorted(order, knots, side) for side in ("left", "right"))
            levels = ndtri((below + up_to) / (2 * len(values)))
            warp = cls(name, knots=tuple(knots.tolist()), levels=tuple(levels.tolist()))
        low, high = -math.inf, math.inf
        if name != IDENTITY:
            made, _ = warp.apply(torch.from_numpy(values))
            ends = torch.stack([made.min() - made.std(), made.max() + made.std()])
            low, high = warp.inverse(ends).tolist()
        never_negative = len(values) >= _FEWEST_SIGNS and values.min() >= 0
        return replace(warp, low=max(low, 0.0) if never_negative else low, high=high)

    def apply(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """g(y) and its derivative. A logarithm takes what is below `low` for that."""
        if self.name == LOG:
            y = y.clamp_min(max(self.low, torch.finfo(y.dtype).tiny))
            return y.log(), y.reciprocal()
        if self.name == SIGNED_LOG:
            return (y / self.unit).asinh(), (y.square() + self.unit**2).rsqrt()
        return _lines(y, self.knots, self.levels) if self.name == RANKS else (y, torch.ones_like(y))

    def inverse(self, g: Tensor) -> Tensor:
        """y, between `low` and `high`."""
        if self.name == LOG:
            y = g.exp()
        elif self.name == SIGNED_LOG:
            y = g.sinh() * self.unit
        else:
            y = _lines(g, self.levels, self.knots)[0] if self.name == RANKS else g
        return y.clamp(self.low, self.high)

    def moments(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of y, if g(y) is normal with these. A value itself is cut off at the ends."""
        if self.name == IDENTITY:
            return mean.clamp(self.low, self.high), deviation
        points, shares = (_tensor(part, mean.device, mean.dtype) for part in (_POINTS, _SHARES))
        drawn = self.inverse(mean + points.view(-1, *[1] * mean.ndim) * deviation)
        centre = torch.tensordot(shares / shares.sum(), drawn, 1)
        return centre, torch.tensordot(shares / shares.sum(), (drawn - centre).square(), 1).sqrt()


@cache
def _tensor(values: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, device=device, dtype=dtype)


def _lines(x: Tensor, knots: tuple[float, ...], heights: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Straight lines through points, and their slopes, at x; the first and the last line go on."""
    at, height = (_tensor(part, x.device, x.dtype) for part in (knots, heights))
    place = torch.searchsorted(at, x.contiguous()).clamp(1, len(at) - 1)
    slope = (height.diff() / at.diff())[place - 1]
    return height[place - 1] + slope * (x - at[place - 1]), slope


def best_warps(x: Matrix, labels: np.ndarray) -> tuple[Warp, ...]:
    """The scale of each column of labels (m, T), NaN where unknown, of nodes with features x (m, d); nothing if values
    of all columns are normal as they are, and may be anything."""
    if x.shape[1] > _WIDE:
        from sklearn.decomposition import TruncatedSVD

        x = TruncatedSVD(min(_COMPONENTS, len(labels)), random_state=0).fit_transform(x)
    x = x.toarray() if sp.issparse(x) else np.asarray(x)
    found = tuple(_best(x[known], column[known]) for column, known in zip(labels.T, ~np.isnan(labels.T), strict=True))
    return found if any(warp != Warp() for warp in found) else ()


def _best(x: np.ndarray, values: np.ndarray) -> Warp:
    """The scale with the highest log-density of values that trees have not seen, in the caller's unit; a simpler one
    unless another is clearly better, and explains as much of the variance."""
    if not len(values):
        return Warp()
    if len(values) < _FEWEST or len(np.unique(values)) <= _KNOTS:
        return Warp.of(IDENTITY, values)
    some = np.random.default_rng(0).permutation(len(values))[:_MOST]
    largest = np.abs(values).max()
    plain, error = _judged(IDENTITY, x[some], values[some] / largest)
    chosen, highest = IDENTITY, 0.0
    for name in (LOG, SIGNED_LOG, RANKS) if values.min() > 0 else (SIGNED_LOG, RANKS):
        density, own_error = _judged(name, x[some], values[some] / largest)
        gain = density - plain
        least = max(_SURE * gain.std() / math.sqrt(len(some)), highest + _LEAST)
        if gain.mean() > least and own_error <= _MOST_ERROR * error:
            chosen, highest, error = name, float(gain.mean()), own_error
    return Warp.of(chosen, values)


def _judged(name: str, x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """(m,): the log-density of every value by trees that learned others, as the scale did; and the squared error of
    their mean. How far trees are off is known from the fold itself, which is one number."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    found, missed, fold = np.empty(len(values)), np.empty(len(values)), np.arange(len(values)) % _FOLDS
    for one in range(_FOLDS):
        own, rest = fold == one, fold != one
        warp = Warp.of(name, values[rest])
        made, slope = (part.numpy() for part in warp.apply(torch.from_numpy(values)))
        trees = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=6, min_samples_leaf=15, random_state=0)
        answers = trees.fit(x[rest], made[rest]).predict(x[own])
        variance = max(((made[own] - answers) ** 2).mean(), 1e-12)
        found[own] = np.log(slope[own]) - 0.5 * ((made[own] - answers) ** 2 / variance + np.log(variance))
        mean, _ = warp.moments(torch.from_numpy(answers), torch.tensor(math.sqrt(variance)))
        missed[own] = (values[own] - mean.numpy()) ** 2
    return found, float(missed.mean())
