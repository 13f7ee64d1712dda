"""What the columns of a table hold: ids, labels, the split, and the kinds of features.

A Parquet file says of each column what it holds. A CSV file does not: there, a column of ids or labels is taken for
whole numbers if writing the numbers gives back the text, so that "7" is a number and "007" stays text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.errors import Problems

NUMERIC, BOOLEAN, CATEGORICAL, TEXT = KINDS = ("numeric", "boolean", "categorical", "text")

UNLABELLED = -1
"""As a whole number among whole numbers: no label, as in scikit-learn."""

PARTS = ("train", "val", "test")
_OTHER_NAMES = {"validation": "val", "valid": "val", "training": "train", "": "train"}
MISSING_NUMBERS = ("NaN", "nan", "NA", "N/A", "NULL", "null")
"""Texts that stand for a missing value in a column of numbers."""

LARGEST = 1e150
"""Beyond this, squares overflow."""

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FIRST_ROWS = 1000

_NESTED = "Take it out with --ignore, or write one column for each number in it."
_TIME = "Take it out with --ignore, or turn it into a number such as days since a fixed date."


def listed(values: Sequence[Any], total: int | None = None) -> str:
    """The first five, and how many more there are."""
    total = len(values) if total is None else total
    shown = ", ".join(repr(value) for value in values[:5])
    return f"{shown} and {total - 5} more" if total > 5 else shown


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def plain(column: pa.ChunkedArray, typed: bool) -> pa.Array:
    """One piece, without a dictionary. Blanks around the text of a CSV file belong to the separators."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if is_text(column.type):
        column = pc.cast(column, pa.large_string())
        column = column if typed else pc.utf8_trim_whitespace(column)
    return column.combine_chunks()


def feature_kind(kind: pa.DataType) -> tuple[str, str]:
    """The kind of a feature column of this type, or "" and what to do instead."""
    if pa.types.is_dictionary(kind):
        inner, advice = feature_kind(kind.value_type)
        return (CATEGORICAL if inner else ""), advice
    if pa.types.is_boolean(kind):
        return BOOLEAN, ""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return NUMERIC, ""
    if is_text(kind):
        return CATEGORICAL, ""
    return "", _TIME if pa.types.is_temporal(kind) else _NESTED


def floats(column: pa.Array) -> np.ndarray:
    """(n,) float64 with NaN where a value is missing. For numbers and booleans."""
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    return pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def texts(column: pa.Array) -> pa.Array:
    """Text, with null for what is missing or empty. For categories and text."""
    column = pc.cast(column, pa.large_string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.large_string()), column)


def check_unmixed(place: str, column: pa.ChunkedArray, problems: Problems) -> None:
    """Record it if a column of a CSV file is text because of a few words among numbers."""
    values = texts(plain(column, typed=False)).drop_null()
    other = pc.filter(values, pc.invert(pc.match_substring_regex(values, NUMBER)))
    if 0 < len(other) < len(values) / 2:
        found = f"numbers and {len(other)} other values: {listed(other[:5].to_pylist(), len(other))}"
        advice = "Leave a missing number empty. If the numbers are names of categories, use --categorical."
        problems.add(place, found, "numbers alone or text alone", advice)


def identifiers(place: str, column: pa.ChunkedArray, typed: bool, problems: Problems) -> pa.Array | None:
    """(n,) int64 or text, none missing; None where a problem was found."""
    values = plain(column, typed)
    if pa.types.is_integer(values.type):
        values = _whole(values)
    elif is_text(values.type):
        values = texts(values)
    elif not pa.types.is_null(values.type):
        advice = "Write them as text, or as numbers without a decimal point."
        problems.add(place, f"values of type {column.type}", "text or whole numbers", advice)
        return None
    if values.null_count:
        rows = (np.flatnonzero(values.is_null())[:5] + 1).tolist()
        found = f"{values.null_count} missing ids, in rows {listed(rows, values.null_count)}"
        problems.add(place, found, "an id in every row")
        return None
    if not typed and is_text(values.type):
        return _read_ids(place, values, problems)
    return values


def _whole(values: pa.Array) -> pa.Array:
    """int64, or text where a number is too large for it."""
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(values, pa.large_string())


def _read_ids(place: str, values: pa.Array, problems: Problems) -> pa.Array | None:
    """Text as whole numbers if it is nothing else. Mostly numbers and some words are a mistake, not a choice."""
    numbers = _as_whole(values)
    if numbers is not None:
        return numbers
    other = pc.filter(values, pc.invert(pc.match_substring_regex(values, r"^[+-]?[0-9]+$")))
    if 0 < len(other) < len(values) / 2:
        found = f"whole numbers and {len(other)} other values: {listed(other[:5].to_pylist(), len(other))}"
        advice = "Correct these, or say that all ids are text by writing them as text into a Parquet file."
        problems.add(place, found, "ids of one type", advice)
        return None
    return values


def _as_whole(values: pa.Array) -> pa.Array | None:
    """Text as int64 if all of it gives back the same text, else None."""
    # A cast of text that is no number takes a microsecond for each value, so the first rows are looked at first.
    if pc.all(pc.match_substring_regex(values[:_FIRST_ROWS], r"^-?[0-9]+$")).as_py() is False:
        return None
    try:
        numbers = pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return None
    same = pc.all(pc.equal(pc.cast(numbers, pa.large_string()), values)).as_py()
    return numbers if same is not False else None


def class_labels(place: str, column: pa.ChunkedArray, typed: bool, problems: Problems) -> pa.Array | None:
    """(n,) int64, boolean or text, null where unlabelled: empty, or -1 among whole numbers."""
    values = plain(column, typed)
    if pa.types.is_floating(values.type):
        values = _whole_floats(place, values, problems)
    elif pa.types.is_integer(values.type):
        values = _whole(values)
    elif is_text(values.type):
        values = texts(values) if typed else _read_labels(texts(values))
    elif pa.types.is_null(values.type):
        values = pc.cast(values, pa.large_string())
    elif not pa.types.is_boolean(values.type):
        problems.add(place, f"values of type {column.type}", "text, whole numbers or booleans")
        return None
    if values is not None and pa.types.is_integer(values.type):
        values = pc.if_else(pc.equal(values, UNLABELLED), pa.scalar(None, pa.int64()), values)
    return values


def _whole_floats(place: str, values: pa.Array, problems: Problems) -> pa.Array | None:
    """pandas turns whole numbers into these when some are missing."""
    numbers = floats(values)
    known = ~np.isnan(numbers)
    broken = known & ~(np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**53))
    if broken.any():
        count = int(broken.sum())
        found = f"{count} numbers that are not whole: {listed(numbers[broken][:5].tolist(), count)}"
        problems.add(place, found, "text, whole numbers or booleans", "A class has a name or a whole number.")
        return None
    return pa.array(np.where(known, numbers, 0).astype(np.int64), mask=~known)


def _read_labels(values: pa.Array) -> pa.Array:
    """Text as whole numbers or booleans if it is nothing else."""
    words = pc.if_else(
        pc.is_in(values, value_set=pa.array(MISSING_NUMBERS, pa.large_string())),
        pa.scalar(None, pa.large_string()),
        values,
    )
    numbers = _as_whole(pc.replace_substring_regex(words, r"^(-?[0-9]+)\.0*$", r"\1"))
    if numbers is not None and numbers.null_count < len(numbers):
        return numbers
    words = pc.utf8_lower(values)
    if pc.all(pc.is_in(words, value_set=pa.array([None, "true", "false"], pa.large_string()))).as_py():
        return pc.equal(words, "true")
    return values


def split_parts(place: str, column: pa.ChunkedArray, problems: Problems) -> np.ndarray | None:
    """(n,) the part of each node: train (also where nothing stands), val or test."""
    values = plain(column, typed=False)
    if not (is_text(values.type) or pa.types.is_null(values.type)):
        problems.add(place, f"values of type {column.type}", ", ".join(PARTS))
        return None
    words = pc.utf8_lower(pc.fill_null(pc.cast(values, pa.large_string()), ""))
    known = {**{part: part for part in PARTS}, **_OTHER_NAMES}
    index = pc.index_in(words, value_set=pa.array(list(known), pa.large_string()))
    if index.null_count:
        foreign = pc.unique(pc.filter(words, index.is_null()))
        found = f"{index.null_count} other values: {listed(foreign[:5].to_pylist(), len(foreign))}"
        problems.add(place, found, f"{', '.join(PARTS)}, or nothing")
        return None
    return np.array(list(known.values()))[index.to_numpy(zero_copy_only=False)]
