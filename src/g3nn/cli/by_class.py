"""Options that give numbers to classes: weights, and the recall or precision that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from g3nn.base.errors import InputError, Problems, warn_caller
from g3nn.estimator.problem import check_share
from g3nn.graph.outcomes import Outcome
from g3nn.graph.rare import ASKED, Threshold
from g3nn.graph.weights import BALANCED

CLASS_WEIGHT = "class_weight"


def numbers(argument: str, text: str | None, problems: Problems) -> Any:
    """By the name of a class as text, from CLASS=NUMBER,CLASS=NUMBER. Weights may also be balanced."""
    words = (BALANCED,) * (argument == CLASS_WEIGHT)
    if text is None or text in words:
        return text
    found: dict[str, float] = {}
    for name, _, number in (part.rpartition("=") for part in text.split(",")):
        with suppress(ValueError):
            found[name] = float(number)
    if len(found) <= text.count(","):
        problems.add(argument, repr(text), " or ".join((*words, "CLASS=NUMBER,CLASS=NUMBER for some classes")))
    for share in found.values() if argument in ASKED else ():
        check_share(argument, share, problems)
    return found


def by_class(given: Mapping[str, Any], outcome: type[Outcome], names: list[Any], problems: Problems) -> dict[str, Any]:
    """What was given for each option, by the classes as the model has them."""
    known, found = {str(name): name for name in names}, dict(given)
    for argument, wanted in given.items():
        if wanted and not outcome.exclusive:
            problems.add(
                argument, f"labels that are {outcome.values_title}", "one class for each node", "Leave it out."
            )
        elif isinstance(wanted, dict):
            for name in wanted:
                problems.name(argument, name, known)
            found[argument] = {known.get(name): number for name, number in wanted.items()}
    return found


def thresholds(estimator: Any, classes: Mapping[str, Any]) -> list[Threshold]:
    """Those that were asked for and that validation nodes support; a note for each of the others."""
    found: list[Threshold] = []
    for asked, label, share in [(name, *one) for name in ASKED for one in (classes[name] or {}).items()]:
        try:
            found.append(estimator.threshold(label, **{asked: share}))
        except InputError as error:
            warn_caller(f"{error} No column says which nodes to choose")
    return found


def with_choices(table: pa.Table, answers: pa.Table, found: Sequence[Threshold]) -> pa.Table:
    """The table with a column for each threshold, which says what nodes it chooses."""
    for one in found:
        chosen = answers[f"prob_{one.label}"].to_numpy() >= one.probability
        table = table.append_column(f"{one.label}_at_{one.asked}_{one.share:g}", pa.array(chosen))
    return table
