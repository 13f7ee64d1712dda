"""From what a caller calls y to classes, their numbers, and the nodes for training and for validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from g3nn.errors import Problems
from g3nn.parse import UNKNOWN

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Labels:
    """classes: (K,) sorted, of one kind: strings, whole numbers or booleans. codes: (n,) positions in it, or -1."""

    classes: np.ndarray
    codes: np.ndarray
    outcome: ClassVar[str] = "classes"
    flat: ClassVar[bool] = True

    @property
    def known(self) -> np.ndarray:
        """The labelled nodes."""
        return np.flatnonzero(self.codes != UNKNOWN)


def read_labels(y: Any, n: int, problems: Problems) -> Labels | None:
    """Labels of n nodes; -1, None and NaN say that one is not known. Records what is wrong."""
    values = values_of(y)
    if values.shape != (n,):
        problems.add("y", f"shape {values.shape}", f"one label for each of the {n} nodes")
        return None
    known = ~_unknown(values)
    given = values[known]
    kinds = {_kind(value) for value in given.tolist()}
    if len(kinds) > 1 or "other" in kinds:
        example = next((value for value in given.tolist() if _kind(value) == "other"), None)
        found = f"values such as {example!r}" if example is not None else f"{' and '.join(sorted(kinds))} mixed"
        advice = _advice(example)
        problems.add("y", found, "strings, whole numbers or booleans; -1, None or NaN where unknown", advice)
        return None
    kind = kinds.pop() if kinds else "whole numbers"
    classes, numbers = np.unique(given.astype(_DTYPES[kind]), return_inverse=True)
    codes = np.full(n, UNKNOWN, dtype=np.int64)
    codes[known] = numbers
    if len(classes) < 2:
        found = f"{len(given)} labels of {len(classes)} classes"
        problems.add("y", found, "labels of at least 2 classes", "Without two there is nothing to tell apart.")
        return None
    return Labels(classes, codes)


def _advice(example: Any) -> str:
    """What fits values that are no classes."""
    if isinstance(example, float | np.floating):
        return "Numbers to be predicted as such are for G3NNRegressor."
    if isinstance(example, list | tuple | set | frozenset | np.ndarray):
        return "For several tags of a node give (n, T): a column of 0 and 1 for each tag."
    return ""


_DTYPES: dict[str, Any] = {"strings": np.str_, "whole numbers": np.int64, "booleans": np.bool_}


def values_of(y: Any) -> np.ndarray:
    """One array of objects or of one plain type, whatever it came as."""
    if hasattr(y, "detach"):
        return np.asarray(y.detach().cpu().numpy())
    series = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        y = series.to_list()
    if isinstance(y, np.ndarray):
        return y
    items = list(y)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _unknown(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "if":
        return (values == UNKNOWN) | (values != values)
    if values.dtype != object:
        return np.zeros(values.shape, dtype=bool)
    return np.array([_is_unknown(value) for value in values], dtype=bool)


def _is_unknown(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
    return bool(number and (value == UNKNOWN or value != value))


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "strings"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and float(value).is_integer()):
        return "whole numbers"
    return "other"


def encode(y: Any, classes: np.ndarray, problems: Problems) -> np.ndarray:
    """(n,) positions of the labels in the classes; one that is not among them is a problem."""
    values = values_of(y)
    place = {value: position for position, value in enumerate(classes.tolist())}
    codes = [place.get(value, UNKNOWN) for value in values.tolist()]
    strange = sorted({repr(value) for value, code in zip(values.tolist(), codes, strict=True) if code == UNKNOWN})
    if strange:
        problems.add("y", ", ".join(strange[:_SHOWN]), f"the classes {', '.join(map(repr, classes.tolist()[:20]))}")
    return np.array(codes, dtype=np.int64)


def check_train(labels: Labels, val: np.ndarray, problems: Problems) -> None:
    """Given validation nodes must be labelled and leave a label of each class to train on."""
    unknown = int((labels.codes[val] == UNKNOWN).sum())
    if unknown:
        problems.add("val", f"{unknown} nodes without a label", "labelled nodes only", "Take them out of val.")
    if val.size == 0:
        problems.add("val", "no node", "at least one labelled node", "Leave val out to have a share split off.")
    counts = np.bincount(labels.codes[np.setdiff1d(labels.known, val)], minlength=len(labels.classes))
    if (counts == 0).any():
        found = f"every label of class {_named(labels.classes[counts == 0])}"
        problems.add("val", found, "to leave at least one label of each class for training")


def split_validation(labels: Labels, share: float, rng: np.random.RandomState, problems: Problems) -> np.ndarray:
    """Validation nodes: a share of each class, one at least, and never the whole class."""
    counts = np.bincount(labels.codes[labels.known], minlength=len(labels.classes))
    if (counts < 2).any():
        advice = "Label another node of it, take its label out, or choose the validation nodes with val."
        found = f"class {_named(labels.classes[counts < 2])} with a single labelled node"
        problems.add("y", found, "two of each class: one to train on, one to validate on", advice)
        return np.zeros(0, dtype=np.int64)
    chosen = []
    for k, count in enumerate(counts.tolist()):
        members = np.flatnonzero(labels.codes == k)
        size = min(max(1, round(share * count)), count - 1)
        chosen.append(rng.permutation(members)[:size])
    return np.sort(np.concatenate(chosen))


def _named(classes: np.ndarray) -> str:
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return ", ".join(map(repr, classes[:_SHOWN].tolist())) + more
