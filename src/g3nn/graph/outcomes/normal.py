"""Outcomes whose answers are normal distributions: of the value itself, or of what it depends on."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.outcomes.base import PanelModel
from g3nn.graph.outcomes.numbers import NumberOutcome

LOG_TWO_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class NormalOutcome(NumberOutcome):
    """An answer holds mean and log-variance, (R, n, 2T), of a normal: of the value itself, or of what it depends on."""

    measures: ClassVar[Mapping[str, str]] = {"rmse": "RMSE", "r2": "R²", "coverage": "share inside 90 % intervals"}
    joint_models: ClassVar[tuple[str, ...]] = ("near-gcn", "near-appnp")
    """Models of the panel in which nodes with close values are linked."""
    learns_start: ClassVar[bool] = True
    numbers_per_column: ClassVar[int] = 2
    learner: ClassVar[str] = "regressor"

    @classmethod
    def panel(cls, columns: int, balance: float) -> tuple[PanelModel, ...]:
        """Networks alone, and with a likelihood in which nodes with close values are linked."""
        close, wide = {"refine": True, "graph_weight": balance}, {"hidden": 64}
        return (
            ("mlp", "elbo", {}),
            ("gcn", "elbo", {}),
            *((model, "elbo", close) for model in cls.joint_models),
            *((model, "elbo", wide) for model in ("hops", "sage", "linkx", "appnp", "gat")),
        )

    @abstractmethod
    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest likely value in the caller's unit; what is outside has probability 1 - level or
        less, half of it on either side."""

    @abstractmethod
    def anywhere(self, values: Tensor) -> Tensor:
        """Of the shape of `values`, in our unit: the log-density of a value that has nothing to do with its node."""

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        (mean, log_variance), (centre, log_width) = q.chunk(2, dim=2), p.chunk(2, dim=2)
        apart = log_variance.exp() + (mean - centre).square()
        return 0.5 * (LOG_TWO_PI + log_width + apart * (-log_width).exp())

    def entropy(self, q: Tensor) -> Tensor:
        return 0.5 * (1 + LOG_TWO_PI + q.chunk(2, dim=2)[1])

    def mixture(self, answers: Tensor, weights: Tensor | None = None) -> Tensor:
        """The normal with mean and variance of the mixture."""

        def average(values: Tensor) -> Tensor:
            if weights is None:
                return values.mean(0, keepdim=True)
            return (values * weights.view(-1, 1, 1)).sum(0, keepdim=True)

        mean, log_variance = answers.chunk(2, dim=2)
        centre = average(mean)
        variance = average(log_variance.exp() + (mean - centre).square())
        return torch.cat([centre, variance.log()], dim=2)

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """A density proportional to p^(1 / temperature): the variance times the temperature. A count stays at least as
        uncertain as a Poisson."""
        mean, log_variance = answer.chunk(2, dim=2)
        return torch.cat([mean, log_variance + math.log(temperature)], dim=2)
