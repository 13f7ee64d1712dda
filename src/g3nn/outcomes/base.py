"""The contract of an outcome: what kind of thing y_i is, and what q and p can say about it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.options import NoOptions, flag
from g3nn.parse import UNKNOWN

LOG_TWO_PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Targets:
    """The outcomes of a task as tensors, in the unit that a model computes in.

    values:   (n,) class numbers, or (n, T) numbers; anything where nothing is known.
    known:    of the shape of `values`: what somebody has told us, in whatever part of the split.
    observed: of the shape of `values`: what training may see.
    train:    (|L|,): the training nodes.
    scale:    (T,): how many of the caller's units one of ours is.
    """

    values: Tensor
    known: Tensor
    observed: Tensor
    train: Tensor
    scale: Tensor

    @cached_property
    def label(self) -> Tensor:
        """`values` where training may see them, -1 elsewhere."""
        return torch.where(self.observed, self.values, UNKNOWN)


@dataclass(frozen=True)
class ValueOptions:
    """What can be set on an outcome that is not a class."""

    refine: bool = flag(False, "let q move each node on its own, beyond what its network says; needs a likelihood")


@dataclass(frozen=True)
class Outcome(ABC):
    """What a node can be: y_i is one of K classes, or T numbers y_i1 .. y_iT that are independent under q and under p.

    An answer (R, n, width) holds the parameters of a distribution for each node, in a form of the outcome's own. A
    component makes one from the scores of its network by `answer`. Beliefs are what enters the graph term: the observed
    value where there is one, else what q (or p) says.

    columns: K or T. location, scale: y = location + scale times our value, (T,) each, empty if nothing is changed.
    start: numbers for each column that an answer needs beyond the scores, e.g. how frequent each tag is. spread: (T,),
    the standard deviation of what a graph may depend on.
    """

    Options: ClassVar[type] = NoOptions
    name: ClassVar[str]
    score_key: ClassVar[str]
    """What the score is called in records and JSON. 1 is perfect."""
    score_title: ClassVar[str]
    """What the score is called in a sentence."""
    view: ClassVar[str] = "numbers"
    """How a page shows its answers."""
    learns_start: ClassVar[bool] = False
    """Whether `start` is where learned parameters begin; else it is fixed."""
    pooled: ClassVar[bool] = False
    """Whether the mean of several beliefs is the belief of their mixture."""

    columns: int
    options: Any = None
    location: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    start: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()

    @classmethod
    @abstractmethod
    def of(cls, labels: np.ndarray, columns: int, options: Any = None) -> Self:
        """The outcome whose unit and start follow from the labels (|L|, T) of the training nodes, NaN where unknown."""

    @property
    def num_scores(self) -> int:
        """How many scores a network gives for each node."""
        return self.columns

    @property
    def refine(self) -> bool:
        """Whether q has parameters for each node."""
        return bool(getattr(self.options, "refine", False))

    @abstractmethod
    def targets(self, labels: np.ndarray, train: np.ndarray, device: torch.device | str, dtype: torch.dtype) -> Targets:
        """The labels of a task in our unit."""

    @abstractmethod
    def as_inputs(self, targets: Targets) -> Tensor:
        """(n, K) or (n, T): the observed labels as inputs of a network, zero where there is none."""

    @abstractmethod
    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        """(R, n, width) from scores (R, n, num_scores) and `start`, one row for each replica."""

    @abstractmethod
    def mean(self, answer: Tensor) -> Tensor:
        """(R, n, K) probabilities, or (R, n, T): the expectation of each number, in our unit."""

    @abstractmethod
    def variance(self, answer: Tensor) -> Tensor:
        """(R, n, K) or (R, n, T): of the indicator of each class, or of each number in our unit."""

    @abstractmethod
    def mixture(self, answers: Tensor) -> Tensor:
        """(1, n, width): one answer for the equal mixture of R answers (R, n, width)."""

    @abstractmethod
    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        """What the loss needs of the answers q and p at each node.

        Returns sums (R, 4): of - log q(y) and of - log p(y) over what is observed, of - E_q log p and of H(q) over the
        rest, each with its share; and the beliefs of q if `of_posterior`, else of p.
        """

    @abstractmethod
    def supervised(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, |L|): the log-probability of what was observed of each training node."""

    @abstractmethod
    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(2, R): the mean of - log q(y) over the known values of `nodes`, in the caller's unit, and the score."""

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(R,): the loss of `validation` after calibration. Without one it is that loss."""
        return self.validation(answer, targets, nodes)[0]

    @abstractmethod
    def sharpened(self, mean: Tensor, temperature: float) -> Tensor:
        """What several passes through q agree on, from their mean: surer than the mean, where that has a meaning."""

    @abstractmethod
    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest likely value in the caller's unit; what is outside has probability 1 - level or
        less, half of it on either side."""

    def in_units(self, answer: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (R, n, K or T) in the caller's unit."""
        mean, variance = (part.double().cpu().numpy() for part in (self.mean(answer), self.variance(answer)))
        return mean * (self.scale or 1.0) + (self.location or 0.0), np.sqrt(variance) * (self.scale or 1.0)


@dataclass(frozen=True)
class NumberOutcome(Outcome):
    """T independent numbers: everything follows from the log-probability, cross-entropy and entropy of each."""

    Options: ClassVar[type] = ValueOptions

    @abstractmethod
    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, n, T): the log-probability or density of each of the values (n, T)."""

    @abstractmethod
    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        """(R, n, T): - E_q log p of two answers. Less the `entropy` of q it is KL(q || p), exactly."""

    @abstractmethod
    def entropy(self, q: Tensor) -> Tensor:
        """(R, n, T): H(q)."""

    @abstractmethod
    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """(R, n, width): less sure where the temperature is above 1, surer below; the likeliest value stays."""

    @abstractmethod
    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        """(R,): how good the answers `rows` (R, m, width) are for the known ones of values (m, T)."""

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, 2T): mean and variance of each number; an observed one has no variance."""
        mean = torch.where(targets.observed, targets.values, self.mean(answer))
        return torch.cat([mean, torch.where(targets.observed, 0.0, self.variance(answer))], dim=2)

    def targets(self, labels: np.ndarray, train: np.ndarray, device: torch.device | str, dtype: torch.dtype) -> Targets:
        """In our unit, which is reached in double precision before anything is rounded."""
        known = ~np.isnan(labels)
        seen = np.zeros_like(known)
        seen[train] = known[train]
        values = np.where(known, (labels - (self.location or 0.0)) / (self.scale or 1.0), 0.0)
        scale = np.ones(self.columns) * (self.scale or 1.0)
        numbers = [torch.from_numpy(part).to(device, dtype) for part in (values, scale)]
        masks = [torch.from_numpy(part).to(device) for part in (known, seen, train)]
        return Targets(numbers[0], masks[0], masks[1], masks[2], numbers[1])

    def as_inputs(self, targets: Targets) -> Tensor:
        return targets.values * targets.observed

    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        parts = (
            -shares[0] * self.supervised(q, targets).sum(1),
            -shares[0] * self.supervised(p, targets).sum(1),
            shares[1] * (self.cross_entropy(q, p) * ~targets.observed).sum((1, 2)),
            shares[1] * (self.entropy(q) * ~targets.observed).sum((1, 2)),
        )
        return torch.stack(parts, dim=1), self.beliefs(q if of_posterior else p, targets)

    def supervised(self, answer: Tensor, targets: Targets) -> Tensor:
        train = targets.train
        rows = self.log_prob(answer.index_select(1, train), targets.values.index_select(0, train))
        return (rows * targets.observed.index_select(0, train)).sum(2)

    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        rows, values, known = answer.index_select(1, nodes), targets.values[nodes], targets.known[nodes]
        cost = known * (targets.scale.log() - self.log_prob(rows, values))
        return torch.stack([cost.sum((1, 2)) / known.sum(), self.score(rows, values, known)])

    def sharpened(self, mean: Tensor, temperature: float) -> Tensor:
        """As it is: a mean of numbers cannot be surer."""
        return mean


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
