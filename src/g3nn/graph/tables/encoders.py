"""How single columns become features: numbers, dates, categories and text, each as the fit learned it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from g3nn.graph.tables.cells import date_format, dates, floats, is_text, numbers
from g3nn.graph.tables.columns import counted, texts

NUMERIC, CATEGORICAL, TEXT, DATE = "numeric", "categorical", "text", "date"
BOOLEAN: Literal["boolean"] = "boolean"

LARGEST = 1e150
"""Squares of larger numbers overflow."""

MOST_WORDS = 2000
FEWEST_ROWS = 2
"""A category or a word in fewer rows says nothing about other rows."""


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
            cells = _truths(cells) if self.kind == BOOLEAN else numbers(cells, self.decimal)
        return floats(as_numbers(cells))[:, None]

    def names(self, column: str) -> list[str]:
        return [column]

    def __str__(self) -> str:
        return "a number" if self.kind == NUMERIC else "0 or 1"


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
        return cls(format, float(np.nanmax(_seconds(cells, format))))

    def encode(self, cells: pa.Array) -> np.ndarray:
        seconds = _seconds(cells, self.format)
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


def _seconds(cells: pa.Array, format: str) -> np.ndarray:
    """(n,) seconds since 1970, NaN where there is no date."""
    if is_text(cells.type):
        # A table that knew dates as such has no format; a later one may have them as text.
        found = None if format else date_format(cells.drop_null())
        moments = dates(cells, found.format if found else format)
    elif pa.types.is_temporal(cells.type):
        moments = pc.cast(cells, pa.timestamp("s"), safe=False)
    else:
        return np.full(len(cells), np.nan)
    return floats(pc.cast(moments, pa.int64()))


def _documents(cells: pa.Array) -> list[str]:
    return pc.fill_null(texts(cells), "").to_pylist()
