"""How single columns become features: as numbers, dates, categories or text, which the fit learns from their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from g3nn.base.errors import counted, refuse
from g3nn.base.parse import LARGEST
from g3nn.graph.tables.cells import date_formats, dates, decimal_of, floats, is_number, is_text, numbers, some, texts
from g3nn.graph.tables.remarks import Oddity, listed

MOST_WORDS = 2000
FEWEST_ROWS = 2
"""A category or a word in fewer rows says nothing about other rows."""

MOST_CATEGORIES = 100
LEAST_COVERED = 0.1
"""Share of the rows that the kept categories must cover. Otherwise the column holds names, not categories."""

LEAST_WORDS = 4
"""Mean number of words in the cells of a column of text. Shorter ones are names."""

LEAST_NUMBERS = 0.5
"""Share of the cells that must be numbers for the others to be mistakes."""

_KEEP = "categorical=[...] or text=[...] keeps it."
_HUGE = ("infinite or huge numbers", f"finite numbers up to {LARGEST:g}", "Correct or empty these values.")

EMPTY = Oddity("no value at all", "columns with values", "left out")
CONSTANT = Oddity("the same value in every row", "columns whose values differ", "left out")
NAMES = Oddity("almost as many values as rows", "values that repeat", "left out as names", _KEEP)
ROWS = Oddity("the numbers of the rows", "columns that say something about the nodes", "left out")
MISSING = Oddity("missing numbers", "a number in every row", "filled in from the neighbours, or with the mean")
SENTENCES = Oddity(
    "sentences", "text=[...] for sentences", "their words become features", "ignore=[...] leaves them out."
)


def _limited(*values: float) -> None:
    """Raise for numbers with which features could not be computed. A damaged model may hold them."""
    if not all(-LARGEST <= value <= LARGEST for value in values):
        raise ValueError(f"a number that is not finite or beyond {LARGEST:g}")


@dataclass(frozen=True)
class Number:
    """Numbers as they are, 0 and 1 for booleans; NaN where missing. decimal: the sign in numbers written as text."""

    kind: Literal["numeric", "boolean"] = "numeric"
    decimal: Literal[".", ","] = "."

    def encode(self, cells: pa.Array) -> np.ndarray:
        if is_text(cells.type):
            cells = _truths(cells) if self.kind == "boolean" else numbers(cells, self.decimal)
        return floats(as_numbers(cells))[:, None]

    def names(self, column: str) -> list[str]:
        return [column]

    def __str__(self) -> str:
        return "a number" if self.kind == "numeric" else "0 or 1"


@dataclass(frozen=True)
class Date:
    """Year, month, weekday (Monday is 0) and age in days before the latest date of the fit; NaN where missing."""

    format: str
    latest: float
    kind: Literal["date"] = "date"

    def __post_init__(self) -> None:
        _limited(self.latest)

    @classmethod
    def fit(cls, cells: pa.Array, format: str) -> Date:
        return cls(format, float(np.nanmax(seconds_of(cells, format))))

    def encode(self, cells: pa.Array) -> np.ndarray:
        seconds = seconds_of(cells, self.format)
        moments = pa.array(np.nan_to_num(seconds).astype(np.int64), pa.timestamp("s"))
        parts = [pc.year(moments), pc.month(moments), pc.day_of_week(moments)]
        features = np.column_stack([*(floats(part) for part in parts), (self.latest - seconds) / 86400])
        features[np.isnan(seconds)] = np.nan
        return features

    def names(self, column: str) -> list[str]:
        return [f"{column}: {part}" for part in ("year", "month", "weekday", "age in days")]

    def __str__(self) -> str:
        return "year, month, weekday, age in days"


@dataclass(frozen=True)
class Category:
    """One 0/1 feature for each category, and one for all rare ones if there are any; all 0 where missing.

    A category that the fit has not seen is treated as a rare one, and is all 0 if there are none.
    """

    categories: tuple[str, ...]
    other: bool
    kind: Literal["categorical"] = "categorical"

    def encode(self, cells: pa.Array) -> sp.csr_array:
        rare, position = len(self.categories), self.positions(cells)
        rows = np.flatnonzero((position >= 0) & (position < rare + self.other))
        ones = np.ones(rows.size)
        return sp.csr_array((ones, (rows, position[rows])), shape=(len(cells), rare + self.other))

    def positions(self, cells: pa.Array) -> np.ndarray:
        """(n,) the number of each category, one more than the last for others, -1 where missing."""
        values = texts(cells)
        index = pc.index_in(values, value_set=pa.array(self.categories, pa.large_string()), skip_nulls=True)
        position = pc.fill_null(index, len(self.categories)).to_numpy().astype(np.int64)
        return np.where(values.is_valid().to_numpy(zero_copy_only=False), position, -1)

    def names(self, column: str) -> list[str]:
        return [f"{column} = {name}" for name in (*self.categories, *(["other"] if self.other else []))]

    def __str__(self) -> str:
        return f"{counted(len(self.categories) + self.other, 'feature')}, 0 or 1 each"


@dataclass(frozen=True)
class Text:
    """TF-IDF by scikit-learn, with the inverse document frequency of each word."""

    words: dict[str, float]
    kind: Literal["text"] = "text"

    def __post_init__(self) -> None:
        _limited(*self.words.values())

    @classmethod
    def fit(cls, cells: pa.Array) -> Text:
        """Without words where none repeats."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(max_features=MOST_WORDS, min_df=FEWEST_ROWS)
        try:
            vectorizer.fit(_documents(cells))
        except ValueError:
            # This is how scikit-learn says that no word is left.
            return cls({})
        return cls(dict(zip(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_.tolist(), strict=True)))

    def encode(self, cells: pa.Array) -> sp.csr_array:
        from sklearn.feature_extraction.text import TfidfVectorizer

        if len(cells) == 0:  # scikit-learn wants at least one
            return sp.csr_array((0, len(self.words)))
        vectorizer = TfidfVectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(list(self.words.values()))
        return sp.csr_array(vectorizer.transform(_documents(cells)))

    def names(self, column: str) -> list[str]:
        return [f"{column}: {word}" for word in self.words]

    def __str__(self) -> str:
        return f"{counted(len(self.words), 'word')}, weighted by TF-IDF"


Column = Number | Category | Text | Date


@dataclass(frozen=True)
class Lacking:
    """Kinds of nodes that do not have a column, and the features that they get instead: the means, which say nothing.
    Of categories and words they have none."""

    kinds: tuple[str, ...]
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _limited(*self.values)

    @classmethod
    def of(cls, kinds: tuple[str, ...], how: Column, cells: pa.Array) -> Lacking:
        if isinstance(how, Category | Text):
            return cls(kinds)
        block = how.encode(cells.drop_null())
        means = np.nanmean(block, axis=0)
        # Counts stay whole.
        whole = how.kind != "boolean" and bool((np.nan_to_num(block) % 1 == 0).all())
        return cls(kinds, tuple((means.round() if whole else means).tolist()))


def _truths(cells: pa.Array) -> pa.Array:
    """Text cells as booleans, null where they are neither true nor false."""
    words = pc.utf8_lower(cells)
    true, false = (pc.is_in(words, value_set=pa.array(both, words.type)) for both in (("true", "1"), ("false", "0")))
    return pc.if_else(pc.or_(true, false), true, None)


def as_numbers(cells: pa.Array) -> pa.Array:
    """Times of day and durations as numbers."""
    if pa.types.is_temporal(cells.type):
        return pc.cast(cells, pa.int32() if pa.types.is_time32(cells.type) else pa.int64())
    return cells


def seconds_of(cells: pa.Array, format: str) -> np.ndarray:
    """(n,) seconds since 1970, NaN where there is no date."""
    if is_text(cells.type):
        # A table that knew dates as such has no format; a later one may have them as text.
        found = [format] if format else date_formats(cells.drop_null())
        if not found:
            return np.full(len(cells), np.nan)
        moments = dates(cells, found[0])
    elif pa.types.is_temporal(cells.type):
        moments = pc.cast(cells, pa.timestamp("s"), safe=False)
    else:
        return np.full(len(cells), np.nan)
    return floats(pc.cast(moments, pa.int64()))


def _documents(cells: pa.Array) -> list[str]:
    return pc.fill_null(texts(cells), "").to_pylist()


def is_date(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def learned(place: str, cells: pa.Array, as_text: bool, chosen: str | None) -> Column | Oddity:
    """How to read a column, or why it is left out. An `InputError` says why it cannot be used.

    as_text: whether numbers that are written as text are meant as text.
    """
    kind = cells.type
    if cells.null_count == len(cells):
        return EMPTY
    of_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    if not (is_text(kind) or is_number(kind) or of_time or pa.types.is_boolean(kind)):
        advice = "Take it out with ignore=[...], or write one column for each number in it."
        refuse(place, f"values of type {kind}", "numbers, booleans, dates or text", advice)
    given = cells.drop_null()
    if chosen == Category.kind:
        return _categories(given, len(cells), keep=True)
    if chosen == Text.kind:
        text = Text.fit(cells)
        if text.words:
            return text
        return Oddity("no word that repeats", "words that occur in at least two rows", "left out")
    if pa.types.is_boolean(kind):
        return Number("boolean") if len(pc.unique(given)) > 1 or cells.null_count else CONSTANT
    if is_date(kind):
        return Date.fit(cells, "") if len(pc.unique(given)) > 1 else CONSTANT
    if is_number(kind) or pa.types.is_temporal(kind):
        return _numbers(place, cells, ".")
    return _words(place, cells, given, as_text)


def _words(place: str, cells: pa.Array, given: pa.Array, as_text: bool) -> Column | Oddity:
    """How to read a column of text: as numbers, dates, categories or sentences."""
    if cells.null_count == 0 and len(pc.unique(given)) == 1:
        return CONSTANT
    if pc.any(pc.match_substring_regex(some(given), "[0-9]")).as_py():
        if not as_text and (decimal := _decimal(given)):
            return _numbers(place, cells, decimal)
        if formats := date_formats(given):
            return Date.fit(cells, formats[0]) if len(pc.unique(given)) > 1 else CONSTANT
    category = _categories(given, len(cells))
    many = category is NAMES or (isinstance(category, Category) and category.other)
    if many and pc.mean(pc.count_substring_regex(given, r"\S+")).as_py() >= LEAST_WORDS:
        text = Text.fit(cells)
        return text if text.words else category
    return category


def _decimal(given: pa.Array) -> str:
    """The decimal sign of text that is mostly numbers; nothing if it is not."""
    first = some(given)
    if all(numbers(first, sign).null_count == len(first) for sign in (".", ",")):
        return ""
    decimal = decimal_of(given)
    return decimal if numbers(given, decimal).null_count < (1 - LEAST_NUMBERS) * len(given) else ""


def _numbers(place: str, cells: pa.Array, decimal: Any) -> Column | Oddity:
    values = Number(decimal=decimal).encode(cells)[:, 0]
    values = values[~np.isnan(values)]
    if values.size == 0:
        return EMPTY
    if np.abs(values).max() > LARGEST:
        refuse(place, *_HUGE)
    if values.min() == values.max() and values.size == len(cells):
        return CONSTANT
    first = values[0]
    if first in (0, 1) and values.size == len(cells) > 2 and (values == first + np.arange(values.size)).all():
        return ROWS
    return Number(decimal=decimal)


def _categories(given: pa.Array, n: int, keep: bool = False) -> Column | Oddity:
    """The most frequent categories, sorted by name. keep: also where they hardly repeat."""
    values, rows = pc.value_counts(texts(given).drop_null()).flatten()
    by_rows = sorted(zip(rows.to_pylist(), values.to_pylist(), strict=True))
    kept = [(count, value) for count, value in by_rows[-MOST_CATEGORIES:] if count >= FEWEST_ROWS]
    if len(by_rows) == 1 and by_rows[0][0] == n:
        return CONSTANT
    if not keep and sum(count for count, _ in kept) < LEAST_COVERED * len(given):
        return NAMES
    return Category(tuple(sorted(value for _, value in kept)), other=len(kept) < len(by_rows))


def check_kind(place: str, cells: pa.Array, how: Column) -> None:
    """A column that held numbers or dates must still do so, mostly. An `InputError` says what it holds instead."""
    given = cells.drop_null()
    if isinstance(how, Category | Text) or len(given) == 0:
        return
    kind = given.type
    if is_text(kind):
        readable = np.isnan(how.encode(given)[:, 0]).mean() <= LEAST_NUMBERS
    elif isinstance(how, Date):
        readable = is_date(kind)
    else:
        readable = is_number(kind) or pa.types.is_boolean(kind) or (pa.types.is_temporal(kind) and not is_date(kind))
    if readable and isinstance(how, Number) and np.nanmax(np.abs(how.encode(given))) > LARGEST:
        refuse(place, *_HUGE)
    if not readable:
        what = f"{listed(pc.unique(given))}, which are no {'dates' if isinstance(how, Date) else 'numbers'}"
        refuse(place, what, f"values like those of the fit ({how.kind})")
