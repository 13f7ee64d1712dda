"""What outcomes made of numbers share: T columns, each with a distribution of its own."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from g3nn.base.errors import Problems
from g3nn.base.options import flag
from g3nn.base.parse import SHOWN, UNKNOWN
from g3nn.graph.calibrate import Scaling, best_temperature, conformal_threshold
from g3nn.graph.outcomes.base import Outcome, Targets, as_stack
from g3nn.graph.outcomes.labels import Labels, Split, check_names, is_missing, name_array, quoted, raw_labels

_GROUPS = 5


@dataclass(frozen=True)
class ValueOptions:
    """What can be set on an outcome that is not a class."""

    refine: bool = flag(False, "let q move each node on its own, beyond what its network says; needs a likelihood")


@dataclass(frozen=True)
class NumberOutcome(Outcome):
    """T independent numbers: everything follows from the log-probability, cross-entropy and entropy of each."""

    Options: ClassVar[type] = ValueOptions
    allowed: ClassVar[str]
    """Which numbers a column may hold, in words."""
    advice: ClassVar[str]
    """What to do about other values."""
    constant: ClassVar[str] = "There is nothing to learn in a constant: leave the column out."
    """What to do about a column that never changes."""
    takes_booleans: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def accepts(values: np.ndarray) -> np.ndarray:
        """Which of the values are of this kind."""

    @classmethod
    def read(
        cls, y: object, n: int, problems: Problems, argument: str = "y", *, in_table: bool = False
    ) -> Labels | None:
        """One column (n,) or several (n, T); NaN and None are unknown values."""
        before, labels = len(problems.found), cls._read(y, n, argument, problems)
        if labels is not None:
            cls._check_differ(labels, np.arange(n), argument, "", problems)
        return labels if len(problems.found) == before else None

    @classmethod
    def encode(cls, y: object, names: np.ndarray, problems: Problems) -> np.ndarray | None:
        """(m, T) values; each row must have a known one."""
        labels, T = cls._read(y, None, "y", problems), len(names)
        if labels is None:
            return None
        if labels.values.shape[1] != T:
            columns = f"{labels.values.shape[1]} columns"
            problems.add("y", columns, f"{T} column{'s' if T > 1 else ''}, as in the fit")
            return None
        empty = len(labels.values) - len(labels.labelled)
        if empty:
            advice = "Take these nodes out of nodes."
            problems.add("y", f"{empty} nodes without a value", "a value for each node to judge by", advice)
        return labels.values

    @classmethod
    def task_labels(
        cls, labels: object, n: int, columns: int | None, split: Split, problems: Problems
    ) -> tuple[np.ndarray, int]:
        """(n, T) float64, NaN where unknown. Raises at once if there are no such numbers at all."""
        numbers = cls._read(labels, n, "labels", problems)
        if numbers is None:
            problems.raise_if_any()
        assert numbers is not None
        T = len(numbers.names)
        if columns is not None and columns != T:
            problems.add("num_classes", columns, f"{T}, the number of columns of the labels")
        train = cls.check_parts(numbers.values, split, problems).get("train")
        if train is not None and train.size == 0:
            problems.add("train", "no labelled node", "at least two labelled nodes that differ")
        elif train is not None:
            cls._check_differ(numbers, train, "labels", " among the training nodes", problems)
        return numbers.values, T

    @classmethod
    def _read(cls, y: object, n: int | None, argument: str, problems: Problems) -> Labels | None:
        """Labels of n nodes, if their number is known; None where they are no numbers at all."""
        raw, names = raw_labels(y)
        if raw.ndim not in (1, 2) or raw.size == 0 or (n is not None and len(raw) != n):
            rows = "n" if n is None else n
            problems.add(argument, f"shape {raw.shape}", f"shape ({rows},) or ({rows}, T): one row for each node")
            return None
        check_names(argument, names or (), problems)
        values = cls._floats(raw, argument, problems)
        if values is None:
            return None
        values = values.reshape(len(raw), -1)
        with np.errstate(invalid="ignore"):
            wrong = ~np.isnan(values) & ~cls.accepts(values)
        if wrong.any():
            shown = ", ".join(f"{value:g}" for value in np.unique(values[wrong])[:SHOWN])
            problems.add(argument, f"{int(wrong.sum())} values such as {shown}", cls.allowed, cls.advice)
        return Labels(name_array(names or range(values.shape[1])), values, raw.ndim == 1)

    @classmethod
    def _floats(cls, raw: np.ndarray, argument: str, problems: Problems) -> np.ndarray | None:
        """Numbers with NaN where nothing is known; text and, unless they mean 0 and 1, booleans are problems."""
        if raw.dtype.kind in "iuf" or (raw.dtype.kind == "b" and cls.takes_booleans):
            with np.errstate(over="ignore"):
                return raw.astype(np.float64)
        items = [None if is_missing(item) else item for item in raw.ravel().tolist()]
        plain = bool | int | float | np.integer | np.floating | np.bool_ | None
        texts = [item for item in items if not isinstance(item, plain) or isinstance(item, np.timedelta64)]
        if texts:
            problems.add(argument, f"values such as {texts[0]!r}", cls.allowed, cls.advice)
            return None
        if not cls.takes_booleans and any(isinstance(item, bool | np.bool_) for item in items):
            advice = "True and false need outcome 'tags' or 'classes' (G3NNClassifier)."
            problems.add(argument, "true and false", cls.allowed, advice)
            return None
        return np.array([np.nan if item is None else _float(item) for item in items]).reshape(raw.shape)

    @classmethod
    def _check_differ(cls, labels: Labels, nodes: np.ndarray, argument: str, where: str, problems: Problems) -> None:
        """Every column must have two different values among these nodes."""
        same = ~varies(labels.values[nodes])
        if same.any():
            column = "" if labels.flat else f" in column {quoted(labels.names[same].tolist())}"
            given = "1 sample" if len(nodes) == 1 else "the same value, or none"
            problems.add(argument, f"{given}{where}{column}", "values that differ", cls.constant)

    @classmethod
    def check_validation(cls, labels: Labels, val: np.ndarray, problems: Problems) -> None:
        super().check_validation(labels, val, problems)
        rest = np.setdiff1d(labels.labelled, val)
        cls._check_differ(labels, rest, "val", " left to train on", problems)

    @classmethod
    def hold_out(cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems) -> np.ndarray:
        """Different values of each column stay for training."""
        labelled = labels.labelled
        # Values differ as long as some are above their mean and some are not.
        middle = np.nanmean(labels.values, axis=0)
        sides = np.stack([labels.values > middle, labels.values <= middle], axis=1)
        left, size = sides[labelled].sum(0), max(1, round(share * len(labelled)))
        chosen: list[int] = []
        for node in rng.permutation(labelled).tolist():
            without = left - sides[node]
            if len(chosen) < size and (without > 0).all():
                left = without
                chosen.append(node)
        if not chosen:
            few = f"{len(labelled)} labelled nodes, of which none can be spared to validate on"
            advice = "Label another node with each rare value, or leave its column out."
            problems.add("y", few, "different values of each column besides the validation nodes", advice)
        return np.sort(np.array(chosen, dtype=np.int64))

    @classmethod
    def folds(
        cls, labels: Labels, share: float, rng: np.random.RandomState, problems: Problems
    ) -> tuple[np.ndarray, ...]:
        """Parts of equal size after the first, each of which leaves different values of each column for training."""
        first = cls.hold_out(labels, share, rng, problems)
        rest, size = rng.permutation(np.setdiff1d(labels.labelled, first)), len(first)
        if not size:
            return (first,)
        parts = [rest[start : start + size] for start in range(0, (int(1 / share) - 1) * size, size)]
        middle = np.nanmean(labels.values, axis=0)

        def leaves_enough(part: np.ndarray) -> bool:
            left = labels.values[np.setdiff1d(labels.labelled, part)]
            return bool(((left > middle).any(0) & (left <= middle).any(0)).all())

        return (first, *(np.sort(part) for part in parts if len(part) and leaves_enough(part)))

    @abstractmethod
    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, n, T): the log-probability or density of each of the values (n, T)."""

    @abstractmethod
    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        """(R, n, T): - E_q log p of two answers. Minus the `entropy` of q it is KL(q || p), exactly."""

    @abstractmethod
    def entropy(self, q: Tensor) -> Tensor:
        """(R, n, T): H(q)."""

    @abstractmethod
    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        """(R,): how good the answers `rows` (R, m, width) are for the known ones of values (m, T)."""

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, 2T): mean and variance of each number; an observed one has no variance."""
        mean = torch.where(targets.observed, targets.values, self.mean(answer))
        return torch.cat([mean, torch.where(targets.observed, 0.0, self.variance(answer))], dim=2)

    def in_our_unit(self, labels: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(labels), 0.0, self._standard(self.warped(labels)))

    def _standard(self, warped: np.ndarray) -> np.ndarray:
        return np.asarray((warped - (self.location or 0.0)) / (self.scale or 1.0))

    def warped_moments(self, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (n, T) of `warped` values."""
        mean, deviation = super().in_units(as_stack(answer))
        return mean[0], deviation[0]

    def unwarped(self, values: np.ndarray) -> np.ndarray:
        """(m, T): `warped` values in the caller's unit."""
        return values

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
        cost = known * (targets.scale_at(nodes).log() - self.log_prob(rows, values))
        return torch.stack([cost.sum((1, 2)) / known.sum(), self.score(rows, values, known)])

    def sharpened(self, mean: Tensor, temperature: float, balanced: bool = False) -> Tensor:
        """Unchanged: a mean of numbers cannot be more certain."""
        return mean

    def temperature(self, answer: np.ndarray, labels: np.ndarray) -> float:
        def loss(temperature: float) -> float:
            return self.loss_and_score(self.scaled(answer, Scaling(temperature)), labels)[0]

        return best_temperature(loss, int((~np.isnan(labels)).sum()))

    def conformal_scores(self, answer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n, T): distances in standard deviations, NaN where a label is unknown."""
        mean, deviation = self.warped_moments(answer)
        return np.abs(self.warped(labels) - mean) / deviation

    def conformal(self, answer: np.ndarray, scores: np.ndarray, alpha: float) -> np.ndarray:
        mean, deviation = self.warped_moments(answer)
        width = np.array([conformal_threshold(column[~np.isnan(column)], alpha) for column in scores.T])
        return np.stack([self.unwarped(mean + side * width * deviation) for side in (-1, 1)], axis=2)

    def evaluate(
        self, answer: np.ndarray, labels: np.ndarray, region: np.ndarray, names: np.ndarray, flat: bool
    ) -> dict[str, object]:
        """rmse, mae, r2, log_prob (mean log-probability or density of a value) and coverage (share of the values
        inside 90 % intervals). Of several columns these are means, and `columns` has them for each."""
        targets = self.targets(labels, np.zeros(0, dtype=np.int64), "cpu", torch.float64)
        log_prob = (self.log_prob(as_stack(answer), targets.values)[0] - targets.scale.log()).numpy()
        parts = labels.T, self.moments(answer)[0].T, log_prob.T, region[:, :, 0].T, region[:, :, 1].T
        columns = [_measures(*column) for column in zip(*parts, strict=True)]
        means: dict[str, object] = {
            name: float(np.nanmean([column[name] for column in columns])) for name in columns[0]
        }
        return means if flat else {**means, "columns": dict(zip(map(str, names.tolist()), columns, strict=True))}

    def groups(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The known values of the first column in five groups of about equal size, in their order. Beliefs are the mass
        that a normal with the moments of the answer has in each group, and one-hot where the value is known."""
        values, (mean, deviation) = self.warped(labels)[:, 0], (part[:, 0] for part in self.warped_moments(answer))
        limits = np.unique(np.nanquantile(values, np.arange(1, _GROUPS) / _GROUPS, method="lower"))
        # A group begins above its limit: none may begin above the highest value, and there are at least two groups.
        inner = limits[limits < np.nanmax(values)]
        limits = inner if inner.size else np.array([np.nanmin(values)])
        below = ndtr((limits - mean[:, None]) / np.maximum(deviation, 1e-12)[:, None])
        ends = np.concatenate([np.zeros((len(mean), 1)), below, np.ones((len(mean), 1))], axis=1)
        beliefs, known = np.diff(ends, axis=1), ~np.isnan(values)
        codes = np.full(len(values), UNKNOWN, dtype=np.int64)
        codes[known] = np.searchsorted(limits, values[known])
        beliefs[known] = np.eye(beliefs.shape[1])[codes[known]]
        return codes, beliefs


def varies(values: np.ndarray) -> np.ndarray:
    """(T,) booleans: the columns of values (m, T) with two different known values."""
    low = np.where(np.isnan(values), np.inf, values).min(0, initial=np.inf)
    high = np.where(np.isnan(values), -np.inf, values).max(0, initial=-np.inf)
    different: np.ndarray = low < high
    return different


def _measures(
    values: np.ndarray, mean: np.ndarray, log_prob: np.ndarray, low: np.ndarray, high: np.ndarray
) -> dict[str, float]:
    """Of one column, all arrays (n,). r2 is NaN where values do not differ, and everything is where none is known."""
    known = ~np.isnan(values)
    if not known.any():
        return dict.fromkeys(("rmse", "mae", "r2", "log_prob", "coverage"), float("nan"))
    error, spread = (values - mean)[known], values[known] - values[known].mean()
    total = float((spread**2).sum())
    return {
        "rmse": float(np.sqrt((error**2).mean())),
        "mae": float(np.abs(error).mean()),
        "r2": 1 - float((error**2).sum()) / total if total > 0 else float("nan"),
        "log_prob": float(log_prob[known].mean()),
        "coverage": float(((low <= values) & (values <= high))[known].mean()),
    }


def _float(number: float) -> float:
    """Infinite where it is too large, so that it is refused as such."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
