"""Labels as a caller has them, before anything is known about what they mean: lists, arrays, tensors, data frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.parse import SHOWN, UNKNOWN, is_frame, to_numpy

_LONGEST = 100
"""Characters of a name in an array of numpy's strings, each of which takes as much memory as the longest."""

_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")

Split = Mapping[str, np.ndarray | None]
"""The nodes of each part of a split, None where they could not be read."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of n nodes.

    names:  (K,) the classes, sorted; or (T,) the names of the columns.
    values: (n,) int64 positions in `names`, -1 where unknown; or (n, T) float64, NaN where unknown.
    flat:   whether the caller gave (n,), so that answers of one column come back as (n,) too.
    """

    names: np.ndarray
    values: np.ndarray
    flat: bool = True

    @property
    def labelled(self) -> np.ndarray:
        """The nodes about which something is known."""
        return np.flatnonzero(has_label(self.values))

    def within(self, nodes: np.ndarray, n: int) -> Labels:
        """The same labels as those of some `nodes` of a graph with n nodes."""
        values = unlabelled((n, *self.values.shape[1:]), self.values.dtype)
        values[nodes] = self.values
        return replace(self, values=values)


def is_known(values: np.ndarray) -> np.ndarray:
    """Which entries of label values (n,) or (n, T) are known."""
    known: np.ndarray = values != UNKNOWN if values.dtype.kind == "i" else ~np.isnan(values)
    return known


def has_label(values: np.ndarray) -> np.ndarray:
    """(n,) booleans: the nodes with at least one known entry."""
    return np.asarray(is_known(values).reshape(len(values), -1).any(axis=1))


def unlabelled(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Label values of which nothing is known."""
    return np.full(shape, UNKNOWN if np.dtype(dtype).kind == "i" else np.nan, dtype=dtype)


def without_labels_of(values: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """A copy of label values in which those of `nodes` (numbers or a mask) are unknown."""
    hidden = values.copy()
    hidden[nodes] = unlabelled(hidden[nodes].shape, values.dtype)
    return hidden


def flat_values(y: object) -> np.ndarray:
    """One array of objects or of one plain type, whatever it came as."""
    if hasattr(y, "detach"):
        return to_numpy(y)
    series = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        y = series.to_list()
    if isinstance(y, np.ndarray) or hasattr(y, "__array__") or not isinstance(y, Iterable):
        return _of_plain_type(np.asarray(y))
    items = list(y)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _of_plain_type(array: np.ndarray) -> np.ndarray:
    """Dates and durations as objects, since numpy turns some of them into whole numbers without a word."""
    kind = array.dtype.kind
    return array.astype(f"{kind}8[us]").astype(object) if kind in "mM" else array


def table_values(y: object) -> tuple[np.ndarray, tuple[str, ...] | None] | None:
    """(n, T) values and the names of the columns, if y has columns; else None."""
    if sp.issparse(y):
        return sp.csr_array(y).toarray(), None
    if is_frame(y):
        frame = nw.from_native(y, eager_only=True)
        columns = np.empty((len(frame), len(frame.columns)), dtype=object)
        for position, column in enumerate(frame.iter_columns()):
            columns[:, position] = column.to_list()
        return columns, tuple(map(str, frame.columns))
    if hasattr(y, "detach") or isinstance(y, np.ndarray):
        array = _of_plain_type(to_numpy(y))
        return (array, None) if array.ndim == 2 else None
    if not (isinstance(y, list | tuple) and y and all(isinstance(row, list | tuple | np.ndarray) for row in y)):
        return None
    if len({len(row) for row in y}) != 1:
        return None
    rows = np.empty((len(y), len(y[0])), dtype=object)
    rows[:] = [list(row) for row in y]
    return rows, None


def raw_labels(y: object) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The `table_values` of labels in columns, the `flat_values` of others."""
    return table_values(y) or (flat_values(y), None)


def is_missing(value: object) -> bool:
    """None, NaN, and what data frames have for them."""
    if isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def name_array(names: Iterable[object]) -> np.ndarray:
    """Names of classes or columns. Texts are objects where numpy's strings would take much memory, or lose zeros at
    the end and with them the difference between two names."""
    items = list(names)
    plain = all(not isinstance(name, str) or (len(name) <= _LONGEST and not name.endswith("\0")) for name in items)
    return np.array(items, dtype=None if plain else object)


def check_names(argument: str, names: Iterable[object], problems: Problems) -> None:
    """Names must be texts that can be written to a file."""
    if strange := [name for name in names if isinstance(name, str) and _HALF_CHARACTERS.search(name)]:
        problems.add(
            argument, f"names with halves of characters ({quoted(strange)})", "text that can be written as UTF-8"
        )


def quoted(names: Sequence[object]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
