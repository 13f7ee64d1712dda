"""Counts, whose rate is not known for certain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.outcomes.base import Targets, as_stack
from g3nn.graph.outcomes.numbers import ValueOptions
from g3nn.graph.outcomes.real import NormalOutcome

_ROUNDING = 1e-6

_LARGEST = 2.0**53
"""Not all whole numbers above it are floats."""

_LOG_VARIANCE = (-7.0, 1.5)
"""Where the variance of a log-rate around given means is looked for."""

_POINTS, _SHARES = (tuple(part.tolist()) for part in np.polynomial.hermite_e.hermegauss(20))
_LOG_SHARES = tuple(math.log(share / math.sqrt(2 * math.pi)) for share in _SHARES)
"""Gauss-Hermite points of a standard normal: integrals over a log-rate are sums over them, good to six digits or more
for variances up to one."""


@dataclass(frozen=True)
class Counts(NormalOutcome):
    """y_it ~ Poisson(exp h_it) with a log-rate h_it ~ N(m_it, v_it): what no feature and no neighbour explains makes
    counts vary more than a Poisson does. An answer holds m and log v, (R, n, 2T); so do beliefs, with v for log v.

    The log-rate is what q infers and what a graph depends on: a count is a noisy sight of it, so it stays uncertain
    where the count is observed. In the bound an observed count therefore adds E_q log p(y | h) - KL(q(h) || p(h | x)),
    which is at most log p(y | x) and stands where that stands for other outcomes. Log-rates are drawn as m + sqrt(v) e,
    or enter through the moments of their distance (a closed bound).
    """

    name: ClassVar[str] = "counts"
    score_key: ClassVar[str] = "d2"
    score_title: ClassVar[str] = "share of deviance explained"
    columns_title: ClassVar[str] = "columns of counts"
    values_title: ClassVar[str] = "counts"
    allowed: ClassVar[str] = "whole numbers from 0 to 2**53, nothing where unknown"
    advice: ClassVar[str] = "Other numbers need outcome 'real', names of classes outcome 'classes' (G3NNClassifier)."
    # near-appnp has been seen to diverge on counts, and was never the best there.
    joint_models: ClassVar[tuple[str, ...]] = ("near-gcn",)
    of_rates: ClassVar[bool] = True

    @staticmethod
    def accepts(values: np.ndarray) -> np.ndarray:
        return (values >= 0) & (values == np.floor(values)) & (values <= _LARGEST)

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: object = None) -> Self:
        """Log-rates start at the mean count, with the variance that the counts show beyond a Poisson."""
        mean, variance = np.nanmean(labels, axis=0), np.nanvar(labels, axis=0)
        beyond = np.log1p(np.clip((variance - mean) / mean**2, 0.05, None))
        start = (*np.log(mean).tolist(), *np.log(beyond).tolist())
        return cls(columns, options or ValueOptions(), start=start, spread=tuple(np.sqrt(beyond).tolist()))

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        level, log_variance = start.unsqueeze(1).chunk(2, dim=2)
        return torch.cat([scores + level, log_variance.expand_as(scores)], dim=2)

    def anywhere(self, values: Tensor) -> Tensor:
        """1 / ((y + 1) (y + 2)), which sums to one over all counts."""
        return -((values + 1) * (values + 2)).log()

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """log of the integral of Poisson(y | exp h) over N(h | m, v), by 20 points around the peak of the integrand."""
        mean, log_variance = answer.chunk(2, dim=2)
        peak, width = _peak(mean.detach(), log_variance.detach().exp(), values)
        points, log_shares = _quadrature(answer.device, answer.dtype)
        h = peak + width * points
        normal = -0.5 * ((h - mean).square() * (-log_variance).exp() + log_variance)
        integral = (values * h - h.exp() + normal + log_shares).logsumexp(0)
        return integral + width.log() - (values + 1).lgamma()

    def expected_log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, n, T): E_q log Poisson(y | exp h)."""
        mean, variance = _moments(answer)
        return values * mean - (mean + variance / 2).exp() - (values + 1).lgamma()

    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        cross_entropy, entropy = self.cross_entropy(q, p), self.entropy(q)
        prior = cross_entropy - entropy - self.expected_log_prob(q, targets.values)
        parts = (
            -shares[0] * self.supervised(q, targets).sum(1),
            shares[0] * (prior * targets.observed).sum((1, 2)),
            shares[1] * (cross_entropy * ~targets.observed).sum((1, 2)),
            shares[1] * (entropy * ~targets.observed).sum((1, 2)),
        )
        return torch.stack(parts, dim=1), self.beliefs(q if of_posterior else p, targets)

    def observed_prior(self, q: Tensor, p: Tensor, targets: Targets) -> Tensor:
        prior = self.cross_entropy(q, p) - self.entropy(q) - self.expected_log_prob(q, targets.values)
        return -(prior * targets.observed).sum(2).index_select(1, targets.train)

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, 2T): mean and variance of each log-rate, of observed counts too."""
        return torch.cat(_moments(answer), dim=2)

    def mean(self, answer: Tensor) -> Tensor:
        mean, variance = _moments(answer)
        return (mean + variance / 2).exp()

    def variance(self, answer: Tensor) -> Tensor:
        expected = self.mean(answer)
        return expected + expected.square() * _moments(answer)[1].expm1()

    def around(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """spread: variances of log-rates. A mean is at least a hundredth of the mean count, and at most a count."""
        lowest = np.exp(self.start[: self.columns]) / 100
        centre = np.log(np.clip(mean, lowest, _LARGEST)) - spread / 2
        return np.concatenate([centre, np.broadcast_to(np.log(spread), mean.shape)], axis=1)

    def spread_around(self, mean: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The likeliest variances."""
        from scipy.optimize import minimize_scalar

        targets, known = torch.from_numpy(labels), ~np.isnan(labels)

        def loss(log_variance: float, column: int) -> float:
            answer = as_stack(self.around(mean, np.full(self.columns, np.exp(log_variance))))
            return -float(self.log_prob(answer, targets)[0, known[:, column], column].sum())

        best = [minimize_scalar(loss, bounds=_LOG_VARIANCE, args=(t,)).x for t in range(self.columns)]
        return np.exp(best)

    def as_inputs(self, targets: Targets) -> Tensor:
        """log(1 + count): of the order of one for large counts too."""
        return targets.values.log1p() * targets.observed

    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        centre = (values * known).sum(0) / known.sum(0).clamp_min(1)
        flat = _deviance(centre, values)
        return 1 - (_deviance(self.mean(rows), values) * known).sum((1, 2)) / (flat * known).sum()

    def conformal(self, answer: np.ndarray, scores: np.ndarray, alpha: float) -> np.ndarray:
        """Counts are whole, so nothing inside is lost; a count at the very end must not be lost to rounding."""
        low, high = np.moveaxis(super().conformal(answer, scores, alpha), 2, 0)
        ends = np.ceil(low - _ROUNDING), np.floor(high + _ROUNDING)
        return np.maximum(np.stack(ends, axis=2), 0.0)

    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        tails = (1 - level) / 2, (1 + level) / 2
        low, high = (_quantile(mean, deviation, tail) for tail in tails)
        return low, high


@cache
def _quadrature(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(20, 1, 1, 1) each: points of a standard normal, and the logarithm of what each counts over its own density."""
    points = torch.tensor(_POINTS, dtype=torch.float64).view(-1, 1, 1, 1)
    log_shares = torch.tensor(_LOG_SHARES, dtype=torch.float64).view(-1, 1, 1, 1) + points.square() / 2
    return points.to(device, dtype), log_shares.to(device, dtype)


def _moments(answer: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the log-rate, from an answer (R, n, 2T)."""
    mean, log_variance = answer.chunk(2, dim=2)
    return mean, log_variance.exp()


def _peak(mean: Tensor, variance: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Where y h - exp(h) - (h - m)^2 / 2v is highest, by Newton's method, and the width of the peak. It is concave, and
    a start on the right of the root goes straight to it."""
    h = torch.maximum(mean, mean + variance * (values - mean.exp())).clamp_max(30.0)
    h = torch.minimum(h, torch.maximum(mean, (values + 1).log()))
    for _ in range(5):
        rate = h.exp()
        h = h + (values - rate - (h - mean) / variance) / (rate + 1 / variance)
    return h, (h.exp() + 1 / variance).rsqrt()


def _deviance(rate: Tensor, values: Tensor) -> Tensor:
    """Half of it: log p of the count itself as rate, less log p of the rate."""
    return values.xlogy(values) - values - (values.xlogy(rate) - rate)


def _quantile(mean: np.ndarray, deviation: np.ndarray, share: float) -> np.ndarray:
    """The smallest count with at least this share of the probability at or below it."""
    from scipy.special import pdtr

    variance = np.log1p(np.clip(deviation**2 - mean, 0.0, None) / mean**2)
    # A share below a count is nearly a step in the log-rate, which equally spaced points follow where few cannot.
    points = np.linspace(-6.0, 6.0, 129)
    weights = np.exp(-(points**2) / 2) / np.exp(-(points**2) / 2).sum()
    rates = np.exp((np.log(mean) - variance / 2)[..., None] + np.sqrt(variance)[..., None] * points)
    low, high = np.full(mean.shape, -1.0), np.ceil(mean + 40 * deviation + 10)
    while (high - low > 1).any():
        middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
        enough = (pdtr(middle[..., None], rates) * weights).sum(-1) >= share
        low, high = np.where(enough, low, np.minimum(middle, high - 1)), np.where(enough, middle, high)
    return high
