"""Outcomes: what a node's label can be, by name."""

from __future__ import annotations

import numpy as np

from g3nn.base.registry import Registry
from g3nn.graph.outcomes.base import COVERAGE, Outcome, PanelModel, Targets
from g3nn.graph.outcomes.classes import Classes
from g3nn.graph.outcomes.counts import Counts
from g3nn.graph.outcomes.labels import Labels, has_label, is_known, unlabelled, without_labels_of
from g3nn.graph.outcomes.numbers import NumberOutcome, ValueOptions, varies
from g3nn.graph.outcomes.real import NormalOutcome, Real, RealOptions
from g3nn.graph.outcomes.tags import Tags, tag_table
from g3nn.graph.outcomes.warps import Warp

_OWN: dict[str, type[Outcome]] = {outcome.name: outcome for outcome in (Classes, Tags, Real, Counts)}
OUTCOMES = Registry("g3nn.outcomes", Outcome, _OWN)


MANY_CLASSES = 20
"""More whole numbers than that are seldom names of classes, unless they count from 0 or 1 without a gap."""


def guessed_outcome(columns: int, numbers: np.ndarray | None) -> type[Outcome]:
    """What label columns probably hold, where the caller does not say. numbers: the values of the only column, if it
    holds numbers."""
    if columns > 1:
        return Tags
    if numbers is None or numbers.size == 0:
        return Classes
    if not np.isfinite(numbers).all() or (numbers % 1 != 0).any():
        return Real
    values = np.unique(numbers)
    gapless = values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1
    if len(values) <= MANY_CLASSES or gapless:
        return Classes
    return Counts if values[0] == 0 else Real


__all__ = [
    "COVERAGE",
    "MANY_CLASSES",
    "OUTCOMES",
    "Classes",
    "Counts",
    "Labels",
    "NormalOutcome",
    "NumberOutcome",
    "Outcome",
    "PanelModel",
    "Real",
    "RealOptions",
    "Tags",
    "Targets",
    "ValueOptions",
    "Warp",
    "guessed_outcome",
    "has_label",
    "is_known",
    "tag_table",
    "unlabelled",
    "varies",
    "without_labels_of",
]
