"""Outcomes: what a node's label can be, by name."""

from __future__ import annotations

from g3nn.outcomes.base import COVERAGE, Outcome, PanelModel, Targets
from g3nn.outcomes.classes import Classes
from g3nn.outcomes.counts import Counts
from g3nn.outcomes.labels import Labels, has_label, is_known, unlabelled, without_labels_of
from g3nn.outcomes.normal import NormalOutcome
from g3nn.outcomes.numbers import NumberOutcome, varies
from g3nn.outcomes.real import Real
from g3nn.outcomes.tags import Tags, tag_table

OUTCOMES: dict[str, type[Outcome]] = {outcome.name: outcome for outcome in (Classes, Tags, Real, Counts)}


def guessed_outcome(columns: int, fractions: bool) -> type[Outcome]:
    """What label columns probably hold, if nobody says so."""
    if columns > 1:
        return Tags
    return Real if fractions else Classes


__all__ = [
    "COVERAGE",
    "OUTCOMES",
    "Classes",
    "Counts",
    "Labels",
    "NormalOutcome",
    "NumberOutcome",
    "Outcome",
    "PanelModel",
    "Real",
    "Tags",
    "Targets",
    "guessed_outcome",
    "has_label",
    "is_known",
    "tag_table",
    "unlabelled",
    "varies",
    "without_labels_of",
]
