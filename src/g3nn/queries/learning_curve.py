"""What to expect from how many labels: a power law, fitted to trainings on some of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy.stats

from g3nn.base.errors import TrainingError, refuse
from g3nn.graph.task import NodeTask
from g3nn.training.plan import Plan
from g3nn.training.progress import Course

LEVEL, REPEATS = 0.9, 3
"""The probability of an interval, and how many times labels are put into a random order."""
SHARES = (0.25, 0.5, 0.75)
"""Of the labels, that are trained on."""
MORE, TIMES = 10, (2, 4)
"""How many labels more are looked at, and how many times as many, unless the caller asks for others."""
_RATES = scipy.stats.gamma.ppf((np.arange(80) + 0.5) / 80, 2, scale=1 / 8)
"""Quantiles of the prior of b: 0.25 on average, nearly always below 0.75."""
_ERRORS = np.sin(np.pi / 2 * (np.arange(200) + 0.5) / 200) ** 2
"""Quantiles of the prior of the error of a network with all labels, an arcsine distribution."""
_NOW = (np.arange(40) + 0.5) / 40
"""Which quantiles of the error of the fit are looked at."""
_LUCK = 0.2 * scipy.stats.norm.ppf((np.arange(15) + 0.5) / 15)
"""Of what it adds to the logarithm of the error which labels came in: with e times as many labels 0.2 either way."""
_PRIOR_LABELS = 2
"""What calibration is worth, in labels, where none took part."""


class Trained(NamedTuple):
    """What networks that were trained on so many labels said of others. wrong: the share of wrong answers. judged: how
    many different labels they were judged by."""

    labels: int
    wrong: float
    judged: int


class Gain(NamedTuple):
    """What so many more labels add to the score: expected, and low and high ends of a 90 % interval."""

    labels: int
    score: float
    low: float
    high: float

    def __str__(self) -> str:
        """Such as "ten more labels would probably give +2 points of accuracy (0 to +4)"."""
        score, low, high = (f"{points:+d}" if (points := round(100 * share)) else "0" for share in self[1:])
        many = "ten" if self.labels == 10 else f"{self.labels:,}"
        label = "label" if self.labels == 1 else "labels"
        return f"{many} more {label} would probably give {score} points of accuracy ({low} to {high})"


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """The accuracy to expect from so many labels; see docs/method.md.

    labels: (m,) numbers of labels. score: (m,) expected accuracy on nodes without a label; low, high: (m,) ends of 90 %
    intervals. measured: (m,) whether networks were trained on so many labels. known: how many the fit had. trained:
    what those networks said of labels that were left out. error: the share of wrong answers that the fit expects of
    itself, calibrated by so many labels as `judged`.
    """

    known: int
    labels: np.ndarray
    trained: tuple[Trained, ...]
    error: float
    judged: int
    classes: int

    @classmethod
    def fit(cls, trained: Iterable[Trained], known: int, error: float, judged: int, classes: int, nodes: int) -> Self:
        """At the numbers that networks were trained on, that of the fit, and some more. nodes: how many there are."""
        trained = tuple(trained)
        more = [min(count, max(nodes, known)) for count in (known, known + MORE, *(known * times for times in TIMES))]
        labels = np.unique([*(one.labels for one in trained), *more])
        return cls(known, labels, trained, error, judged, classes)

    def at(self, labels: object) -> Self:
        """The same curve at other numbers of labels."""
        return replace(self, labels=numbers_of_labels(labels))

    @property
    def score(self) -> np.ndarray:
        return 1 - self._told[0]

    @property
    def low(self) -> np.ndarray:
        return 1 - self._told[2]

    @property
    def high(self) -> np.ndarray:
        return 1 - self._told[1]

    @property
    def measured(self) -> np.ndarray:
        return np.isin(self.labels, [one.labels for one in self.trained])

    def gain(self, more: int = MORE) -> Gain:
        """What to expect from so many labels in addition to those of the fit."""
        (count,) = numbers_of_labels(more).tolist()
        less = self._errors(self.known) - self._errors(self.known + count)
        return Gain(count, *(float(value) for value in _summed(less, self._shares)))

    @cached_property
    def _told(self) -> np.ndarray:
        """(3, m): expected errors, and both ends of their intervals."""
        return np.stack([_summed(self._errors(count), self._shares) for count in self.labels.tolist()], axis=1)

    @cached_property
    def _shares(self) -> np.ndarray:
        """(B,): the posterior of the exponent, by what networks said, whatever their errors are with all labels."""
        log_prob = np.zeros((len(_RATES), len(_ERRORS)))
        for one in self.trained:
            wrong = _ERRORS * (one.labels / self.known) ** -_RATES[:, None]
            wrong = np.clip(wrong, 1e-9, 1 - 1 / self.classes)
            log_prob += one.judged * (one.wrong * np.log(wrong) + (1 - one.wrong) * np.log1p(-wrong))
        shares = np.exp(log_prob - log_prob.max()).sum(1)
        return np.asarray(shares / shares.sum())

    def _errors(self, labels: int) -> np.ndarray:
        """(B, L, E): the error with so many labels, for each exponent, luck, and error of the fit."""
        mean = min(max(self.error, 1e-6), 1 - 1e-6)
        # What calibration is sure of it is taken to have seen.
        strength = max(self.judged + _PRIOR_LABELS, 0.5 / min(mean, 1 - mean))
        now = scipy.stats.beta.ppf(_NOW, strength * mean, strength * (1 - mean))
        now = np.minimum(now * (mean / now.mean()), 1.0)
        log_ratio = math.log(labels / self.known)
        lucky = np.exp(_LUCK * math.sqrt(abs(log_ratio)))
        law = np.exp(-_RATES * log_ratio)[:, None, None] * (lucky / lucky.mean())[:, None] * now
        # The law ends where guessing is as good; the fit may be worse.
        return np.minimum(law, np.maximum(1 - 1 / self.classes, now))

    def __str__(self) -> str:
        rows = zip(self.labels.tolist(), self.score, self.low, self.high, strict=True)
        lines = [f"{count:,} labels: {score:.0%} ({low:.0%} to {high:.0%})" for count, score, low, high in rows]
        return "\n".join([f"{self.gain()}:".capitalize(), *lines])

    __repr__ = __str__


def numbers_of_labels(given: object) -> np.ndarray:
    """(m,): one or several numbers of labels, each once and in order."""
    asked = np.atleast_1d(np.asarray(given))
    if asked.dtype.kind not in "iu" or asked.ndim != 1 or not asked.size or asked.min() < 1:
        refuse("labels", repr(given), "whole numbers of at least 1, such as [50, 100]")
    return np.unique(asked)


def _summed(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(3,): the mean of values (B, ...) whose first axis has these shares, and both ends of the interval."""
    weights = np.broadcast_to(shares.reshape(-1, *[1] * (values.ndim - 1)) / values[0].size, values.shape).ravel()
    flat = values.ravel()
    order = np.argsort(flat, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    ends = np.interp([(1 - LEVEL) / 2, (1 + LEVEL) / 2], below, flat[order])
    return np.array([flat @ weights, *ends])


def nested_order(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,): an order of n labels whose first ones are one of each class; every beginning of it has about the same share
    of each class."""
    place = np.empty(len(labels))
    for k in np.unique(labels):
        (own,) = np.nonzero(labels == k)
        shuffled = rng.permutation(own)
        place[shuffled] = (np.arange(len(own)) + rng.random()) / len(own)
        place[shuffled[0]] -= 1
    return np.argsort(place, kind="stable")


def trained_on_some(
    plan: Plan, task: NodeTask, weights: np.ndarray | None, seed: int, progress: Course
) -> list[Trained]:
    """Networks trained on some of the training labels of a task, and judged by all its other labels. No subset lacks a
    class."""
    nodes, found, rng = task.train, list[Trained](), np.random.default_rng(seed)
    orders = [nodes[nested_order(task.labels[nodes], rng)] for _ in range(REPEATS)]
    fewest = len(np.unique(task.labels[nodes]))
    sizes = {max(round(share * len(nodes)), fewest) for share in SHARES} - {len(nodes)}
    progress.stage("training on some of the labels", 1.0, max(len(sizes) * REPEATS, 1))
    known = np.union1d(nodes, task.val)
    for size in sorted(sizes):
        right, judged = list[np.ndarray](), list[np.ndarray]()
        for repeat, order in enumerate(orders):
            some, others = np.sort(order[:size]), np.setdiff1d(known, order[:size])
            one = replace(plan, seeds=(seed + repeat,))
            result = one.fit(replace(task, train=some, val=others[:0]), progress, weights)
            if "diverged" in result.status:
                raise TrainingError("a network diverged when it was trained on some of the labels: try a lower lr")
            answer = task.outcome_model().averaged(result.answers)[others]
            right.append(answer.argmax(1) == task.labels[others])
            judged.append(others)
        distinct = len(np.unique(np.concatenate(judged)))
        found.append(Trained(size, 1 - float(np.concatenate(right).mean()), distinct))
    return found
