"""Values that have nothing to do with the true ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import number
from g3nn.graph.outcomes import NormalOutcome, Targets
from g3nn.model.channels.base import NEVER, LabelChannel
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class OutlierOptions:
    wrong: Scalar = number(0.05, "share of wrong values", low=0, high=0.99, per_replica=True)


class Outliers(LabelChannel):
    """With probability `wrong` a seen value s says nothing about the true one and comes from a heavy-tailed h instead:
    around the mean of the training labels a Cauchy distribution with their standard deviation as its scale, and for
    counts h(s) = 1 / ((s + 1) (s + 2)). `wrong` is fixed.

    log Z = log((1 - wrong) q(s) + wrong h(s)). Let rho = wrong h(s) / Z be the probability under q that s is wrong. For
    real values the bound has

        (1 - rho) (log(1 - wrong) + log p(s)) + rho (log wrong + log h(s) - KL(q || p)) + H(rho),

    and the graph term gets the mean and the variance of what the value may be: s with 1 - rho, q with rho. The
    log-rate of a count remains uncertain either way, as q says, so the bound has

        log((1 - wrong) exp E_q log p(s | rate) + wrong h(s)) - KL(q || p).
    """

    Options = OutlierOptions
    outcomes = (NormalOutcome,)
    clear: ClassVar[Mapping[str, float]] = {"wrong": 0.0}
    outcome: NormalOutcome

    def __init__(self, sizes: Sizes, replicas: Replicas, options: OutlierOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        wrong = replicas.scalar((options or OutlierOptions()).wrong).unsqueeze(1)
        self.odds = nn.Parameter(wrong.logit().clamp_min(NEVER), requires_grad=False)
        """(R, 1): log-odds of wrong."""

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return torch.logaddexp(self._right() + self.outcome.log_prob(answer, values), self._wrong(values))

    def log_joint(self, q: Tensor, p: Tensor, values: Tensor) -> Tensor:
        outcome, wrong = self.outcome, self._wrong(values)
        kl = outcome.cross_entropy(q, p) - outcome.entropy(q)
        if outcome.of_rates:
            return torch.logaddexp(self._right() + outcome.expected_log_prob(q, values), wrong) - kl
        odds = self._odds_of_wrong(q, values)
        right = self._right() + outcome.log_prob(p, values) - logsigmoid(-odds)
        return (-odds).sigmoid() * right + odds.sigmoid() * (wrong - kl - logsigmoid(odds))

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, 2T): mean and variance."""
        if self.outcome.of_rates:
            return self.outcome.beliefs(answer, targets)
        rho = torch.where(targets.observed, self._odds_of_wrong(answer, targets.values).sigmoid(), 1.0)
        mean, apart = self.outcome.mean(answer), targets.values - self.outcome.mean(answer)
        variance = rho * (self.outcome.variance(answer) + (1 - rho) * apart.square())
        # Where nothing is ever wrong there is no gradient either: that of a square root would be infinite at zero.
        return torch.cat([mean + (1 - rho) * apart, torch.where(rho > 0, variance, 0.0)], dim=2)

    def _odds_of_wrong(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, m, T): the log-odds of rho."""
        return self._wrong(values) - self._right() - self.outcome.log_prob(answer, values)

    def _right(self) -> Tensor:
        """(R, 1, 1): log(1 - wrong)."""
        return logsigmoid(-self.odds).unsqueeze(2)

    def _wrong(self, values: Tensor) -> Tensor:
        """(R, m, T): log wrong + log h."""
        return logsigmoid(self.odds).unsqueeze(2) + self.outcome.anywhere(values)
