"""Outcomes: what a node's label can be, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from g3nn.options import pick
from g3nn.outcomes.base import NormalOutcome, NumberOutcome, Outcome, Targets, ValueOptions
from g3nn.outcomes.classes import Classes
from g3nn.outcomes.counts import Counts
from g3nn.outcomes.real import Real
from g3nn.outcomes.tags import Tags

if TYPE_CHECKING:
    from g3nn.task import NodeTask

OUTCOMES: dict[str, type[Outcome]] = {
    "classes": Classes,
    "tags": Tags,
    "real": Real,
    "counts": Counts,
}


def outcome_of(task: NodeTask, options: Mapping[str, Any] | None = None) -> Outcome:
    """The outcome of a task, in the unit of its training labels, with those of the options that it declares."""
    kind = OUTCOMES[task.outcome]
    return kind.of(task.labels[task.train], task.num_classes, pick(options or {}, kind.Options))


__all__ = [
    "OUTCOMES",
    "Classes",
    "Counts",
    "NormalOutcome",
    "NumberOutcome",
    "Outcome",
    "Real",
    "Tags",
    "Targets",
    "ValueOptions",
    "outcome_of",
]
