"""From what a caller calls y to columns of numbers: tags (0 and 1), real values, counts. NaN and None say unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.estimator.labels import values_of
from g3nn.parse import to_numpy

LARGEST = 1e150
"""Beyond this, squares overflow."""

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Numbers:
    """codes: (n, T) float64, NaN where unknown. classes: (T,) the names of the columns. flat: whether y was (n,)."""

    classes: np.ndarray
    codes: np.ndarray
    outcome: str
    flat: bool

    @property
    def known(self) -> np.ndarray:
        """The nodes of which something is known."""
        return np.flatnonzero(~np.isnan(self.codes).all(1))

    def varies(self, nodes: np.ndarray) -> np.ndarray:
        """(T,) booleans: which columns have two different values among these nodes."""
        codes = self.codes[nodes]
        low = np.where(np.isnan(codes), np.inf, codes).min(0, initial=np.inf)
        high = np.where(np.isnan(codes), -np.inf, codes).max(0, initial=-np.inf)
        varied: np.ndarray = low < high
        return varied

    def title(self, columns: np.ndarray) -> str:
        """The first few columns of a mask by name, and how many more there are."""
        names = self.classes[columns].tolist()
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return ", ".join(map(repr, names[:_SHOWN])) + more


@dataclass(frozen=True)
class _Kind:
    """What one kind of numbers allows, what to say of others, and what to do about a column that never changes."""

    allowed: str
    accepts: Callable[[np.ndarray], np.ndarray]
    other: str
    text: str
    constant: str
    boolean: bool = False


_OF_CLASSES = "Classes are for G3NNClassifier."
_NOTHING = "There is nothing to learn in a constant: leave the column out."

_KINDS: dict[str, _Kind] = {
    "tags": _Kind(
        "a column of 0 and 1 for each tag, NaN or None where unknown",
        lambda values: (values == 0) | (values == 1),
        "One class out of several is one column (n,) of labels; numbers are for G3NNRegressor.",
        "Tags and classes do not mix: one class out of several is one column (n,) of labels.",
        "Leave out tags that no node has, or that all have.",
        boolean=True,
    ),
    "real": _Kind(
        f"finite numbers up to {LARGEST:g}, NaN or None where unknown",
        lambda values: np.abs(values) <= LARGEST,
        "Correct these values, or put NaN where one is not known.",
        _OF_CLASSES,
        _NOTHING,
    ),
    "counts": _Kind(
        "whole numbers from 0 to 2**53, NaN or None where unknown",
        lambda values: (values >= 0) & (values == np.floor(values)) & (values <= 2.0**53),
        "Other numbers are for outcome='real'.",
        _OF_CLASSES,
        _NOTHING,
    ),
}

NUMBER_OUTCOMES = ("real", "counts")
"""What a regressor can be asked for."""


def is_table(y: Any) -> bool:
    """Whether y has columns."""
    return _table(y) is not None


def read_numbers(y: Any, n: int, outcome: str, problems: Problems) -> Numbers | None:
    """Columns of numbers for n nodes. Records what is wrong."""
    kind, table = _KINDS[outcome], _table(y)
    raw, names = table if table is not None else (values_of(y), None)
    if raw.shape[0] != n or raw.ndim > 2 or raw.size == 0:
        problems.add("y", f"shape {raw.shape}", f"shape ({n},) or ({n}, T): one row for each node")
        return None
    values = _checked(raw, kind, problems)
    if values is None:
        return None
    names = names or tuple(range(values.shape[1]))
    found = Numbers(np.array(names), values, outcome, raw.ndim == 1)
    return found if _varies(found, np.arange(n), "y", "", problems) else None


def _table(y: Any) -> tuple[np.ndarray, tuple[Any, ...] | None] | None:
    """(n, T) values and the names of the columns, if y has columns."""
    if sp.issparse(y):
        return y.toarray(), None
    if nw.dependencies.is_into_dataframe(y) or nw.dependencies.is_narwhals_dataframe(y):
        frame = nw.from_native(y, eager_only=True)
        columns = np.empty((len(frame), len(frame.columns)), dtype=object)
        for place, name in enumerate(frame.columns):
            columns[:, place] = frame[name].to_list()
        return columns, tuple(map(str, frame.columns))
    if hasattr(y, "detach") or isinstance(y, np.ndarray):
        array = to_numpy(y)
        return (array, None) if array.ndim == 2 else None
    if not (isinstance(y, list | tuple) and all(isinstance(row, list | tuple | np.ndarray) for row in y)):
        return None
    if len({len(row) for row in y}) != 1:
        return None
    rows = np.empty((len(y), len(y[0])), dtype=object)
    rows[:] = [list(row) for row in y]
    return rows, None


def _checked(raw: np.ndarray, kind: _Kind, problems: Problems) -> np.ndarray | None:
    """(n, T) float64, all of this kind."""
    values = _as_floats(raw, kind, problems)
    if values is None:
        return None
    values = values.reshape(len(raw), -1)
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(values) & ~kind.accepts(values)
    if wrong.any():
        shown = ", ".join(f"{value:g}" for value in np.unique(values[wrong])[:_SHOWN])
        problems.add("y", f"{int(wrong.sum())} values such as {shown}", kind.allowed, kind.other)
        return None
    return values


def _as_floats(raw: np.ndarray, kind: _Kind, problems: Problems) -> np.ndarray | None:
    """Numbers with NaN where nothing is known; text and, unless they mean 0 and 1, booleans are problems."""
    if raw.dtype.kind in "iuf" or (raw.dtype.kind == "b" and kind.boolean):
        return raw.astype(np.float64)
    items = [None if _is_missing(one) else one for one in raw.ravel().tolist()]
    texts = [one for one in items if not isinstance(one, bool | int | float | np.number | np.bool_ | None)]
    if texts:
        problems.add("y", f"values such as {texts[0]!r}", kind.allowed, kind.text)
        return None
    if not kind.boolean and any(isinstance(one, bool | np.bool_) for one in items):
        problems.add("y", "true and false", kind.allowed, "What is true or false is for G3NNClassifier.")
        return None
    return np.array([np.nan if one is None else float(one) for one in items]).reshape(raw.shape)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _varies(numbers: Numbers, nodes: np.ndarray, argument: str, where: str, problems: Problems) -> bool:
    """Whether every column has two different values among these nodes."""
    constant = ~numbers.varies(nodes)
    if constant.any():
        found = f"the same value, or none, {where or 'wherever one is known '}in column {numbers.title(constant)}"
        if numbers.flat:
            found = f"the same value, or none, {where or 'wherever one is known'}".rstrip()
        problems.add(argument, found, "columns with different values", _KINDS[numbers.outcome].constant)
    return not constant.any()


def check_numbers(numbers: Numbers, val: np.ndarray, problems: Problems) -> None:
    """Given validation nodes must be labelled and leave different values of each column to train on."""
    unknown = int(np.isnan(numbers.codes[val]).all(1).sum())
    if unknown:
        problems.add("val", f"{unknown} nodes without a label", "labelled nodes only", "Take them out of val.")
    if val.size == 0:
        problems.add("val", "no node", "at least one labelled node", "Leave val out to have a share split off.")
    _varies(numbers, np.setdiff1d(numbers.known, val), "val", "left to train on ", problems)


def split_numbers(numbers: Numbers, share: float, rng: np.random.RandomState, problems: Problems) -> np.ndarray:
    """Validation nodes: a share of the labelled ones, such that different values of each column stay for training."""
    known = numbers.known
    # A tag that a node has is above the mean, and values differ as long as some are above it and some are not.
    middle = np.nanmean(numbers.codes, axis=0)
    sides = np.stack([numbers.codes > middle, numbers.codes <= middle], axis=1)
    left = sides[known].sum(0)
    size = max(1, round(share * len(known)))
    chosen: list[int] = []
    for node in rng.permutation(known).tolist():
        without = left - sides[node]
        if len(chosen) < size and (without > 0).all():
            left = without
            chosen.append(node)
    if not chosen:
        found = f"{len(known)} labelled nodes, of which none can be spared to validate on"
        advice = "Label another node with each rare value, or leave its column out."
        problems.add("y", found, "different values of each column besides the validation nodes", advice)
    return np.sort(np.array(chosen, dtype=np.int64))


def as_columns(y: Any, outcome: str, T: int, problems: Problems) -> np.ndarray:
    """(m, T) values to judge answers by; each row must know something."""
    kind, table = _KINDS[outcome], _table(y)
    raw = table[0] if table is not None else values_of(y)
    values = _checked(raw, kind, problems)
    if values is None:
        return np.zeros((len(raw), T))
    if values.shape[1] != T:
        problems.add("y", f"shape {raw.shape}", f"{T} column{'s' if T > 1 else ''}, as in the fit")
        return np.zeros((len(raw), T))
    empty = int(np.isnan(values).all(1).sum())
    if empty:
        found = f"{empty} nodes without a value"
        problems.add("y", found, "a value for each node to judge by", "Take these nodes out of nodes.")
    return values
