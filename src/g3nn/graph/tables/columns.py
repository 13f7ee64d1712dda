"""What columns of a table hold that are not features: ids and the split.

A Parquet file or a data frame is typed: it says what each column holds. A CSV file holds text only. There, ids are
whole numbers if writing the numbers gives the same text again, so "7" is a number and "007" is text. Numbers such as
14.0, which spreadsheets make of whole numbers, are whole numbers everywhere.

A column that cannot be used raises an `InputError`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import InputError, Problem
from g3nn.graph.outcomes.labels import quoted
from g3nn.graph.tables.cells import is_text, plain_numbers

PARTS = ("train", "val", "test")
_PART_OF = {part: part for part in PARTS} | {"training": "train", "": "train", "validation": "val", "valid": "val"}

_WHOLE_NUMBER = r"^[+-]?[0-9]+(\.0*)?$"
_FIRST_ROWS = 1000
_LONGEST = 60


def refuse(place: str, given: str, allowed: str, advice: str = "") -> NoReturn:
    raise InputError([Problem(place, given, allowed, advice)])


def listed(values: Any) -> str:
    """The first values of a sequence or an array, not too long, and how many more there are."""
    items = values if isinstance(values, list | tuple) else values.tolist()
    short = [f"{item[:_LONGEST]}..." if isinstance(item, str) and len(item) > _LONGEST else item for item in items]
    return quoted(short)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plain(column: pa.ChunkedArray, typed: bool) -> pa.Array:
    """One array of a plain type. In a CSV file, blanks around text belong to the separators."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    # Few functions of Arrow know the smaller types.
    if pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float32())
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        column = pc.cast(column, pa.decimal128(column.type.precision, column.type.scale))
    if is_text(column.type):
        column = pc.cast(column, pa.large_string())
        column = column if typed else pc.utf8_trim_whitespace(column)
    return column.combine_chunks()


def texts(column: pa.Array) -> pa.Array:
    """The column as text, with null where a value is missing or empty."""
    column = pc.cast(column, pa.large_string())
    return pc.if_else(pc.equal(column, ""), None, column)


def means_text(raw: pa.Array, cells: pa.Array, typed: bool) -> bool:
    """Whether a table says that numbers are text. `cells`: those of `raw` that say something.

    Where some cells say that nothing is known, the others may be numbers that became text for that reason.
    """
    declared = typed and is_text(raw.type) and texts(raw).null_count == cells.null_count
    return declared and pc.all(plain_numbers(cells)).as_py() is True


def identifiers(place: str, column: pa.ChunkedArray, typed: bool) -> pa.Array:
    """(n,) int64 or text, none missing."""
    values = plain(column, typed)
    if pa.types.is_floating(values.type) and pc.all(pc.equal(values, pc.floor(values))).as_py() is not False:
        values = _exact(place, values)
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
        _check_unmixed(place, values)
    return values if numbers is None else numbers


def _exact(place: str, values: pa.Array) -> pa.Array:
    """Whole floats as int64. Beyond 2^53 a float may stand for several numbers, and so for several ids."""
    large = pc.filter(values, pc.greater(pc.abs(values), float(2**53)))
    if len(large):
        advice = "Write them as text, or as numbers without a decimal point."
        refuse(place, f"{counted(len(large), 'number')} that may be rounded ({listed(large)})", "exact ids", advice)
    return pc.cast(values, pa.int64(), safe=False)


def _check_unmixed(place: str, values: pa.Array) -> None:
    """Where most ids are whole numbers, the others are more likely mistakes than meant."""
    other = pc.filter(values, pc.invert(pc.match_substring_regex(values, _WHOLE_NUMBER)))
    if 0 < len(other) < len(values) / 2:
        advice = "Correct these values. If all ids are text, write them as text into a Parquet file."
        given = f"whole numbers and {counted(len(other), 'other value')} ({listed(other)})"
        refuse(place, given, "ids of one type", advice)


def int64(values: pa.Array) -> pa.Array:
    """Text instead, where a number is too large."""
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(values, pa.large_string())


def _read_whole(values: pa.Array) -> pa.Array | None:
    """Text as int64 if writing the numbers gives the same text again, apart from `.0`; else None."""
    # Failing to cast text takes a microsecond for each value, so the first rows are looked at first.
    if pc.all(pc.match_substring_regex(values[:_FIRST_ROWS], _WHOLE_NUMBER)).as_py() is False:
        return None
    whole = pc.replace_substring_regex(values, r"^([+-]?[0-9]+)\.0*$", r"\1")
    try:
        numbers = pc.cast(whole, pa.int64())
    except pa.ArrowInvalid:
        return None
    return None if pc.all(pc.equal(pc.cast(numbers, pa.large_string()), whole)).as_py() is False else numbers


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
