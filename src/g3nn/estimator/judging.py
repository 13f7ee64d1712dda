"""How the answers of an outcome are averaged over replicas, scaled and judged: classes, and numbers of any kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from g3nn.calibrate import (
    TEMPERATURES,
    Scaling,
    conformal_scores,
    fit_scaling,
    fit_temperature,
    interval_scores,
    negative_log_likelihood,
)
from g3nn.outcomes import NumberOutcome, Outcome
from g3nn.outcomes.classes import Classes


class Judge(ABC):
    """Answers are (n, width) arrays in the form of the outcome, labels (n,) or (n, T) as a task has them."""

    @abstractmethod
    def averaged(self, answers: Tensor) -> np.ndarray:
        """(n, width): of the mean of R replicas (R, n, width)."""

    @abstractmethod
    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        """(n, width)"""

    @abstractmethod
    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        """The one with the lowest loss, but for a standard normal prior on its logarithm."""

    @abstractmethod
    def scaling(self, answer: np.ndarray, labels: np.ndarray) -> Scaling:
        """What these labels teach of how sure answers may be."""

    @abstractmethod
    def loss(self, answer: np.ndarray, labels: np.ndarray) -> float:
        """Mean of - log p over the known labels, in the caller's unit."""

    @abstractmethod
    def score(self, answer: np.ndarray, labels: np.ndarray) -> float:
        """Accuracy, or what else the outcome calls its score."""

    @abstractmethod
    def strangeness(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,) or (n, T): how strange each label is, for split conformal answers."""


class ClassJudge(Judge):
    """An answer holds the log-probabilities of K classes."""

    def averaged(self, answers: Tensor) -> np.ndarray:
        return np.asarray(Classes(answers.shape[2]).mixture(answers.double())[0].cpu().numpy())

    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        return scaling(answer)

    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        return fit_temperature(answer, labels)

    def scaling(self, answer: np.ndarray, labels: np.ndarray) -> Scaling:
        return fit_scaling(answer, labels)

    def loss(self, answer: np.ndarray, labels: np.ndarray) -> float:
        return negative_log_likelihood(answer, labels)

    def score(self, answer: np.ndarray, labels: np.ndarray) -> float:
        return float((answer.argmax(1) == labels).mean())

    def strangeness(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return conformal_scores(np.exp(answer), labels)


@dataclass(frozen=True)
class NumberJudge(Judge):
    """An answer holds the parameters of T distributions. A temperature is all that is learned of them afterwards: it
    multiplies variances (of log-rates, for counts) and divides log-odds."""

    outcome: NumberOutcome

    def averaged(self, answers: Tensor) -> np.ndarray:
        return np.asarray(self.outcome.mixture(answers.double())[0].cpu().numpy())

    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        return np.asarray(self.outcome.tempered(_stack(answer), scaling.temperature)[0].numpy())

    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        known = int((~np.isnan(labels)).sum())
        if known == 0:
            return 1.0
        from scipy.optimize import minimize_scalar

        def cost(log_temperature: float) -> float:
            loss = self.loss(self.scaled(answer, Scaling(math.exp(log_temperature))), labels)
            return known * loss + log_temperature**2 / 2 if math.isfinite(loss) else math.inf

        bounds = tuple(math.log(limit) for limit in TEMPERATURES)
        return math.exp(float(minimize_scalar(cost, bounds=bounds, method="bounded").x))

    def scaling(self, answer: np.ndarray, labels: np.ndarray) -> Scaling:
        return Scaling(self.temperature(answer, labels))

    def loss(self, answer: np.ndarray, labels: np.ndarray) -> float:
        return -float(np.nanmean(self.log_prob(answer, labels)))

    def log_prob(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n, T): of each label in the caller's unit, NaN where it is unknown."""
        scale = np.array(self.outcome.scale or 1.0)
        values = (labels - np.array(self.outcome.location or 0.0)) / scale
        known = torch.from_numpy(np.nan_to_num(values))
        found = self.outcome.log_prob(_stack(answer), known)[0].numpy() - np.log(scale)
        return np.where(np.isnan(labels), np.nan, found)

    def score(self, answer: np.ndarray, labels: np.ndarray) -> float:
        values = (labels - np.array(self.outcome.location or 0.0)) / np.array(self.outcome.scale or 1.0)
        known = torch.from_numpy(~np.isnan(labels))
        return float(self.outcome.score(_stack(answer), torch.from_numpy(np.nan_to_num(values)), known)[0])

    def strangeness(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n, T): distances in standard deviations, NaN where a label is unknown."""
        mean, deviation = self.in_units(answer)
        found = np.full(labels.shape, np.nan)
        found[~np.isnan(labels)] = interval_scores(mean, deviation, labels)
        return found

    def in_units(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (n, T) in the caller's unit."""
        mean, deviation = self.outcome.in_units(_stack(answer))
        return mean[0], deviation[0]


def _stack(answer: np.ndarray) -> Tensor:
    """As the answer of one replica."""
    return torch.from_numpy(answer).double().unsqueeze(0)


CLASSES = ClassJudge()


def judge_of(outcome: Outcome) -> Judge:
    return NumberJudge(outcome) if isinstance(outcome, NumberOutcome) else CLASSES
