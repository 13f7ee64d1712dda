"""Outcomes other than classes, from what a caller passes in to checked arrays: tags, real numbers, counts.

Each function records what is wrong in a `Problems` list. An unknown value is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.parse import check_parts, check_validation, to_numpy

_UNKNOWN = "NaN marks a value that is not known."


@dataclass(frozen=True)
class Kind:
    """One kind of numbers: what they are called, which are allowed, and which a model could learn nothing from."""

    columns: str
    allowed: str
    advice: str
    accepts: Callable[[np.ndarray], np.ndarray]
    """Which of the known values are of this kind."""
    constant: str
    """What to do about a column that never changes among the training nodes."""
    boolean: bool = False
    """Whether true and false are meant as numbers."""


KINDS: dict[str, Kind] = {
    "tags": Kind(
        "tags",
        "0, 1, or NaN for unknown",
        "For one class out of several use outcome='classes'.",
        lambda values: (values == 0) | (values == 1),
        "Leave out tags that no training node has, or that all of them have.",
        boolean=True,
    ),
    "real": Kind(
        "values",
        "finite numbers, or NaN for unknown",
        _UNKNOWN,
        np.isfinite,
        "There is nothing to learn in a constant: leave the column out.",
    ),
    "counts": Kind(
        "counts",
        "whole numbers of at least 0, or NaN for unknown",
        f"{_UNKNOWN} For other numbers use outcome='real'.",
        lambda values: np.isfinite(values) & (values >= 0) & (values == np.round(values)),
        "There is nothing to learn in a constant: leave the column out.",
    ),
}
"""By the name of the outcome."""


def node_values(labels: Any, n: int, outcome: str, problems: Problems) -> np.ndarray:
    """(n, T) float64 with NaN where unknown. Raises at once when there are no numbers to go on with."""
    kind = KINDS[outcome]
    y = labels.toarray() if sp.issparse(labels) else to_numpy(labels)
    if y.ndim not in (1, 2) or y.shape[0] != n or y.size == 0:
        problems.add("labels", f"shape {y.shape}", f"shape ({n},) or ({n}, T): one row for each node")
        problems.raise_if_any()
    if y.dtype == bool and not kind.boolean:
        advice = "Use outcome='tags' for what is true or false."
        problems.add("labels", "true and false", f"{kind.allowed}, for outcome {outcome!r}", advice)
        problems.raise_if_any()
    try:
        # Objects may be numbers, or None where unknown; a string that looks like a number is a mistake upstream.
        values = y.astype(np.float64) if y.dtype.kind in "biufO" and not _holds_text(y) else None
    except (TypeError, ValueError):
        values = None
    if values is None:
        problems.add("labels", f"values of type {y.dtype}", f"{kind.allowed}, for outcome {outcome!r}")
        problems.raise_if_any()
    assert values is not None
    values = values.reshape(n, -1)
    wrong = ~np.isnan(values) & ~kind.accepts(values)
    if wrong.any():
        found = f"{int(wrong.sum())} other values, e.g. {values[wrong][0]:g}"
        problems.add("labels", found, f"{kind.allowed}, for outcome {outcome!r}", kind.advice)
    return values


def _holds_text(y: np.ndarray) -> bool:
    return y.dtype.kind == "O" and any(isinstance(one, str | bytes) for one in y.ravel())


def check_value_split(
    values: np.ndarray, outcome: str, split: dict[str, np.ndarray | None], problems: Problems
) -> None:
    """The parts of a split that could be read must hold labelled nodes, be disjoint, and leave something to do."""
    known = check_parts(np.isnan(values).all(1), split, problems)
    if "train" in known:
        _check_train(values, outcome, known["train"], problems)
    check_validation(known, problems)


def _check_train(values: np.ndarray, outcome: str, train: np.ndarray, problems: Problems) -> None:
    kind = KINDS[outcome]
    if train.size == 0:
        problems.add("train", "no labelled node", "at least two labelled nodes that differ")
        return
    if train.size == values.shape[0] and not np.isnan(values).any():
        problems.add("train", f"all {train.size} nodes", "at least one unlabelled node", "Nothing is left to predict.")
    known = ~np.isnan(values[train])
    low = np.where(known, values[train], np.inf).min(0)
    high = np.where(known, values[train], -np.inf).max(0)
    constant = np.flatnonzero(~(low < high))
    if constant.size:
        named = ", ".join(map(str, constant[:5])) + (", ..." if constant.size > 5 else "")
        found = f"the same or no value at every training node in column {named}"
        problems.add("labels", found, f"{kind.columns} that differ among the training nodes", kind.constant)
