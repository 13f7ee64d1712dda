"""Numbers of which q and p are normal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.outcomes.base import LOG_TWO_PI, NumberOutcome


@dataclass(frozen=True)
class NormalOutcome(NumberOutcome):
    """An answer holds mean and log-variance, (R, n, 2T), of a normal: of the value itself, or of what it depends on."""

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        (mean, log_variance), (centre, log_width) = q.chunk(2, dim=2), p.chunk(2, dim=2)
        apart = log_variance.exp() + (mean - centre).square()
        return 0.5 * (LOG_TWO_PI + log_width + apart * (-log_width).exp())

    def entropy(self, q: Tensor) -> Tensor:
        return 0.5 * (1 + LOG_TWO_PI + q.chunk(2, dim=2)[1])

    def mixture(self, answers: Tensor) -> Tensor:
        """The normal with mean and variance of the mixture."""
        mean, log_variance = answers.chunk(2, dim=2)
        centre = mean.mean(0, keepdim=True)
        variance = (log_variance.exp() + (mean - centre).square()).mean(0, keepdim=True)
        return torch.cat([centre, variance.log()], dim=2)

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """A density proportional to p^(1 / temperature): the variance times the temperature. A count stays at least as
        uncertain as a Poisson."""
        mean, log_variance = answer.chunk(2, dim=2)
        return torch.cat([mean, log_variance + math.log(temperature)], dim=2)
