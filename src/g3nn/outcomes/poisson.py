"""Counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.outcomes.base import NumberOutcome, Targets, ValueOptions

_LARGEST_CAP = 64


@dataclass(frozen=True)
class Poisson(NumberOutcome):
    """y_it ~ Poisson(r_it). An answer is log r, (R, n, T): the log of the mean count of the training nodes and a score.
    Beliefs hold mean and variance, (R, n, 2T): r and r, or the observed count and 0.

    Counts are compared by their square roots, whose noise is the same at every rate, and above the largest count of the
    training nodes (at most 64) all are alike: so few different ones are left that an expectation over one column is
    their sum, exact. With several columns it is a closed bound. Cross-entropy and entropy both leave out E_q log y!,
    which has no closed form and cancels in the KL: an `entropy_weight` other than 1 weighs the entropy without it.
    """

    name: ClassVar[str] = "poisson"
    score_is: ClassVar[str] = "share of the deviance that is explained (D^2)"

    cap: int = 0
    """Counts from here on are alike to a graph."""

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: Any = None) -> Self:
        start = tuple(np.log(np.nanmean(labels, axis=0)).tolist())
        cap = int(min(np.nanmax(labels), _LARGEST_CAP))
        spread = tuple(np.nanstd(np.sqrt(np.minimum(labels, cap)), axis=0).tolist())
        return cls(columns, options or ValueOptions(), start=start, spread=spread, cap=cap)

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        return scores + start.unsqueeze(1)

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return values * answer - answer.exp() - (values + 1).lgamma()

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        """Without E_q log y!."""
        return p.exp() - q.exp() * p

    def entropy(self, q: Tensor) -> Tensor:
        """Without E_q log y!."""
        return q.exp() * (1 - q)

    def mean(self, answer: Tensor) -> Tensor:
        return answer.exp()

    def variance(self, answer: Tensor) -> Tensor:
        return answer.exp()

    def levels(self, beliefs: Tensor) -> tuple[Tensor, Tensor]:
        """(R, n, T, cap + 1): the probability of each count, the last for all from there on; and (cap + 1,): their
        square roots. beliefs (R, n, 2T)."""
        mean, variance = (part.unsqueeze(3) for part in beliefs.chunk(2, dim=2))
        k = torch.arange(self.cap + 1, dtype=beliefs.dtype, device=beliefs.device)
        # A known count has a rate of zero here, whose logarithm nobody must see.
        rate = torch.where(variance > 0, mean, 1.0)
        below = (k[:-1] * rate.log() - rate - (k[:-1] + 1).lgamma()).exp()
        drawn = torch.cat([below, (1 - below.sum(3, keepdim=True)).clamp_min(0.0)], dim=3)
        known = (mean.clamp_max(self.cap) == k).to(beliefs.dtype)
        return torch.where(variance > 0, drawn, known), k.sqrt()

    def as_inputs(self, targets: Targets) -> Tensor:
        """log(1 + count): of the order of one for large counts too."""
        return targets.values.log1p() * targets.observed

    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        centre = (values * known).sum(0) / known.sum(0).clamp_min(1)
        flat = _deviance(centre.log(), values)
        return 1 - (_deviance(rows, values) * known).sum((1, 2)) / (flat * known).sum()

    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        from scipy.stats import poisson

        low, high = (poisson.ppf(share, mean) for share in ((1 - level) / 2, (1 + level) / 2))
        return np.maximum(low, 0.0), high


def _deviance(log_rate: Tensor, values: Tensor) -> Tensor:
    """Half of it: log p of the count itself as rate, less log p of the rate."""
    return values.xlogy(values) - values - (values * log_rate - log_rate.exp())
