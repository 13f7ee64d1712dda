"""How each kind of column becomes features. A column learns what it needs from the table it is fitted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from g3nn.data.tables.checks import Findings
from g3nn.data.tables.columns import BOOLEAN, CATEGORICAL, LARGEST, NUMERIC, TEXT, floats, listed, texts

MOST_CATEGORIES = 100
FEWEST_ROWS = 2
"""A category or a word in fewer rows than this says nothing about other rows."""

LEAST_COVERED = 0.1
"""Share of the rows that the kept categories must cover; below, the column holds names rather than categories."""

MOST_WORDS = 2000
OTHER = "other"


@dataclass
class Remarks:
    """What encoded columns give reason to say: values that cannot be encoded, are new or missing; by column."""

    refused: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)

    def numbers(self, name: str, column: pa.Array) -> np.ndarray:
        """The column as floats; whether some are missing is noted."""
        values = floats(column)
        if np.isnan(values).any():
            self.incomplete.append(name)
        return values


@dataclass(frozen=True)
class OneFeature:
    """A column that becomes one feature of the same name."""

    name: str

    @property
    def features(self) -> list[str]:
        return [self.name]


@dataclass(frozen=True)
class Number(OneFeature):
    """(x - mean) / scale over the known values; NaN where missing."""

    mean: float
    scale: float

    kind: ClassVar[str] = "numeric"
    read_as: ClassVar[str] = NUMERIC
    sparse: ClassVar[bool] = False

    def encode(self, column: pa.Array, remarks: Remarks) -> np.ndarray:
        values = remarks.numbers(self.name, column)
        with np.errstate(over="ignore", invalid="ignore"):
            encoded = ((values - self.mean) / self.scale).astype(np.float32)
        if np.isinf(encoded).any():
            remarks.refused[self.name] = "numbers that are infinite or far from all those of the fit"
        return encoded[:, None]


@dataclass(frozen=True)
class Count(OneFeature):
    """A word count or the like: kept as it is, but the counts of a row are divided by their sum."""

    kind: ClassVar[str] = "count"
    read_as: ClassVar[str] = NUMERIC
    sparse: ClassVar[bool] = True

    def values(self, column: pa.Array, remarks: Remarks) -> np.ndarray:
        values = remarks.numbers(self.name, column)
        if (values < 0).any() or (values > LARGEST).any():
            remarks.refused[self.name] = "negative or infinite counts"
        return values


@dataclass(frozen=True)
class Boolean(OneFeature):
    """0 or 1; NaN where missing."""

    kind: ClassVar[str] = "boolean"
    read_as: ClassVar[str] = BOOLEAN
    sparse: ClassVar[bool] = False

    def encode(self, column: pa.Array, remarks: Remarks) -> np.ndarray:
        return remarks.numbers(self.name, column).astype(np.float32)[:, None]


@dataclass(frozen=True)
class Category:
    """One 0/1 feature per category, and one for all rare ones if there are any; all 0 where missing.

    A category that was not there at the time of the fit counts as a rare one, or is all 0 where there are none.
    """

    name: str
    categories: tuple[str, ...]
    other: bool

    kind: ClassVar[str] = "categorical"
    read_as: ClassVar[str] = CATEGORICAL
    sparse: ClassVar[bool] = True

    @property
    def features(self) -> list[str]:
        return [f"{self.name}={category}" for category in (*self.categories, *([OTHER] if self.other else []))]

    def encode(self, column: pa.Array, remarks: Remarks) -> sp.csr_array:
        values = texts(column)
        index = pc.index_in(values, value_set=pa.array(self.categories, pa.large_string()), skip_nulls=True)
        places = pc.fill_null(index, len(self.categories)).to_numpy().astype(np.int64)
        known = values.is_valid().to_numpy(zero_copy_only=False)
        strange = known & (places == len(self.categories))
        if strange.any():
            new = pc.unique(pc.filter(values, pa.array(strange)))
            remarks.unseen[self.name] = f"{int(strange.sum())} values: {listed(new[:5].to_pylist(), len(new))}"
        rows = np.flatnonzero(known if self.other else known & ~strange)
        ones = np.ones(rows.size, dtype=np.float32)
        return sp.csr_array((ones, (rows, places[rows])), shape=(len(values), len(self.features)))


@dataclass(frozen=True)
class Text:
    """TF-IDF of the words, by scikit-learn: at most `MOST_WORDS` words, each in at least `FEWEST_ROWS` rows."""

    name: str
    words: tuple[str, ...]
    weights: tuple[float, ...]

    kind: ClassVar[str] = "text"
    read_as: ClassVar[str] = TEXT
    sparse: ClassVar[bool] = True

    @property
    def features(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words]

    def encode(self, column: pa.Array, remarks: Remarks) -> sp.csr_array:
        return sp.csr_array(self._vectorizer.transform(_documents(column)), dtype=np.float32)

    @cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(self.weights)
        return vectorizer


Column = Number | Count | Boolean | Category | Text


def fit_category(name: str, column: pa.Array, findings: Findings) -> Category:
    """The most frequent categories, in the order of their names."""
    counts = pc.value_counts(texts(column).drop_null())
    found = sorted(zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True))
    rows = sum(count for count, _ in found)
    kept = [(count, value) for count, value in found[-MOST_CATEGORIES:] if count >= FEWEST_ROWS]
    if not found:
        findings.empty.append(name)
    elif len(found) == 1 and rows == len(column):
        findings.constant.append(name)
    elif sum(count for count, _ in kept) < LEAST_COVERED * rows:
        findings.unique.append(name)
    return Category(name, tuple(sorted(value for _, value in kept)), other=len(kept) < len(found))


def fit_text(name: str, column: pa.Array, findings: Findings) -> Text:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(max_features=MOST_WORDS, min_df=FEWEST_ROWS)
    try:
        vectorizer.fit(_documents(column))
    except ValueError:
        # scikit-learn's way to say that no word is left.
        (findings.wordless if texts(column).null_count < len(column) else findings.empty).append(name)
        return Text(name, (), ())
    words = tuple(str(word) for word in vectorizer.get_feature_names_out())
    return Text(name, words, tuple(float(weight) for weight in vectorizer.idf_))


def _documents(column: pa.Array) -> list[str]:
    return pc.fill_null(texts(column), "").to_pylist()
