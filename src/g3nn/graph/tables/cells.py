"""What cells and columns hold: words for nothing, numbers with signs and separators, dates, ids and the split.

A Parquet file or a data frame is typed: it says what each column holds. A CSV file holds text only. There, ids are
whole numbers if writing the numbers gives the same text again, so "7" is a number and "007" is text. Numbers such as
14.0, which spreadsheets make of whole numbers, are whole numbers everywhere.

A column that cannot be used raises an `InputError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import counted, refuse
from g3nn.graph.outcomes.labels import flat_values
from g3nn.graph.tables.remarks import listed

NULL_WORDS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "?", "-", "<NA>", "#N/A")
"""Cells that say that nothing is known."""

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_CURRENCY = r"([$€£¥₹]|USD|EUR|GBP|CHF|JPY|INR)"
_CLOCK_END = r"(\d{2}:\d{2}(:\d{2})?)(\.\d+)?(Z|[+-]\d{2}:?\d{2})?$"

_SOME = 1000
"""Rows by which most formats are ruled out before all rows are read."""

_LIKE_A_DATE = r"^\s*(\d{1,4}[-/. ]\s?[0-9A-Za-z]|[A-Za-z]{3,9}\.? \d)"

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y")
_NAMED_DAYS = ("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y")
_TIMES = (" %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M")
DATE_FORMATS = (*_DAYS, *_NAMED_DAYS, *(day + time for day in _DAYS[:5] for time in _TIMES))
"""Month before day where both can be read, as most tables with slashes have it."""

PARTS = ("train", "val", "test")
_PART_OF = {part: part for part in PARTS} | {"training": "train", "": "train", "validation": "val", "valid": "val"}

_WHOLE_NUMBER = r"^[+-]?[0-9]+(\.0*)?$"
_WHOLE_CLASS = r"(0|-?[1-9][0-9]{0,17})(\.0*)?"
_BOOLEANS = {"true": True, "false": False}

LEAST_DATES = 0.95
"""Share of the cells that must be dates of one format."""


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def known(cells: pa.Array, nulls: tuple[str, ...] = NULL_WORDS) -> pa.Array:
    """Cells with null for words that say nothing, text or numbers."""
    if not is_text(cells.type):
        words = numbers(pa.array(nulls, pa.large_string())).drop_null()
        if not (len(words) and is_number(cells.type)):
            return cells
        return pc.if_else(pc.is_in(pc.cast(cells, pa.float64(), safe=False), value_set=words), None, cells)
    cells = pc.cast(cells, pa.large_string())
    nothing = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=pa.array(nulls, pa.large_string()))
    return pc.if_else(nothing, None, cells)


def plain_numbers(cells: pa.Array) -> pa.Array:
    """Which cells are numbers without any sign or separator but a decimal point."""
    return pc.match_substring_regex(cells, _NUMBER)


def numbers(cells: pa.Array, decimal: str = ".") -> pa.Array:
    """Text cells as float64, null where there is no number: `1,234.5`, `1.234,5` if the decimal is a comma, `$ 5`,
    `12 %` as 0.12."""
    return _word_by_word(pc.utf8_trim_whitespace(pc.cast(cells, pa.large_string())), lambda one: _numbers(one, decimal))


def _word_by_word(cells: pa.Array, read: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Cells are read once for each text that occurs, since that is slow."""
    encoded = cells.dictionary_encode()
    return read(encoded.dictionary).take(encoded.indices)


def _numbers(cells: pa.Array, decimal: str) -> pa.Array:
    if decimal == "." and pc.all(plain_numbers(cells)).as_py() is True:
        return pc.cast(cells, pa.float64())
    percent = pc.ends_with(cells, "%")
    cells = pc.replace_substring_regex(cells, r"\s*%$", "")
    cells = pc.replace_substring_regex(cells, rf"^([+-]?)\s*{_CURRENCY}\s*", r"\1")
    cells = pc.replace_substring_regex(cells, rf"\s*{_CURRENCY}$", "")
    group = "," if decimal == "." else r"\."
    grouped = pc.match_substring_regex(cells, rf"^[+-]?\d{{1,3}}([{group}' \x{{00A0}}]\d{{3}})+(\{decimal}\d+)?$")
    cells = pc.if_else(grouped, pc.replace_substring_regex(cells, rf"[{group}' \x{{00A0}}]", ""), cells)
    if decimal == ",":
        # A point that separates no groups would be read as a decimal point otherwise.
        cells = pc.if_else(pc.match_substring(cells, "."), None, pc.replace_substring(cells, ",", "."))
    read = pc.cast(pc.if_else(plain_numbers(cells), cells, None), pa.float64())
    return pc.if_else(percent, pc.divide(read, 100.0), read)


def decimal_of(cells: pa.Array) -> str:
    """The decimal sign with which more cells are numbers; a point if both do, so `1,234` is a thousand."""
    point = numbers(cells, ".").null_count
    return "," if point > 0 and numbers(cells, ",").null_count < point else "."


def some(cells: pa.Array) -> pa.Array:
    """Cells from everywhere in a column, enough to rule out what it does not hold."""
    if len(cells) <= _SOME:
        return cells
    return cells.take(pa.array(np.linspace(0, len(cells) - 1, _SOME).astype(np.int64)))


def date_formats(cells: pa.Array) -> list[str]:
    """The format of text cells that are dates, none of them null, and a second one if all cells can be read in both as
    different dates; empty if they are no dates."""
    first = some(cells)
    if not pc.any(pc.match_substring_regex(first, _LIKE_A_DATE)).as_py():
        return []
    read = {form: len(first) - dates(first, form).null_count for form in DATE_FORMATS}
    most = max(read.values())
    if most < LEAST_DATES * len(first):
        return []
    whole = {form: dates(cells, form) for form in DATE_FORMATS if read[form] == most}
    fewest = min(moments.null_count for moments in whole.values())
    best, *others = [form for form, moments in whole.items() if moments.null_count == fewest]
    return [best, *[form for form in others if not whole[form].equals(whole[best])][:1]]


def dates(cells: pa.Array, format: str) -> pa.Array:
    """Text cells as timestamps in seconds, null where there is no date. Fractions of seconds and zones are dropped."""

    def read(words: pa.Array) -> pa.Array:
        words = pc.replace_substring_regex(pc.utf8_trim_whitespace(words), _CLOCK_END, r"\1")
        return pc.strptime(words, format=format, unit="s", error_is_null=True)

    return _word_by_word(cells, read)


def floats(column: pa.Array) -> np.ndarray:
    """(n,) float64 of numbers or booleans, with NaN where a value is missing."""
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    return pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


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
    whole = _read_whole(values)
    if whole is not None:
        return whole
    # Where most ids are whole numbers, the others are more likely mistakes than meant.
    other = pc.filter(values, pc.invert(pc.match_substring_regex(values, _WHOLE_NUMBER)))
    if 0 < len(other) < len(values) / 2:
        advice = "Correct these values. If all ids are text, write them as text into a Parquet file."
        given = f"whole numbers and {counted(len(other), 'other value')} ({listed(other)})"
        refuse(place, given, "ids of one type", advice)
    return values


def _exact(place: str, values: pa.Array) -> pa.Array:
    """Whole floats as int64. Beyond 2^53 a float may stand for several numbers, and so for several ids."""
    large = pc.filter(values, pc.greater(pc.abs(values), float(2**53)))
    if len(large):
        advice = "Write them as text, or as numbers without a decimal point."
        refuse(place, f"{counted(len(large), 'number')} that may be rounded ({listed(large)})", "exact ids", advice)
    return pc.cast(values, pa.int64(), safe=False)


def int64(values: pa.Array) -> pa.Array:
    """Text instead, where a number is too large."""
    try:
        return pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(values, pa.large_string())


def _read_whole(values: pa.Array) -> pa.Array | None:
    """Text as int64 if writing the numbers gives the same text again, apart from `.0`; else None."""
    # Failing to cast text takes a microsecond for each value, so the first rows are looked at first.
    if pc.all(pc.match_substring_regex(values[:_SOME], _WHOLE_NUMBER)).as_py() is False:
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


def label_values(values: pa.Array, typed: bool, classes: bool = False) -> np.ndarray:
    """(n,) as an outcome reads them: floats, or objects with None where there is no label.

    The text of a CSV file is read as numbers or, among `classes`, as whole numbers or booleans if all of it can be.
    """
    # As floats, several decimals without a fraction might become one class.
    decimal = pa.types.is_decimal(values.type) and pc.all(pc.equal(values, pc.floor(values))).as_py() is not False
    if classes and (pa.types.is_integer(values.type) or decimal):
        values = int64(values)
    elif is_number(values.type):
        return floats(values)
    if not is_text(values.type):
        # Python has no dates as far from ours as Arrow and numpy have.
        return flat_values(list(values.to_numpy(False)) if pa.types.is_temporal(values.type) else values.to_pylist())
    encoded = values.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if not classes:
        # The words themselves where they are neither numbers nor booleans.
        read = numbers(encoded.dictionary, decimal_of(encoded.dictionary)).to_pylist()
        pairs = zip(words, read, strict=True)
        words = [_BOOLEANS.get(word.lower(), word) if number is None else number for word, number in pairs]
    elif not typed and words and all(re.fullmatch(_WHOLE_CLASS, word) for word in words):
        words = [int(word.partition(".")[0]) for word in words]
    elif not typed and all(word.lower() in _BOOLEANS for word in words):
        words = [_BOOLEANS[word.lower()] for word in words]
    return flat_values([*words, None])[pc.fill_null(encoded.indices, len(words)).to_numpy()]
