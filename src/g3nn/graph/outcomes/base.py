"""The contract of an outcome: what kind of thing y_i is, how it is read, and what q and p can say about it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.base.errors import Problems
from g3nn.base.options import NoOptions
from g3nn.base.parse import UNKNOWN
from g3nn.graph.calibrate import Scaling, Validated
from g3nn.graph.outcomes.labels import Labels, Split, has_label, is_known
from g3nn.graph.outcomes.warps import Warp

PanelModel = tuple[str, str, Mapping[str, object]]
"""A model, an objective and options, as `g3nn.fit` takes them."""

COVERAGE = 0.9
"""The level of the intervals that an evaluation looks at."""


@dataclass(frozen=True, eq=False)
class Targets:
    """The outcomes of a task as tensors, in the unit that a model computes in.

    values:   (n,) class numbers, or (n, T) numbers; arbitrary where nothing is known.
    known:    of the shape of `values`: what is known in any part of the split.
    observed: of the shape of `values`: what training may see.
    train:    (|L|,): the training nodes.
    scale:    (T,), or of the shape of `values` where it differs between them: how many of the caller's units one of
              ours is.
    weight:   (|L|,): how often each training node counts in the terms of observed labels; None: once.
    """

    values: Tensor
    known: Tensor
    observed: Tensor
    train: Tensor
    scale: Tensor
    weight: Tensor | None = None

    def first(self, count: int) -> Targets:
        """Of the first nodes, among which are all of training."""
        rows = {name: getattr(self, name)[:count] for name in ("values", "known", "observed")}
        return replace(self, **rows, scale=self.scale_at(slice(count)))

    def scale_at(self, nodes: Tensor | slice) -> Tensor:
        """`scale`, of these nodes if it differs between them."""
        return self.scale if self.scale.ndim == 1 else self.scale[nodes]

    @cached_property
    def label(self) -> Tensor:
        """`values` where training may see them, -1 elsewhere."""
        return torch.where(self.observed, self.values, UNKNOWN)


@dataclass(frozen=True)
class Outcome(ABC):
    """What a node can be: y_i is one of K classes, or T numbers y_i1 .. y_iT that are independent under q and under p.

    Everything that depends on what a label is lives here: how labels are read and checked, what the score is called,
    the maths of q and p, calibration, conformal sets and intervals, and the models that are worth trying.

    An answer (R, n, width) holds the parameters of a distribution for each node, in a form of the outcome's own. A
    component makes one from the scores of its network by `answer`. Beliefs are what enters the graph term: the observed
    value where there is one, else what q (or p) says. Calibration works on (n, width) arrays: the answer of all
    replicas together.

    columns: K or T. location, scale: y = location + scale times our value, (T,) each, empty if nothing is changed.
    start: numbers for each column that an answer needs beyond the scores, e.g. how frequent each tag is. spread: (T,),
    the standard deviation of what a graph may depend on.
    """

    Options: ClassVar[type] = NoOptions
    name: ClassVar[str]
    score_key: ClassVar[str]
    """The name of the score in records and JSON. 1 is perfect."""
    score_title: ClassVar[str]
    """The name of the score in a sentence."""
    measures: ClassVar[Mapping[str, str]]
    """What a summary says of an evaluation: its keys, and their names in a sentence."""
    columns_title: ClassVar[str]
    """What the columns are called in a sentence."""
    values_title: ClassVar[str]
    """What the labels are called in a sentence."""
    unknown_title: ClassVar[str] = "None or NaN"
    """What stands for an unknown label."""
    view: ClassVar[str] = "numbers"
    """How a page shows the answers."""
    learns_start: ClassVar[bool] = False
    """Whether `start` is where learned parameters begin; otherwise it is fixed."""
    exclusive: ClassVar[bool] = False
    """Whether the columns are classes, of which each node has exactly one."""
    flags: ClassVar[bool] = False
    """Whether the columns are tags, of which each node may have any number."""
    of_rates: ClassVar[bool] = False
    """Whether an answer is about the log-rate of a value instead of the value itself."""
    pooled: ClassVar[bool] = False
    """Whether the mean of several beliefs is the belief of their mixture."""
    numbers_per_column: ClassVar[int] = 1
    """How many numbers of an answer are about each class or column."""
    has_scales: ClassVar[bool] = False
    """Whether values may be normal on another scale than their own."""
    learner: ClassVar[str] = "classifier"
    """Which estimators of scikit-learn learn such a label: classifiers or regressors."""

    columns: int
    options: object = None
    location: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    start: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()

    # Reading labels

    @classmethod
    @abstractmethod
    def read(
        cls, y: object, n: int, problems: Problems, argument: str = "y", *, in_table: bool = False
    ) -> Labels | None:
        """The labels of n nodes in any form that a caller may have them; None where a problem was recorded.

        in_table: whether they come from a table, where only an empty cell is an unknown label.
        """

    @classmethod
    @abstractmethod
    def encode(cls, y: object, names: np.ndarray, problems: Problems) -> np.ndarray | None:
        """(m,) or (m, T): labels to judge answers by, of a model whose classes or columns have these names; None where
        they cannot be read."""

    @classmethod
    @abstractmethod
    def task_labels(
        cls, labels: object, n: int, columns: int | None, split: Split, problems: Problems
    ) -> tuple[np.ndarray, int]:
        """The labels of a task, checked together with its split, and K or T."""

    @staticmethod
    def check_parts(values: np.ndarray, split: Split, problems: Problems) -> dict[str, np.ndarray]:
        """The parts of a split that could be read: each must hold labelled nodes only, and no node may be in two."""
        parts = {key: nodes for key, nodes in split.items() if nodes is not None}
        labelled = has_label(values)
        for key, nodes in parts.items():
            missing = int((~labelled[nodes]).sum())
            if missing:
                problems.add(key, f"{missing} nodes without a label", "labelled nodes only", f"Take them out of {key}.")
        for first, second in itertools.combinations(parts, 2):
            shared = np.intersect1d(parts[first], parts[second]).size
            if shared:
                problems.add(f"{first} and {second}", f"{shared} nodes in both", "disjoint sets of nodes")
        if "val" in parts and parts["val"].size == 0:
            advice = "Early stopping needs it."
            problems.add("val", "no validation node", "at least one labelled node outside train", advice)
        if {"train", "val"} <= parts.keys() and parts["train"].size == len(values) and is_known(values).all():
            allowed, advice = "at least one unlabelled node", "Nothing is left to predict."
            problems.add("train", f"all {len(values)} nodes", allowed, advice)
        return parts

    @classmethod
    @abstractmethod
    def check_validation(cls, labels: Labels, val: np.ndarray, problems: Problems) -> None:
        """Validation nodes chosen by the caller must be labelled, as is checked here, and leave enough to train on."""
        unknown = int((~has_label(labels.values)[val]).sum())
        if unknown:
            problems.add("val", f"{unknown} nodes without a label", "labelled nodes only", "Take them out of val.")
        if val.size == 0:
            problems.add("val", "no node", "at least one labelled node", "Leave val out to have a share split off.")

    @classmethod
    @abstractmethod
    def hold_out(cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems) -> np.ndarray:
        """Validation nodes: a share of the labelled ones that leaves enough to train on."""

    @classmethod
    def folds(
        cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems
    ) -> tuple[np.ndarray, ...]:
        """Validation nodes for several replicas: disjoint where replicas may train on different labels."""
        return (cls.hold_out(labels, share, rng, problems),)

    @classmethod
    def panel(cls, columns: int, balance: float) -> tuple[PanelModel, ...]:
        """The models that are worth trying on a new graph; none: those that an estimator tries for classes.

        balance: E / |U|, the weight of the graph term at which edges and nodes count alike, as in the bound.
        """
        return ()

    # The maths of q and p

    @classmethod
    @abstractmethod
    def of(cls, labels: np.ndarray, columns: int, options: object = None) -> Self:
        """The outcome whose unit and start follow from the labels (|L|, T) of the training nodes, NaN where unknown."""

    @property
    def num_scores(self) -> int:
        """How many scores a network gives for each node."""
        return self.columns

    @property
    def refine(self) -> bool:
        """Whether q has parameters for each node."""
        return bool(getattr(self.options, "refine", False))

    def targets(self, labels: np.ndarray, train: np.ndarray, device: torch.device | str, dtype: torch.dtype) -> Targets:
        """The labels of a task in our unit, which is reached in double precision before anything is rounded."""
        known = is_known(labels)
        seen = np.zeros_like(known)
        seen[train] = known[train]
        parts = (self.in_our_unit(labels), known, seen, train, self.unit_at(labels))
        tensors = [torch.from_numpy(part).to(device) for part in parts]
        return Targets(*(one.to(dtype) if one.is_floating_point() else one for one in tensors))

    def unit_at(self, labels: np.ndarray) -> np.ndarray:
        """The scale of `Targets`."""
        return np.ones(self.columns) * (self.scale or 1.0)

    def on_scales(self, warps: tuple[Warp, ...], labels: np.ndarray) -> Self:
        """The same on these scales, if it `has_scales`. labels: (|L|, T), of the training nodes."""
        return self

    def warped(self, labels: np.ndarray) -> np.ndarray:
        """(m, ...): labels as a model of scikit-learn learns them: on the scale on which numbers are normal."""
        return labels

    def in_our_unit(self, labels: np.ndarray) -> np.ndarray:
        """The values of `Targets`. Classes have no unit."""
        return labels

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
    def mixture(self, answers: Tensor, weights: Tensor | None = None) -> Tensor:
        """(1, n, width): one answer for the mixture of R answers (R, n, width) with weights (R,) that sum to 1, or with
        equal ones."""

    @abstractmethod
    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """(R, n, width): less certain where the temperature is above 1, more certain below; the mode stays."""

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

    def observed_prior(self, q: Tensor, p: Tensor, targets: Targets) -> Tensor:
        """(R, |L|): minus what each training node adds to the prior term of `node_terms`."""
        return self.supervised(p, targets)

    @abstractmethod
    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(2, R): the mean of - log q(y) over the known values of `nodes`, in the caller's unit, and the score."""

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(R,): the loss of `validation` after calibration. Without one it is that loss."""
        return self.validation(answer, targets, nodes)[0]

    @abstractmethod
    def sharpened(self, mean: Tensor, temperature: float, balanced: bool = False) -> Tensor:
        """What several passes through q agree on, from their mean: more certain than it, where that has a meaning.
        balanced: with each class about as frequent as before, so that none takes the others over."""

    def in_units(self, answer: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (R, n, K or T) in the caller's unit."""
        mean, variance = (part.double().cpu().numpy() for part in (self.mean(answer), self.variance(answer)))
        return mean * (self.scale or 1.0) + (self.location or 0.0), np.sqrt(variance) * (self.scale or 1.0)

    # Calibration, on answers (n, width) of all replicas together

    def with_confusion(self, table: np.ndarray) -> Outcome:
        """The same for evaluation labels with a confusion matrix (K, K), where that has a meaning."""
        return self

    def log_probs_of(self, answer: np.ndarray, nodes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(m, V): log-probabilities of the V values that single labels, of nodes (m,) in columns (m,), may have."""
        return Scaling()(answer[nodes])

    def outliers(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(n, T) each: the expected values, and the probability that a known label is an outlier. None where labels
        are judged by `log_probs_of` instead."""
        return None

    def averaged(self, answers: Tensor) -> np.ndarray:
        """(n, width): the mixture of R answers (R, n, width)."""
        return np.asarray(self.mixture(answers.double())[0].cpu().numpy())

    def weighted(self, answers: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """(n, width): the mixture of several answers (n, width), with weights that sum to 1."""
        stack = torch.from_numpy(np.stack(answers)).double()
        return np.asarray(self.mixture(stack, torch.from_numpy(weights))[0].numpy())

    def label_log_prob(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,): log p of what is known of each label, in our unit."""
        targets = self.targets(labels, np.arange(len(labels)), "cpu", torch.float64)
        return np.asarray(self.supervised(as_stack(answer), targets)[0].numpy())

    def moments(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (n, K or T) in the caller's unit."""
        mean, deviation = self.in_units(as_stack(answer))
        return mean[0], deviation[0]

    @abstractmethod
    def around(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """(n, width): the answer with a mean (n, K or T) of `warped` labels. spread: (T,), from `spread_around`; a
        probability has none beyond its mean."""

    def spread_around(self, mean: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(T,): that with which answers around means (m, T) fit the known ones of the `warped` labels (m, T) best."""
        return np.zeros(0)

    def loss_and_score(self, answer: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """Mean of - log p over the known labels, in the caller's unit, and the score."""
        targets = self.targets(labels, np.zeros(0, dtype=np.int64), "cpu", torch.float64)
        loss, score = self.validation(as_stack(answer), targets, torch.arange(len(labels)))
        return float(loss), float(score)

    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        """(n, width): the calibrated answer."""
        return np.asarray(self.tempered(as_stack(answer), scaling.temperature)[0].numpy())

    @abstractmethod
    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        """The temperature with the lowest loss on these labels, under a standard normal prior on its logarithm."""

    def fit_scaling(self, answer: np.ndarray, labels: np.ndarray, nodes: np.ndarray | None = None) -> Scaling:
        """How certain answers may be, by these labels. nodes: (n,), of which some may occur more than once."""
        return Scaling(self.temperature(answer, labels))

    def with_doubt(self, scaling: Scaling, known: Validated, tried: int) -> Scaling:
        """The scaling with no more confidence than known labels support, where that has a meaning. tried: how many
        models they chose from."""
        return scaling

    def conformal_labels(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The labels that answers are compared with. In place of one that may be wrong, one is drawn from what it may
        be, by the calibrated answer."""
        return labels

    @abstractmethod
    def conformal_scores(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,) or (n, T): how far each label is from its answer, for split conformal prediction."""

    @abstractmethod
    def conformal(self, answer: np.ndarray, scores: np.ndarray, alpha: float) -> np.ndarray:
        """(n, K) booleans: the classes that cannot be excluded; or (n, T, 2): the ends of an interval. Either misses
        the truth with probability alpha. scores: those of validation nodes."""

    @abstractmethod
    def evaluate(
        self, answer: np.ndarray, labels: np.ndarray, region: np.ndarray, names: np.ndarray, flat: bool
    ) -> dict[str, object]:
        """How good calibrated answers are for nodes whose labels are given. region: `conformal` at 1 - COVERAGE."""

    @abstractmethod
    def groups(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels as groups that may explain edges: numbers (n,), -1 where unknown, and beliefs (n, G), from a
        calibrated answer and the labels that are known."""


def as_stack(answer: np.ndarray) -> Tensor:
    """The answer of one replica."""
    return torch.from_numpy(answer).double().unsqueeze(0)
