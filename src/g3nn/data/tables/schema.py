"""From the columns of a node table to a matrix of features, in the same way for every later table."""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from annotated_types import Interval

from g3nn.data.planetoid import row_normalised
from g3nn.data.tables.columns import BOOLEAN, CATEGORICAL, LARGEST, NUMERIC, TEXT, counted, floats, listed, texts
from g3nn.data.tables.node_table import NodeTable
from g3nn.errors import G3NNWarning, Problems
from g3nn.parse import Matrix

FEWEST_COUNTS = 50
LEAST_ZEROS, LEAST_ZEROS_IN_ALL = 0.25, 0.8
"""Share of zeros in each column of word counts, and in all of them together."""

MOST_CATEGORIES = 100
MOST_WORDS = 2000
FEWEST_ROWS = 2
"""A category or a word in fewer rows says nothing about other rows."""

LEAST_COVERED = 0.1
"""Share of the rows that the kept categories must cover. Otherwise the column holds names, not categories."""

_IGNORE = "Take it out with --ignore."

Reason = tuple[str, ...]
"""Why a column cannot be used: what is wrong with it, what is allowed, and what to do."""

EMPTY = ("no value at all", "columns with values", _IGNORE)
CONSTANT = ("the same value in every row", "columns whose values differ", _IGNORE)
HUGE = ("infinite or huge numbers", f"finite numbers up to {LARGEST:g}", "Correct or empty these values.")
MISSING = ("missing values", "a value in every row", "Fill them in, or fit with --missing impute.")
NAMES = ("almost as many values as rows", "categories that repeat", "Use --text if it holds words, or --ignore.")
WORDLESS = ("no word that repeats", "words that occur in at least two rows", _IGNORE)
FAR = ("numbers that are infinite or far from all those of the fit", "values like those of the fit")
NEGATIVE = ("negative or infinite counts", "values like those of the fit")


@dataclass
class Remarks:
    """About columns: the names of those that cannot be used, by reason, and values that the fit has not seen."""

    refused: defaultdict[Reason, list[str]] = field(default_factory=lambda: defaultdict(list))
    unseen: list[str] = field(default_factory=list)

    def raise_refused(self, table: str, missing: str) -> None:
        """One problem for each reason. Missing values are a problem only if `missing` is "error"."""
        problems = Problems()
        for reason, names in self.refused.items():
            if reason != MISSING or missing == "error":
                problems.add(f"{table}, column{'s' if len(names) > 1 else ''} {listed(names)}", *reason)
        problems.raise_if_any()


Limited = Annotated[float, Interval(ge=-LARGEST, le=LARGEST)]
Scale = Annotated[float, Interval(gt=0, le=LARGEST)]


@dataclass(frozen=True)
class Number:
    """(x - mean) / scale, or 0 and 1 for a boolean; NaN where missing."""

    mean: Limited
    scale: Scale
    kind: str = NUMERIC

    @classmethod
    def fit(cls, name: str, column: pa.Array, remarks: Remarks) -> Number:
        values = floats(column)
        known = values[~np.isnan(values)]
        if known.size == 0:
            remarks.refused[EMPTY].append(name)
            return cls(0.0, 1.0)
        if known.size < values.size:
            remarks.refused[MISSING].append(name)
        if np.abs(known).max() > LARGEST:
            remarks.refused[HUGE].append(name)
            return cls(0.0, 1.0)
        if known.min() == known.max():
            remarks.refused[CONSTANT].append(name)
        if pa.types.is_boolean(column.type):
            return cls(0.0, 1.0, BOOLEAN)
        return cls(float(known.mean()), float(known.std()) or 1.0)

    def encode(self, name: str, column: pa.Array, remarks: Remarks) -> np.ndarray:
        values = floats(column)
        if np.isnan(values).any():
            remarks.refused[MISSING].append(name)
        with np.errstate(over="ignore", invalid="ignore"):
            encoded = ((values - self.mean) / self.scale).astype(np.float32)
        if np.isinf(encoded).any():
            remarks.refused[FAR].append(name)
        return encoded[:, None]


@dataclass(frozen=True)
class Category:
    """One 0/1 feature for each category, and one for all rare ones if there are any; all 0 where missing.

    A category that the fit has not seen is treated as a rare one, and is all 0 if there are none.
    """

    categories: tuple[str, ...]
    other: bool
    kind: ClassVar[str] = CATEGORICAL

    @classmethod
    def fit(cls, name: str, column: pa.Array, remarks: Remarks) -> Category:
        """The most frequent categories, sorted by name."""
        values, numbers = pc.value_counts(texts(column).drop_null()).flatten()
        by_rows = sorted(zip(numbers.to_pylist(), values.to_pylist(), strict=True))
        rows = sum(count for count, _ in by_rows)
        kept = [(count, value) for count, value in by_rows[-MOST_CATEGORIES:] if count >= FEWEST_ROWS]
        if not by_rows:
            remarks.refused[EMPTY].append(name)
        elif len(by_rows) == 1 and rows == len(column):
            remarks.refused[CONSTANT].append(name)
        elif sum(count for count, _ in kept) < LEAST_COVERED * rows:
            remarks.refused[NAMES].append(name)
        return cls(tuple(sorted(value for _, value in kept)), other=len(kept) < len(by_rows))

    def encode(self, name: str, column: pa.Array, remarks: Remarks) -> sp.csr_array:
        values, rare = texts(column), len(self.categories)
        index = pc.index_in(values, value_set=pa.array(self.categories, pa.large_string()), skip_nulls=True)
        position = pc.fill_null(index, rare).to_numpy().astype(np.int64)
        present = values.is_valid().to_numpy(zero_copy_only=False)
        unseen = pc.filter(values, pa.array(present & (position == rare)))
        if len(unseen):
            remarks.unseen.append(f"column {name!r}: {counted(len(unseen), 'value')} ({listed(pc.unique(unseen))})")
        rows = np.flatnonzero(present & (position < rare + self.other))
        ones = np.ones(rows.size, dtype=np.float32)
        return sp.csr_array((ones, (rows, position[rows])), shape=(len(values), rare + self.other))


@dataclass(frozen=True)
class Text:
    """TF-IDF by scikit-learn, with the inverse document frequency of each word."""

    words: dict[str, Limited]
    kind: ClassVar[str] = TEXT

    @classmethod
    def fit(cls, name: str, column: pa.Array, remarks: Remarks) -> Text:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(max_features=MOST_WORDS, min_df=FEWEST_ROWS)
        try:
            vectorizer.fit(_documents(column))
        except ValueError:
            # This is how scikit-learn says that no word is left.
            remarks.refused[WORDLESS if texts(column).null_count < len(column) else EMPTY].append(name)
            return cls({})
        return cls(dict(zip(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_.tolist(), strict=True)))

    def encode(self, name: str, column: pa.Array, remarks: Remarks) -> sp.csr_array:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(list(self.words.values()))
        return sp.csr_array(vectorizer.transform(_documents(column)), dtype=np.float32)


def _documents(column: pa.Array) -> list[str]:
    return pc.fill_null(texts(column), "").to_pylist()


Column = Number | Category | Text
_COLUMNS: dict[str, type[Column]] = {NUMERIC: Number, BOOLEAN: Number, CATEGORICAL: Category, TEXT: Text}


@dataclass(frozen=True)
class FeatureSchema:
    """What was learned about the columns of a table.

    - Numbers are standardised: (x - mean) / standard deviation, over the known values. Missing numbers stay NaN.
    - Word counts are kept sparse. A column holds word counts if it is never negative or missing and zero in at least a
      quarter of the rows, provided that there are at least 50 such columns and four fifths of all their values are
      zero. They are not standardised; instead, the counts of each row are divided by their sum.
    - Booleans are 0 or 1. Missing: NaN.
    - Categories are one-hot: the 100 most frequent ones that are in at least two rows. The others share one feature,
      which also stands for categories that the fit has not seen; without others these are all 0. Missing: all 0.
    - Text becomes TF-IDF of the 2,000 most frequent words that are in at least two rows. Missing: all 0.

    Word counts come first in the matrix, then the other columns in the order of the table.
    """

    counts: tuple[str, ...]
    columns: dict[str, Column]

    @classmethod
    def fit(cls, nodes: NodeTable, *, missing: str = "impute") -> FeatureSchema:
        """Learn from a table. Raises one error that names all columns that cannot be used.

        missing: "error" if missing numbers and booleans are an error too, else "impute".
        """
        table = {name: nodes.features[name].combine_chunks() for name in nodes.kinds}
        zeros = {name: _zeros(table[name]) for name, kind in nodes.kinds.items() if kind == NUMERIC}
        zeros = {name: share for name, share in zeros.items() if share >= LEAST_ZEROS}
        if len(zeros) < FEWEST_COUNTS or np.mean(list(zeros.values())) < LEAST_ZEROS_IN_ALL:
            zeros = {}
        remarks, others = Remarks(), {name: kind for name, kind in nodes.kinds.items() if name not in zeros}
        columns = {name: _COLUMNS[kind].fit(name, table[name], remarks) for name, kind in others.items()}
        remarks.raise_refused(nodes.name, missing)
        return cls(tuple(zeros), columns)

    @property
    def kinds(self) -> dict[str, str]:
        """How each column of a table must be read."""
        return {**dict.fromkeys(self.counts, NUMERIC), **{name: column.kind for name, column in self.columns.items()}}

    def encode(self, nodes: NodeTable, *, missing: str = "impute", quiet: bool = False) -> Matrix:
        """(n, d) float32; NaN where a number or boolean is missing. A scipy CSR array if most features come from
        counts, categories and words, otherwise a dense array.

        Raises one error that names every column that is absent, new, of another kind, or cannot be encoded.
        missing: as in `fit`. Categories that the fit has not seen are counted in a warning, unless `quiet`.
        """
        problems, remarks = Problems(), Remarks()
        self.check_columns(nodes, problems)
        problems.raise_if_any()
        table = {name: nodes.features[name].combine_chunks() for name in self.kinds}
        counts = [_count(name, table[name], remarks) for name in self.counts]
        blocks: list[Any] = [column.encode(name, table[name], remarks) for name, column in self.columns.items()]
        remarks.raise_refused(nodes.name, missing)
        if remarks.unseen and not quiet:
            words = f"categories that were rare or absent in the fit: {'; '.join(remarks.unseen)}"
            warnings.warn(f"{nodes.name}: {words}", G3NNWarning, stacklevel=2)
        if counts:
            blocks.insert(0, _shares(counts))
        dense = sum(isinstance(column, Number) for column in self.columns.values())
        if 2 * dense < sum(block.shape[1] for block in blocks):
            return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
        return np.hstack([block.toarray() if sp.issparse(block) else block for block in blocks])

    def check_columns(self, nodes: NodeTable, problems: Problems) -> None:
        """Record which columns are absent, new or of another kind. A column without values may be of any kind."""
        allowed, fitted = "the columns that the model was fitted with", self.kinds
        filled = {name: kind for name, kind in nodes.kinds.items() if nodes.features[name].null_count < nodes.num_nodes}
        absent = [name for name in fitted if name not in nodes.kinds]
        new = [name for name in nodes.kinds if name not in fitted]
        differing = {name: kind for name, kind in fitted.items() if filled.get(name, kind) != kind}
        other = [f"{name!r} ({filled[name]} instead of {kind})" for name, kind in differing.items()]
        if absent:
            problems.add(nodes.name, f"no column {listed(absent)}", allowed)
        if new:
            problems.add(nodes.name, f"new columns {listed(new)}", allowed, "Take them out.")
        if other:
            shown = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
            problems.add(nodes.name, f"columns of another kind: {shown}", allowed)


def _zeros(column: pa.Array) -> float:
    """The share of zeros in a column; 0 if it has a value that no word count can have."""
    values = floats(column)
    return float((values == 0).mean()) if ((values >= 0) & (values <= LARGEST)).all() else 0.0


def _count(name: str, column: pa.Array, remarks: Remarks) -> np.ndarray:
    values = floats(column)
    if np.isnan(values).any():
        remarks.refused[MISSING].append(name)
    if (values < 0).any() or (values > LARGEST).any():
        remarks.refused[NEGATIVE].append(name)
    return values


def _shares(counts: list[np.ndarray]) -> sp.csr_array:
    """(n, d): each row divided by the sum of its known counts. A missing count stays NaN."""
    rows = [np.flatnonzero(column) for column in counts]
    data = np.concatenate([column[row] for column, row in zip(counts, rows, strict=True)])
    ends = np.cumsum([0, *(row.size for row in rows)])
    matrix = sp.csc_array((data, np.concatenate(rows), ends), shape=(counts[0].size, len(counts)))
    return row_normalised(sp.csr_array(matrix))
