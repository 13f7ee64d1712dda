"""Yes or no: one flag, or several tags that do not exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from g3nn.outcomes.base import NumberOutcome, Targets, ValueOptions


@dataclass(frozen=True)
class Tags(NumberOutcome):
    """y_it is 0 or 1. An answer is the log-odds of each tag, (R, n, T): the share of the tag among the training nodes,
    plus a score. Beliefs are probabilities, (R, n, T).

    With one tag an expectation over both ends of a pair is the sum over their four labels, exact. With several it is a
    closed bound (Jaakkola and Jordan, 2000) from the mean and the variance of the log-odds.
    """

    name: ClassVar[str] = "tags"
    score_key: ClassVar[str] = "tag_accuracy"
    score_title: ClassVar[str] = "share of tags right"
    view: ClassVar[str] = "tags"
    pooled: ClassVar[bool] = True

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: Any = None) -> Self:
        """The share of a tag is taken with one node more that has it and one more that has not."""
        known = ~np.isnan(labels)
        share = (np.where(known, labels, 0.0).sum(0) + 1) / (known.sum(0) + 2)
        start = tuple(float(odds) for odds in np.log(share / (1 - share)))
        return cls(columns, options or ValueOptions(), start=start, spread=tuple(np.sqrt(share * (1 - share)).tolist()))

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        return scores + start.unsqueeze(1)

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return values * answer - softplus(answer)

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        return softplus(p) - q.sigmoid() * p

    def entropy(self, q: Tensor) -> Tensor:
        return softplus(q) - q.sigmoid() * q

    def mean(self, answer: Tensor) -> Tensor:
        return answer.sigmoid()

    def variance(self, answer: Tensor) -> Tensor:
        return answer.sigmoid() * (-answer).sigmoid()

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, T): the probability of each tag says all."""
        return torch.where(targets.observed, targets.values, answer.sigmoid())

    def as_inputs(self, targets: Targets) -> Tensor:
        """1 for a tag, -1 for none, 0 for unknown."""
        return (2 * targets.values - 1) * targets.observed

    def mixture(self, answers: Tensor) -> Tensor:
        """The log-odds of the mean probabilities, exact."""
        yes, no = (logsigmoid(part).logsumexp(0, keepdim=True) for part in (answers, -answers))
        return yes - no

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        return answer / temperature

    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        right = (rows > 0) == (values > 0.5)
        return (right & known).sum((1, 2)).to(rows.dtype) / known.sum()

    def sharpened(self, mean: Tensor, temperature: float) -> Tensor:
        return (torch.logit(mean, eps=1e-7) / temperature).sigmoid()

    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Which of 0 and 1 are likely enough."""
        tail = (1 - level) / 2
        return (mean >= 1 - tail).astype(np.float64), (mean > tail).astype(np.float64)
