"""One of K classes: the paper's outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.evaluate import calibrated_loss, loss_and_accuracy
from g3nn.kernels import node_terms
from g3nn.outcomes.base import Outcome, Targets
from g3nn.parse import UNKNOWN


@dataclass(frozen=True)
class Classes(Outcome):
    """y_i is one of K classes. An answer is log q(y_i = k), (R, n, K); beliefs are probabilities, (R, n, K).

    The expectation over the labels of two ends is the sum over their K x K pairs, exact.
    """

    name: ClassVar[str] = "classes"
    score_key: ClassVar[str] = "accuracy"
    score_title: ClassVar[str] = "accuracy"
    view: ClassVar[str] = "classes"
    pooled: ClassVar[bool] = True

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: Any = None) -> Self:
        return cls(columns)

    def targets(self, labels: np.ndarray, train: np.ndarray, device: torch.device | str, dtype: torch.dtype) -> Targets:
        observed = np.zeros(labels.shape, dtype=bool)
        observed[train] = True
        parts = (labels, labels != UNKNOWN, observed, train)
        values, known, seen, nodes = (torch.from_numpy(part).to(device) for part in parts)
        return Targets(values, known, seen, nodes, torch.ones(self.columns, dtype=dtype, device=device))

    def as_inputs(self, targets: Targets) -> Tensor:
        """One-hot rows."""
        one_hot = torch.nn.functional.one_hot(targets.label.clamp_min(0), self.columns)
        return (one_hot * targets.observed.unsqueeze(1)).to(targets.scale.dtype)

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        return scores.log_softmax(2)

    def mean(self, answer: Tensor) -> Tensor:
        return answer.exp()

    def variance(self, answer: Tensor) -> Tensor:
        q = answer.exp()
        return q * (1 - q)

    def mixture(self, answers: Tensor) -> Tensor:
        """The logarithm of the mean probabilities, exact."""
        return answers.logsumexp(0, keepdim=True) - math.log(answers.shape[0])

    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        return node_terms(q, p, targets.label, of_posterior, shares)

    def supervised(self, answer: Tensor, targets: Targets) -> Tensor:
        rows = answer.index_select(1, targets.train)
        labels = targets.values[targets.train].view(1, -1, 1).expand(rows.shape[0], -1, 1)
        return rows.gather(2, labels).squeeze(2)

    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        return loss_and_accuracy(answer, targets.values, nodes)

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """At the temperature that is best for each answer."""
        return calibrated_loss(answer, targets.values, nodes)

    def sharpened(self, mean: Tensor, temperature: float) -> Tensor:
        return (mean.log() / temperature).softmax(2)

    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Classes have no order: each may be (1) or may not be (0), unless its probability leaves no doubt."""
        return (mean > level).astype(np.float64), (mean > 1 - level).astype(np.float64)
