"""Text cells as people write them: words for nothing, numbers with signs and separators, dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

LEAST_DATES = 0.95
"""Share of the cells that must be dates of one format."""


class DateFormat(NamedTuple):
    """other: a second format in which all cells could be read as well, or nothing."""

    format: str
    other: str = ""


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def known(cells: pa.Array, nulls: tuple[str, ...] = NULL_WORDS) -> pa.Array:
    """Text cells, with null for words that say nothing."""
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


def date_format(cells: pa.Array) -> DateFormat | None:
    """The format of text cells that are dates, none of them null."""
    first = some(cells)
    if not pc.any(pc.match_substring_regex(first, _LIKE_A_DATE)).as_py():
        return None
    read = {one: len(first) - dates(first, one).null_count for one in DATE_FORMATS}
    best = max(read, key=lambda one: read[one])
    if read[best] < LEAST_DATES * len(first):
        return None
    whole = {one: dates(cells, one) for one in DATE_FORMATS if read[one] == read[best]}
    fewest = min(moments.null_count for moments in whole.values())
    first_format, *others = [one for one, moments in whole.items() if moments.null_count == fewest]
    other = [one for one in others if not whole[one].equals(whole[first_format])]
    return DateFormat(first_format, *other[:1])


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
