"""What single columns of a table hold: ids, the split, and the kinds of features.

A Parquet file is typed: it says what each column holds. A CSV file holds text only. There, ids are whole numbers
if writing the numbers gives the same text again, so "7" is a number and "007" is text.

A column that cannot be used raises an `InputError`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.errors import InputError, Problem
from g3nn.outcomes.labels import quoted

NUMERIC, BOOLEAN, CATEGORICAL, TEXT = "numeric", "boolean", "categorical", "text"

PARTS = ("train", "val", "test")
_PART_OF = {part: part for part in PARTS} | {"training": "train", "": "train", "validation": "val", "valid": "val"}

LARGEST = 1e150
"""Squares of larger numbers overflow."""

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE_NUMBER = r"^[+-]?[0-9]+$"
_FIRST_ROWS = 1000

_NESTED = "Take it out with --ignore, or write one column for each number in it."
_TIME = "Take it out with --ignore, or turn it into a number such as days since a fixed date."
_FEATURE = "numbers, booleans or text"


def refuse(place: str, given: str, allowed: str, advice: str = "") -> NoReturn:
    raise InputError([Problem(place, given, allowed, advice)])


def listed(values: Any) -> str:
    """The first values of a sequence or an array, and how many more there are."""
    return quoted(values if isinstance(values, list | tuple) else values.tolist())


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def plain(column: pa.ChunkedArray, typed: bool) -> pa.Array:
    """One array, not encoded by a dictionary. In a CSV file, blanks around text belong to the separators."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if is_text(column.type):
        column = pc.cast(column, pa.large_string())
        column = column if typed else pc.utf8_trim_whitespace(column)
    return column.combine_chunks()


def floats(column: pa.Array) -> np.ndarray:
    """(n,) float64 of numbers or booleans, with NaN where a value is missing."""
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    return pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def texts(column: pa.Array) -> pa.Array:
    """The column as text, with null where a value is missing or empty."""
    column = pc.cast(column, pa.large_string())
    return pc.if_else(pc.equal(column, ""), None, column)


def feature_kind(place: str, column: pa.ChunkedArray, typed: bool) -> str:
    """The kind of a feature column."""
    encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if pa.types.is_temporal(kind):
        refuse(place, f"values of type {column.type}", _FEATURE, _TIME)
    if is_text(kind):
        if not typed:
            advice = "Leave a missing number empty. If the numbers are names of categories, use --categorical."
            values = texts(plain(column, typed)).drop_null()
            _check_unmixed(place, values, _NUMBER, "numbers", "either numbers or text", advice)
        return CATEGORICAL
    if pa.types.is_boolean(kind):
        return CATEGORICAL if encoded else BOOLEAN
    if is_number(kind) or pa.types.is_null(kind):
        return CATEGORICAL if encoded else NUMERIC
    refuse(place, f"values of type {column.type}", _FEATURE, _NESTED)


def _check_unmixed(place: str, values: pa.Array, pattern: str, numbers: str, allowed: str, advice: str) -> None:
    """Where most values are numbers, the others are more likely mistakes than meant."""
    other = pc.filter(values, pc.invert(pc.match_substring_regex(values, pattern)))
    if 0 < len(other) < len(values) / 2:
        refuse(place, f"{numbers} and {counted(len(other), 'other value')} ({listed(other)})", allowed, advice)


def identifiers(place: str, column: pa.ChunkedArray, typed: bool) -> pa.Array:
    """(n,) int64 or text, none missing."""
    values = plain(column, typed)
    if pa.types.is_integer(values.type):
        values = int64(values)
    elif is_text(values.type):
        values = texts(values)
    elif not pa.types.is_null(values.type):
        advice = "Write them as text, or as numbers without a decimal point."
        refuse(place, f"values of type {column.type}", "text or whole numbers", advice)
    if values.null_count:
        rows = np.flatnonzero(values.is_null()) + 1
        refuse(place, f"{counted(len(rows), 'missing id')} (row {listed(rows)})", "an id in every row")
    if typed or not is_text(values.type):
        return values
    numbers = _read_whole(values)
    if numbers is None:
        advice = "Correct these values. If all ids are text, write them as text into a Parquet file."
        _check_unmixed(place, values, _WHOLE_NUMBER, "whole numbers", "ids of one type", advice)
    return values if numbers is None else numbers


def int64(values: pa.Array) -> pa.Array:
    """Text instead, where a number is too large."""
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(values, pa.large_string())


def _read_whole(values: pa.Array) -> pa.Array | None:
    """Text as int64 if writing the numbers gives the same text again, else None."""
    # Failing to cast text takes a microsecond for each value, so the first rows are looked at first.
    if pc.all(pc.match_substring_regex(values[:_FIRST_ROWS], _WHOLE_NUMBER)).as_py() is False:
        return None
    try:
        numbers = pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return None
    return None if pc.all(pc.equal(pc.cast(numbers, pa.large_string()), values)).as_py() is False else numbers


def split_parts(place: str, column: pa.ChunkedArray) -> np.ndarray:
    """(n,) "train", "val" or "test"; an empty cell means "train"."""
    values = plain(column, typed=False)
    if not (is_text(values.type) or pa.types.is_null(values.type)):
        refuse(place, f"values of type {column.type}", ", ".join(PARTS))
    words = pc.utf8_lower(pc.fill_null(pc.cast(values, pa.large_string()), ""))
    index = pc.index_in(words, value_set=pa.array(list(_PART_OF), pa.large_string()))
    if index.null_count:
        other = pc.unique(pc.filter(words, index.is_null()))
        given = f"{counted(index.null_count, 'other value')} ({listed(other)})"
        refuse(place, given, f"{', '.join(PARTS)}, or an empty cell")
    return np.array(list(_PART_OF.values()))[index.to_numpy(zero_copy_only=False)]
