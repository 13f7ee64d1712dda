"""What is believed of the nodes of a graph: classes, tags or numbers, in the form in which a page holds them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from g3nn.report.averages import tidy
from g3nn.report.model_graph import FULL, MOST_CLASSES, Findings, packed, shares

_MOST = (0.02, 0.98)
"""Between these shares lies what a scale is made for; what is beyond stands at its end."""


@dataclass(frozen=True, eq=False)
class ClassFindings(Findings):
    """probabilities, sets: (n, K)."""

    classes: list[str]
    probabilities: np.ndarray
    sets: np.ndarray

    @cached_property
    def answers(self) -> np.ndarray:
        """(n,): the likeliest class."""
        return self.probabilities.argmax(1)

    @cached_property
    def doubt(self) -> np.ndarray:
        """(n,): entropy as a share of the highest that is possible, so from 0 to 1."""
        known = np.maximum(self.probabilities, np.finfo(np.float64).tiny)
        return -(self.probabilities * np.log(known)).sum(1) / np.log(len(self.classes))

    def beliefs(self, nodes: np.ndarray) -> dict[str, Any]:
        """The likeliest classes of each node and their probabilities. A set is the first so many of its classes."""
        probabilities, sets = self.probabilities[nodes], self.sets[nodes]
        width = min(len(self.classes), MOST_CLASSES)
        classes = np.lexsort((-probabilities, ~sets), axis=1)[:, :width]
        labels = np.full(self.task.num_nodes, FULL)
        for own in (self.task.train, self.task.val):
            labels[own] = self.task.labels[own]
        return {
            "width": width,
            "classes": packed(classes, np.uint16),
            "beliefs": shares(np.take_along_axis(probabilities, classes, 1)),
            "entropy": shares(self.doubt[nodes]),
            "sets": packed(sets.sum(1), np.uint16),
            "label": packed(labels[nodes], np.uint16),
        }


@dataclass(frozen=True, eq=False)
class TagFindings(Findings):
    """probabilities: (n, T). entropy: (n,), in nats, summed over tags."""

    tags: list[str]
    probabilities: np.ndarray
    entropy: np.ndarray

    @property
    def doubt(self) -> np.ndarray:
        return self.entropy

    def beliefs(self, nodes: np.ndarray) -> dict[str, Any]:
        """The likeliest tags of each node, their probabilities and labels (2: not given); how many tags are likelier
        than not, how many are labelled and how many of these differ; the tag next to one half."""
        p, labels = self.probabilities[nodes], self.task.labels[nodes]
        width = min(len(self.tags), MOST_CLASSES)
        tags = np.argsort(-p, axis=1, kind="stable")[:, :width]
        given = ~np.isnan(labels)
        doubtful = np.abs(p - 0.5).argmin(1)
        return {
            "width": width,
            "tags": packed(tags, np.uint16),
            "beliefs": shares(np.take_along_axis(p, tags, 1)),
            "labels": packed(np.take_along_axis(np.where(given, labels, 2), tags, 1), np.uint8),
            "answered": packed((p > 0.5).sum(1), np.uint16),
            "given": packed(given.sum(1), np.uint16),
            "differing": packed((given & ((p > 0.5) != labels)).sum(1), np.uint16),
            "entropy": packed(self.entropy[nodes], np.float32),
            "doubtful": packed(doubtful, np.uint16),
            "doubtful_p": shares(np.take_along_axis(p, doubtful[:, None], 1)),
        }


@dataclass(frozen=True, eq=False)
class NumberFindings(Findings):
    """mean, deviation: (n, T). interval: (2, n, T)."""

    names: list[str]
    mean: np.ndarray
    deviation: np.ndarray
    interval: np.ndarray

    @property
    def doubt(self) -> np.ndarray:
        """(n,): the deviation of the first column."""
        return self.deviation[:, 0]

    def beliefs(self, nodes: np.ndarray) -> dict[str, Any]:
        """The first columns; a label that is not given is NaN. Of the first column, scale: from where to where colours
        go, and the deviation of the training labels; reach: from where to where intervals are drawn."""
        width = min(len(self.names), MOST_CLASSES)
        low, high = self.interval
        numbers = {"mean": self.mean, "deviation": self.deviation, "low": low, "high": high}
        numbers["label"] = self.task.labels
        ends = np.quantile(self.mean[:, 0], _MOST).tolist()
        spread = float(np.nanstd(self.task.labels[self.task.train, 0]))
        drawn = np.concatenate([self.mean[:, 0], low[:, 0], high[:, 0]])
        reach = np.quantile(drawn[np.isfinite(drawn)], _MOST).tolist()
        return {
            "width": width,
            "columns": self.names[:width],
            "scale": [tidy(value) for value in (*ends, spread)],
            "reach": [tidy(value) for value in reach],
            **{name: packed(values[nodes][:, :width], np.float32) for name, values in numbers.items()},
        }
