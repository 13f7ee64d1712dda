"""One of K classes: the paper's outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from g3nn.base.errors import Problems
from g3nn.base.parse import SHOWN, UNKNOWN, to_numpy
from g3nn.graph import calibrate
from g3nn.graph.calibrate import Scaling, Validated
from g3nn.graph.outcomes.base import Outcome, Targets
from g3nn.graph.outcomes.labels import Labels, Split, check_names, flat_values, is_known, is_missing, name_array, quoted
from g3nn.kernels import node_terms
from g3nn.kernels.backend import fast

TEMPERATURE_STEPS = 25
"""From 0.1 to 10, in equal ratios."""

_LEAST_SHARE = 1e-30
"""Of a class, where one divides by it."""
_MEASURES = ("precision", "recall", "f1", "support", "predicted")
"""Of one class."""


@dataclass(frozen=True)
class Classes(Outcome):
    """y_i is one of K classes. An answer is log q(y_i = k), (R, n, K); beliefs are probabilities, (R, n, K).

    The expectation over the labels of two ends is the sum over their K x K pairs, exact.

    confusion: (K, K), T[k, s] = p(seen = s | true = k), where the labels that judge and calibrate answers may be wrong;
    empty if they are right. Losses are then forward-corrected, and the score is that on true labels.
    """

    confusion: tuple[tuple[float, ...], ...] = ()

    name: ClassVar[str] = "classes"
    score_key: ClassVar[str] = "accuracy"
    score_title: ClassVar[str] = "accuracy"
    measures: ClassVar[Mapping[str, str]] = {"accuracy": "accuracy", "ece": "calibration error"}
    columns_title: ClassVar[str] = "classes"
    values_title: ClassVar[str] = "classes"
    unknown_title: ClassVar[str] = "-1, None or NaN"
    view: ClassVar[str] = "classes"
    exclusive: ClassVar[bool] = True
    pooled: ClassVar[bool] = True

    @classmethod
    def read(
        cls, y: object, n: int, problems: Problems, argument: str = "y", *, in_table: bool = False
    ) -> Labels | None:
        """Classes as strings, whole numbers or booleans; None and NaN are unknown labels, and outside tables -1."""
        values = flat_values(y)
        if values.shape != (n,):
            problems.add(argument, f"shape {values.shape}", f"one label for each of the {n} nodes")
            return None
        labelled = ~is_unknown(values, minus_one=not in_table)
        given = values[labelled].tolist()
        kinds = {_kind(value) for value in given}
        if len(kinds) > 1 or "other" in kinds:
            example = next((value for value in given if _kind(value) == "other"), None)
            mixed = f"values such as {example!r}" if example is not None else f"{' and '.join(sorted(kinds))} mixed"
            allowed = f"strings, whole numbers of 64 bits or booleans; {cls.unknown_title} where unknown"
            problems.add(argument, mixed, allowed, _advice(example))
            return None
        distinct, before = list(dict.fromkeys(given)), len(problems.found)
        check_names(argument, distinct, problems)
        if len(problems.found) > before:
            return None
        classes = name_array(sorted(int(label) if kinds == {"whole numbers"} else label for label in distinct))
        position = {name: k for k, name in enumerate(classes.tolist())}
        codes = np.full(n, UNKNOWN, dtype=np.int64)
        codes[labelled] = [position[label] for label in given]
        if len(classes) < 2:
            few = f"{len(given)} labels of {len(classes)} classes"
            advice = f"Without two there is nothing to tell apart. {cls.unknown_title} is an unknown label."
            if any(_is_minus_one(value) for value in values.tolist()):
                advice += " If -1 is a class, write 0 and 1, or strings; in a table, -1 is a class like any other."
            problems.add(argument, few, "labels of at least 2 classes", advice)
            return None
        return Labels(classes, codes)

    @classmethod
    def encode(cls, y: object, names: np.ndarray, problems: Problems) -> np.ndarray:
        """(m,) positions of the labels among the classes."""
        values, classes = flat_values(y).ravel().tolist(), names.tolist()
        position = {name: k for k, name in enumerate(classes)}
        codes = [UNKNOWN if _kind(value) == "other" else position.get(value, UNKNOWN) for value in values]
        strange = sorted({repr(value) for value, code in zip(values, codes, strict=True) if code == UNKNOWN})
        if strange:
            problems.add("y", ", ".join(strange[:SHOWN]), f"the classes {', '.join(map(repr, classes[:20]))}")
        return np.array(codes, dtype=np.int64)

    @classmethod
    def task_labels(
        cls, labels: object, n: int, columns: int | None, split: Split, problems: Problems
    ) -> tuple[np.ndarray, int]:
        """(n,) whole numbers in 0..K-1, or -1 where unknown. Raises at once if there are no such labels at all."""
        try:
            y = to_numpy(labels)
        except ValueError:  # lists of several lengths
            y = flat_values(labels)
        if y.shape != (n,):
            problems.add("labels", f"shape {y.shape}", f"one label per node, shape ({n},)")
            problems.raise_if_any()
        strange = y[~_are_whole(y)]
        if strange.size:
            given = f"values of type {y.dtype} such as {strange.tolist()[0]!r}"
            problems.add("labels", given, "whole numbers 0..K-1, or -1 for unknown")
            problems.raise_if_any()
        codes = y.astype(np.int64)
        K = int(columns) if columns is not None else int(codes.max(initial=UNKNOWN)) + 1
        if K < 2:
            problems.add("labels", f"{max(K, 0)} classes", "at least 2 classes")
        wrong = (codes < UNKNOWN) | (codes >= K)
        if wrong.any():
            outside = f"{int(wrong.sum())} values outside the classes, e.g. {int(codes[wrong][0])}"
            problems.add("labels", outside, f"-1..{K - 1}")
        parts = cls.check_parts(codes, split, problems)
        if "train" in parts:
            _check_train(codes, 0 if wrong.any() else K, parts["train"], problems)
        return codes, K

    @classmethod
    def check_validation(cls, labels: Labels, val: np.ndarray, problems: Problems) -> None:
        super().check_validation(labels, val, problems)
        _check_classes("val", labels, np.setdiff1d(labels.labelled, val), problems)

    @classmethod
    def hold_out(cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems) -> np.ndarray:
        return cls.folds(labels, share, rng, problems)[0]

    @classmethod
    def folds(
        cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems
    ) -> tuple[np.ndarray, ...]:
        """Each has a share of each class: at least one node, and never all of them. So it is none of a class with one
        label, and rare classes are not in every fold: in the first, and in others by turns."""
        _check_classes("y", labels, labels.labelled, problems)
        counts = np.bincount(labels.values[labels.labelled], minlength=len(labels.names))
        sizes = np.minimum(np.maximum(1, np.rint(share * counts).astype(np.int64)), counts - 1)
        most = int((-(-counts // np.maximum(sizes, 1)))[sizes > 0].max(initial=1))
        chosen: list[list[np.ndarray]] = [[] for _ in range(min(int(1 / share), most))]
        for k, (count, size) in enumerate(zip(counts.tolist(), sizes.tolist(), strict=True)):
            order = rng.permutation(np.flatnonzero(labels.values == k))
            first, *others = chosen
            turn = 0 if size * len(chosen) <= count else k % max(len(others), 1)
            for place, fold in enumerate([first, *others[turn:], *others[:turn]]):
                fold.append(order[place * size : (place + 1) * size])
        found = [np.sort(np.concatenate(fold)) for fold in chosen]
        return tuple(fold for place, fold in enumerate(found) if place == 0 or len(fold))

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: object = None) -> Self:
        return cls(columns)

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

    def mixture(self, answers: Tensor, weights: Tensor | None = None) -> Tensor:
        """The logarithm of the mean probabilities, exact."""
        if weights is not None:
            return (answers + weights.log().view(-1, 1, 1)).logsumexp(0, keepdim=True)
        return answers.logsumexp(0, keepdim=True) - math.log(answers.shape[0])

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """Proportional to q^(1 / temperature)."""
        return (answer / temperature).log_softmax(2)

    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        return node_terms(q, p, targets.label, of_posterior, shares)

    def supervised(self, answer: Tensor, targets: Targets) -> Tensor:
        return _log_prob_at(answer, targets.values, targets.train)

    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        kernels: Any = fast(answer) if answer.is_cuda else None
        if kernels is not None:
            return kernels.validation(answer, targets.values, nodes)
        right = answer.index_select(1, nodes).argmax(2) == targets.values[nodes]
        loss = -_log_prob_at(answer, targets.values, nodes).mean(1)
        return torch.stack([loss, right.to(answer.dtype).mean(1)])

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """At the best of some temperatures, on the device: which is best differs between replicas and epochs."""
        rows = answer.index_select(1, nodes).unsqueeze(1)
        steps = torch.linspace(-1.0, 1.0, TEMPERATURE_STEPS, device=rows.device, dtype=rows.dtype)
        tempered = (rows / (10.0**steps).view(-1, 1, 1)).log_softmax(3)
        wanted = targets.values[nodes].view(1, 1, -1, 1).expand(*tempered.shape[:3], 1)
        return -tempered.gather(3, wanted).squeeze(3).mean(2).amax(1)

    def sharpened(self, mean: Tensor, temperature: float, balanced: bool = False) -> Tensor:
        sharp = (mean.log() / temperature).softmax(2)
        if not balanced:
            return sharp
        even = sharp * (mean.mean(1, keepdim=True) / sharp.mean(1, keepdim=True).clamp(min=_LEAST_SHARE))
        return even / even.sum(2, keepdim=True)

    def around(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        return np.log(mean)

    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        return scaling(answer)

    def with_confusion(self, table: np.ndarray) -> Classes:
        return replace(self, confusion=tuple(map(tuple, table.tolist())))

    @property
    def _table(self) -> np.ndarray | None:
        return np.array(self.confusion) if self.confusion else None

    def label_log_prob(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return calibrate.log_seen(answer.astype(np.float64), labels, self._table)

    def loss_and_score(self, answer: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """With wrong labels among them, the score is the share of right answers that agrees as often with them."""
        loss, agree = super().loss_and_score(answer, labels)
        if self._table is None:
            return loss, agree
        score = min(max(calibrate.right_share(agree, self._table), 0.0), 1.0)
        return -float(self.label_log_prob(answer, labels).mean()), score

    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        return calibrate.fit_temperature(answer, labels, self._table)

    def fit_scaling(self, answer: np.ndarray, labels: np.ndarray, nodes: np.ndarray | None = None) -> Scaling:
        """A temperature, and offsets of the classes as far as these labels support them."""
        return calibrate.fit_scaling(answer, labels, self._table, nodes)

    def with_doubt(self, scaling: Scaling, known: Validated, tried: int) -> Scaling:
        return calibrate.with_doubt(scaling, known, tried, self._table)

    def conformal_labels(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        if self._table is None:
            return labels
        log_norm = self.label_log_prob(answer, labels)[:, None]
        below = (np.exp(answer - log_norm) * self._table.T[labels]).cumsum(1)
        return (below[:, :-1] < np.random.default_rng(0).random((len(labels), 1))).sum(1)

    def conformal_scores(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,): 1 - p(label)."""
        return 1.0 - np.exp(answer[np.arange(len(labels)), labels].astype(np.float64))

    def conformal(self, answer: np.ndarray, scores: np.ndarray, alpha: float) -> np.ndarray:
        return calibrate.conformal_sets(np.exp(answer), scores, alpha)

    def evaluate(
        self, answer: np.ndarray, labels: np.ndarray, region: np.ndarray, names: np.ndarray, flat: bool
    ) -> dict[str, object]:
        """accuracy, balanced_accuracy (the mean recall of the classes that occur), f1_macro, nll (mean of - log p), ece
        (expected calibration error, 15 bins) and brier. `classes` has of each precision, recall, f1, support and
        predicted (how many nodes have it, and how many are predicted as it); and, unless no node or every node has it,
        average_precision, auc and coverage (the share of its nodes whose set holds it)."""
        from sklearn.metrics import average_precision_score, precision_recall_fscore_support, roc_auc_score

        probabilities = np.exp(answer)
        log_prob = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
        given, each = probabilities.argmax(1), np.arange(self.columns)
        precision, recall, f1, support = precision_recall_fscore_support(labels, given, labels=each, zero_division=0.0)
        seen = np.isin(each, np.union1d(labels, given))
        columns = (precision, recall, f1, support, np.bincount(given, minlength=self.columns))
        rows = [dict(zip(_MEASURES, row, strict=True)) for row in zip(*map(np.ndarray.tolist, columns), strict=True)]
        for k in np.flatnonzero((support > 0) & (support < len(labels))).tolist():
            has, p = labels == k, probabilities[:, k]
            found = {"average_precision": average_precision_score(has, p), "auc": roc_auc_score(has, p)}
            rows[k] |= {name: float(value) for name, value in {**found, "coverage": region[has, k].mean()}.items()}
        return {
            "accuracy": float((given == labels).mean()),
            "balanced_accuracy": float(recall[support > 0].mean()),
            "f1_macro": float(f1[seen].mean()),
            "nll": calibrate.negative_log_likelihood(log_prob, labels),
            "ece": calibrate.expected_calibration_error(probabilities, labels),
            "brier": calibrate.brier_score(probabilities, labels),
            "classes": dict(zip(map(str, names.tolist()), rows, strict=True)),
        }

    def groups(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The classes themselves."""
        beliefs, known = np.exp(answer), is_known(labels)
        beliefs[known] = np.eye(self.columns)[labels[known]]
        return labels, beliefs


def _log_prob_at(answer: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    """(R, |nodes|): log q of the labels (n,) at `nodes`."""
    rows = answer.index_select(1, nodes)
    wanted = labels[nodes].view(1, -1, 1).expand(rows.shape[0], -1, 1)
    return rows.gather(2, wanted).squeeze(2)


def _check_train(codes: np.ndarray, K: int, train: np.ndarray, problems: Problems) -> None:
    """K is 0 where labels are wrong and nothing can be said about which classes have training labels."""
    known = np.unique(codes[train])
    # The first ones that are missing are among the first few numbers, however large a label may be.
    missing = np.setdiff1d(np.arange(min(K, known.size + SHOWN)), known)
    if train.size == 0:
        problems.add("train", "no labelled node", "at least one labelled node of each class")
    elif missing.size:
        shown = ", ".join(map(str, missing[:SHOWN]))
        advice = "Label a node of each class, or number the classes without gaps."
        problems.add("train", f"no training label of class {shown}", "at least one of each class", advice)


def _advice(example: object) -> str:
    """What fits values that are no classes."""
    if isinstance(example, float | np.floating):
        return "Unknown label type: continuous. Numbers need outcome 'real' (G3NNRegressor)."
    if isinstance(example, list | tuple | set | frozenset | np.ndarray):
        return "For several tags of a node give (n, T): a column of 0 and 1 for each tag."
    return ""


def is_unknown(values: np.ndarray, minus_one: bool = True) -> np.ndarray:
    """(n,) booleans: where a label is None, NaN or, unless it is a class like any other, -1."""
    if values.dtype.kind in "if":
        return (minus_one & (values == UNKNOWN)) | (values != values)
    if values.dtype != object:
        return np.zeros(values.shape, dtype=bool)
    return np.array([is_missing(value) or (minus_one and _is_minus_one(value)) for value in values], dtype=bool)


def _is_minus_one(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(value == UNKNOWN)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "strings"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, np.timedelta64):  # which numpy takes for a whole number
        return "other"
    if isinstance(value, int | float | np.integer | np.floating) and value % 1 == 0 and -(2**63) <= value < 2**63:
        return "whole numbers"
    return "other"


def _are_whole(values: np.ndarray) -> np.ndarray:
    """Which are whole numbers that stay what they are in 64 bits."""
    if values.dtype.kind not in "biuf":
        return np.zeros(values.shape, dtype=bool)
    with np.errstate(over="ignore"):
        return (values == np.round(values)) & (values >= -(2**63)) & (values < 2**63)


def _check_classes(argument: str, labels: Labels, nodes: np.ndarray, problems: Problems) -> None:
    """There must be a label of each class among the nodes to train on."""
    empty = np.bincount(labels.values[nodes], minlength=len(labels.names)) == 0
    if empty.any():
        every = f"every label of class {quoted(labels.names[empty].tolist())}"
        problems.add(argument, every, "to leave at least one label of each class for training")
