"""What a page shows of each kind of answer: classes, tags, and numbers (real values and counts)."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from g3nn.base.errors import InputError
from g3nn.graph.calibrate import Bin, degree_bins, reliability_bins, wilson_interval
from g3nn.graph.rare import ASKED, part_of
from g3nn.pages.averages import pooled
from g3nn.pages.described import clean
from g3nn.pages.model import FittedModel
from g3nn.pages.model_graph import FULL, degrees, packed, shares

ALPHA = 0.1
"""A set of classes, or an interval, misses the true value at most this often."""

MOST_BELIEFS = 8
"""Of each node this many classes, tags or columns are embedded, the likeliest classes and tags."""

UNEQUAL = 0.8
"""Beyond this share of the labels, a page says what always answering the most frequent class would reach."""

MOST_CONFUSED = 20
"""A confusion matrix has at most this many rows; the classes with the fewest errors share the last one."""

MOST_RESIDUALS = 2000
"""At most this many residuals are drawn."""

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Levels at which the coverage of intervals is drawn."""

MOST_RARE = 5
"""At most this many rare classes, the rarest, have thresholds."""

WANTED = tuple((asked, share) for asked in ASKED for share in (0.5, 0.8, 0.9))
"""Recall and precision that thresholds are shown for."""

NAME = "name"

Columns = dict[str, int | str | None]
"""Of a table: label -> digits after the point, None for words, `NAME` for the numbers of classes or tags."""


Evaluation = Mapping[str, Any]
"""As `evaluate` of an estimator has it."""


class AnswerView(ABC):
    """The answers of a fitted model as a page shows them.

    files: what its template and its script are called. names: of classes, tags or columns. labels: of the validation
    nodes. mean: (n, K or T), probabilities or expected numbers. doubt: (n,), the higher, the less certain the answer.
    key: (n,), what nodes are sorted by inside a bubble of the map.
    """

    files: ClassVar[str]
    doubt: np.ndarray
    key: np.ndarray

    def __init__(self, fitted: FittedModel) -> None:
        self.task = fitted.task
        self.outcome: Any = fitted.outcome
        self.names = [clean(name) for name in fitted.columns.tolist()]
        self.labels = self.task.labels[self.task.val]
        self.answer = fitted.calibrated()
        self.mean, self.deviation = fitted.outcome.moments(self.answer)

    @abstractmethod
    def beliefs(self, nodes: np.ndarray) -> dict[str, object]:
        """The predictions for these nodes, packed for the script."""

    @abstractmethod
    def table(self, scores: Evaluation | None) -> dict[str, object]:
        """A row for each name. scores: of the validation nodes, if they can judge the model."""

    @abstractmethod
    def charts(self, ids: list[str]) -> dict[str, object]:
        """What the script draws of the validation nodes. ids: the names of all nodes."""


class ClassView(AnswerView):
    files = "model_classes"

    def __init__(self, fitted: FittedModel) -> None:
        super().__init__(fitted)
        self.sets, self.answers = fitted.conformal(ALPHA), self.mean.argmax(1)
        self.key, self.doubt, self.most_entropy = self.answers, _entropy(self.mean), math.log(len(self.names))
        self.full_sets = len(self.labels) < math.ceil(1 / ALPHA) - 1
        self.unseen = [name for k, name in enumerate(self.names) if k not in self.labels]
        given = np.bincount(self.task.labels[np.concatenate([self.task.train, self.task.val])])
        share = given.max() / given.sum()
        self.unequal = (self.names[given.argmax()], share) if share > UNEQUAL else None

    def beliefs(self, nodes: np.ndarray) -> dict[str, object]:
        """The classes of a node's set come first, then the likeliest. Entropy is a share of the highest possible."""
        p, sets, width = self.mean[nodes], self.sets[nodes], min(len(self.names), MOST_BELIEFS)
        classes = np.lexsort((-p, ~sets), axis=1)[:, :width]
        labels = np.full(self.task.num_nodes, FULL)
        for labelled in (self.task.train, self.task.val):
            labels[labelled] = self.task.labels[labelled]
        return {
            "width": width,
            "ranked": packed(classes, np.uint16),
            "beliefs": shares(np.take_along_axis(p, classes, 1)),
            "entropy": shares(self.doubt[nodes] / self.most_entropy),
            "sets": packed(sets.sum(1), np.uint16),
            "label": packed(labels[nodes], np.uint16),
        }

    def table(self, scores: Evaluation | None) -> dict[str, object]:
        groups = self.task.labels[self.task.train], self.labels, self.answers
        counts = np.stack([np.bincount(group, minlength=len(self.names)) for group in groups], axis=1).tolist()
        measured = list(scores["classes"].values()) if scores else [{}] * len(self.names)
        rows = []
        for k, (count, own) in enumerate(zip(counts, measured, strict=True)):
            keys = ("recall", "precision", "average_precision", "auc")
            figures = [own.get(key) if own.get("support") else None for key in keys]
            rows.append([k, *count, _mean(self.mean[self.answers == k, k]), *figures])
        columns: Columns = {"class": NAME, "training labels": 0, "validation labels": 0, "nodes answered": 0}
        columns |= {"mean probability": 2, "recall on validation": 2, "precision": 2, "average precision": 2, "AUC": 2}
        return table("Classes", columns, rows)

    def charts(self, ids: list[str]) -> dict[str, object]:
        p, degree = self.mean[self.task.val], degrees(self.task)[self.task.val]
        return {
            "confusion": self._confusion(self.labels, p.argmax(1)),
            "reliability": _certain(reliability_bins(p, self.labels)),
            "degrees": pooled([degree_bins(p, self.labels, degree)]),
        }

    def _confusion(self, truth: np.ndarray, answers: np.ndarray) -> dict[str, object]:
        """counts[k][l]: nodes of class k that were answered l. cut: whether the last row is shared."""
        K, wrong = len(self.names), truth != answers
        errors = np.bincount(truth[wrong], minlength=K) + np.bincount(answers[wrong], minlength=K)
        cut = K > MOST_CONFUSED
        shown = np.sort(np.argsort(-errors, kind="stable")[: MOST_CONFUSED - 1]) if cut else np.arange(K)
        names = [self.names[k] for k in shown.tolist()] + ["all others"] * cut
        place = np.full(K, len(shown))
        place[shown] = np.arange(len(shown))
        counts = np.zeros((len(names), len(names)), dtype=np.int64)
        np.add.at(counts, (place[truth], place[answers]), 1)
        return {"names": names, "cut": cut, "counts": counts.tolist()}


class TagView(AnswerView):
    files = "model_tags"

    def __init__(self, fitted: FittedModel) -> None:
        super().__init__(fitted)
        self.doubt = _entropy(np.concatenate([self.mean, 1 - self.mean], axis=1))
        self.key = np.where(self.mean.max(1) > 0.5, self.mean.argmax(1), -1)

    def beliefs(self, nodes: np.ndarray) -> dict[str, object]:
        """The likeliest tags of each node, their probabilities and labels (2: not given); how many tags are answered,
        how many are given and how many of these differ; the most doubtful tag."""
        p, labels, width = self.mean[nodes], self.task.labels[nodes], min(len(self.names), MOST_BELIEFS)
        tags = np.argsort(-p, axis=1, kind="stable")[:, :width]
        given = ~np.isnan(labels)
        doubtful = np.abs(p - 0.5).argmin(1)
        return {
            "width": width,
            "ranked": packed(tags, np.uint16),
            "beliefs": shares(np.take_along_axis(p, tags, 1)),
            "labels": packed(np.take_along_axis(np.where(given, labels, 2), tags, 1), np.uint8),
            "answered": packed((p > 0.5).sum(1), np.uint16),
            "given": packed(given.sum(1), np.uint16),
            "differing": packed((given & ((p > 0.5) != labels)).sum(1), np.uint16),
            "entropy": packed(self.doubt[nodes], np.float32),
            "doubtful": packed(doubtful, np.uint16),
            "doubtful_p": shares(np.take_along_axis(p, doubtful[:, None], 1)),
        }

    def table(self, scores: Evaluation | None) -> dict[str, object]:
        from g3nn.graph.outcomes import tag_table

        rows = []
        for t, measured in enumerate(tag_table(self.labels, self.mean[self.task.val])):
            figures = [measured[key] if scores else None for key in ("precision", "recall", "f1")]
            answered = int((self.mean[:, t] > 0.5).sum())
            rows.append([t, _mean(self.task.labels[self.task.train, t]), answered, measured["nodes"], *figures])
        columns: Columns = {"tag": NAME, "share in training": 3, "nodes answered": 0, "validation labels": 0}
        return table("Tags", {**columns, "precision": 3, "recall": 3, "F1": 3}, rows)

    def charts(self, ids: list[str]) -> dict[str, object]:
        known = ~np.isnan(self.labels)
        p = self.mean[self.task.val][known]
        bins = reliability_bins(np.stack([1 - p, p], axis=1), self.labels[known].astype(np.int64))
        return {"reliability": _certain(bins)}


class NumberView(AnswerView):
    files = "model_numbers"

    def __init__(self, fitted: FittedModel) -> None:
        super().__init__(fitted)
        self.names = ["value"] if fitted.flat and self.names == ["0"] else self.names
        self.low, self.high = np.moveaxis(fitted.conformal(1 - (1 - ALPHA)), 2, 0)
        # Of nodes with the same deviation those with fewer neighbours are less certain.
        neighbours = degrees(self.task)
        self.doubt = np.round(self.deviation[:, 0] / self.deviation[:, 0].max(), 6) - 1e-7 * neighbours / (
            1 + neighbours.max()
        )
        self.key = self.mean[:, 0]
        # The share of the deviance of counts is no part of an evaluation.
        deviance = self.outcome.score_key == "d2" and len(self.labels) > 0
        self.score = self.outcome.loss_and_score(self.answer[self.task.val], self.labels)[1] if deviance else None
        self.explained = {"r2": ("R²", "variance"), "d2": ("D²", "deviance")}[self.outcome.score_key]

    def beliefs(self, nodes: np.ndarray) -> dict[str, object]:
        """The first columns; a label that is not given is NaN. Of the first column, scale: the ends of the colours and
        the deviation of the training labels; reach: the ends of drawn intervals. Both leave out a few extremes."""
        width, most = min(len(self.names), MOST_BELIEFS), (0.02, 0.98)
        numbers = {"mean": self.mean, "deviation": self.deviation, "low": self.low, "high": self.high}
        numbers["label"] = self.task.labels
        drawn = np.concatenate([values[:, 0] for values in (self.mean, self.low, self.high)])
        spread = float(np.nanstd(self.task.labels[self.task.train, 0]))
        return {
            "width": width,
            "scale": [*np.quantile(self.mean[:, 0], most).tolist(), spread],
            "reach": np.quantile(drawn[np.isfinite(drawn)], most).tolist(),
            **{name: packed(values[nodes][:, :width], np.float32) for name, values in numbers.items()},
        }

    def table(self, scores: Evaluation | None) -> dict[str, object]:
        rows, training = [], self.task.labels[self.task.train]
        measured = list(scores.get("columns", {"": scores}).values()) if scores else [{}] * len(self.names)
        for t, (name, column, own) in enumerate(zip(self.names, training.T, measured, strict=True)):
            figures = [own.get(key) for key in ("rmse", "mae", "r2", "coverage")]
            if own and self.outcome.score_key == "d2":
                figures[2] = self._explained(t)
            known = int((~np.isnan(column)).sum())
            rows.append([name, known, _mean(column), float(np.nanstd(column)), *figures])
        columns: Columns = {"column": None, "training labels": 0, "mean": 3, "deviation": 3}
        return table("Columns", {**columns, "RMSE": 3, "MAE": 3, self.explained[0]: 3, "coverage": 3}, rows)

    def _explained(self, t: int) -> float | None:
        """The share of the deviance of a column of counts, on the validation nodes; None where values do not differ."""
        from sklearn.metrics import d2_tweedie_score

        known = ~np.isnan(self.labels[:, t])
        values, answers = self.labels[known, t], self.mean[self.task.val][known, t]
        return float(d2_tweedie_score(values, answers, power=1)) if len(np.unique(values)) > 1 else None

    def charts(self, ids: list[str]) -> dict[str, object]:
        """residuals: [id, answer, value less answer, low, high, whether the value is inside] of the first column.
        coverage: [level, share of the values inside] of the intervals that the predicted distributions claim.
        logarithmic: whether the scale of the first column is."""
        val, known = self.task.val, ~np.isnan(self.labels)
        nodes = val[known[:, 0]][:MOST_RESIDUALS]
        answers, values, low, high = (part[nodes, 0] for part in (self.mean, self.task.labels, self.low, self.high))
        residuals = (
            [ids[node] for node in nodes.tolist()],
            answers.tolist(),
            (values - answers).tolist(),
            *([end if math.isfinite(end) else None for end in ends.tolist()] for ends in (low, high)),
            ((low <= values) & (values <= high)).tolist(),
        )
        coverage = []
        for level in LEVELS:
            low, high = self.outcome.claimed(self.answer[val], level)
            coverage.append([level, float(((low <= self.labels) & (self.labels <= high))[known].mean())])
        drawn = {"residuals": list(zip(*residuals, strict=True)), "coverage": coverage}
        return {**drawn, "logarithmic": any(warp.name == "log" for warp in getattr(self.outcome, "warps", ())[:1])}


VIEWS: dict[str, type[AnswerView]] = {"classes": ClassView, "tags": TagView, "numbers": NumberView}
"""By what an outcome calls its view."""


def view_of(fitted: FittedModel) -> AnswerView:
    return VIEWS[fitted.outcome.view](fitted)


def thresholds(fitted: FittedModel, view: AnswerView) -> dict[str, object] | None:
    """By which nodes of rare classes may be chosen, and what that gives on validation nodes, where these support it."""
    rows = list[list[object]]()
    for k, (asked, share) in itertools.product(fitted.rare[:MOST_RARE], WANTED):
        with suppress(InputError):
            one = fitted.threshold(k, asked, share)
            found = part_of(one.hits, one.positives), part_of(one.hits, one.chosen)
            chosen = int((view.mean[:, k] >= one.probability).sum())
            rows.append([k, f"{asked} {share}", f"{one.probability:.3g}", *found, chosen])
    columns: Columns = {"class": NAME, "wanted": None, "from probability": None, "recall": None, "precision": None}
    return table("Thresholds of rare classes", {**columns, "nodes chosen": 0}, rows) if rows else None


def table(caption: str, columns: Columns, rows: Sequence[Sequence[object]]) -> dict[str, object]:
    """A table for the scripts."""
    return {"caption": caption, "columns": columns, "rows": rows}


def _certain(bins: list[Bin]) -> list[list[float]]:
    """As `pooled`, with both ends of an interval that holds the accuracy 19 times in 20."""
    return [[*row, *wilson_interval(row[3], round(row[2]))] for row in pooled([bins])]


def _entropy(p: np.ndarray) -> np.ndarray:
    """In nats, as `predict_entropy` has it."""
    return -(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny))).sum(1)


def _mean(values: np.ndarray) -> float | None:
    """Of the known values, if there are any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
