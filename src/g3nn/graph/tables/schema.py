"""From the columns of a node table to a matrix of features, in the same way for every later table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.parse import Matrix
from g3nn.graph.tables.cells import (
    NULL_WORDS,
    date_format,
    decimal_of,
    floats,
    is_number,
    is_text,
    known,
    numbers,
    some,
)
from g3nn.graph.tables.columns import counted, listed, means_text, texts
from g3nn.graph.tables.encoders import (
    BOOLEAN,
    CATEGORICAL,
    DATE,
    FEWEST_ROWS,
    LARGEST,
    NUMERIC,
    TEXT,
    Category,
    Column,
    Date,
    Number,
    Text,
    as_numbers,
)
from g3nn.graph.tables.remarks import Oddity, Remarks

LEFT_OUT = "left out"

MOST_CATEGORIES = 100
LEAST_COVERED = 0.1
"""Share of the rows that the kept categories must cover. Otherwise the column holds names, not categories."""

LEAST_WORDS = 4
"""Mean number of words in the cells of a column of text. Shorter ones are names."""

LEAST_NUMBERS = 0.5
"""Share of the cells that must be numbers for the others to be mistakes."""

_KEEP = "--categorical or --text keeps it."
_HUGE = ("infinite or huge numbers", f"finite numbers up to {LARGEST:g}", "Correct or empty these values.")

EMPTY = Oddity("no value at all", "columns with values", "left out")
CONSTANT = Oddity("the same value in every row", "columns whose values differ", "left out")
NAMES = Oddity("almost as many values as rows", "values that repeat", "left out as names", _KEEP)
ROWS = Oddity("the numbers of the rows", "columns that say something about the nodes", "left out")
MISSING = Oddity("missing numbers", "a number in every row", "filled in from the neighbours, or with the mean")
SENTENCES = Oddity("sentences", "--text for sentences", "their words become features", "--ignore leaves them out.")
EXTRA = Oddity("columns that the model was not fitted with", "the columns of the fit", "left out")


class ColumnRead(NamedTuple):
    """How one column was read. missing: cells without a value. became: what was made of it."""

    column: str
    kind: str
    missing: int
    became: str


class Encoded(NamedTuple):
    """Features of n nodes.

    matrix: (n, d) float64, NaN where a number is missing; a scipy CSR array if most features are zero, else dense.
    kinds:  (d,) "as-is" for 0 and 1 and weighted words, "number" for what is to be scaled, "guess" where values decide.
    names:  (d,)
    """

    matrix: Matrix
    kinds: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True)
class FeatureSchema:
    """What was learned about the columns of a table.

    - Numbers are taken as they are, also with currency signs, percent signs, separators of thousands or a decimal
      comma. Missing: NaN. Booleans are 0 or 1.
    - Dates become year, month, weekday and age in days. Missing: NaN.
    - Categories are one-hot: the 100 most frequent ones that are in at least two rows. The others share one feature,
      which also stands for categories that the fit has not seen; without others these are all 0. Missing: all 0.
    - Text becomes TF-IDF of the 2,000 most frequent words that are in at least two rows. Missing: all 0.
    - Columns that say nothing are left out: empty or constant ones, row numbers, and names that hardly repeat.

    How numbers are scaled is not decided here but by the model.
    """

    columns: dict[str, Column]
    read: tuple[ColumnRead, ...]
    nulls: tuple[str, ...] = NULL_WORDS

    @classmethod
    def fit(
        cls,
        name: str,
        table: pa.Table,
        typed: bool,
        chosen: Mapping[str, str],
        nulls: tuple[str, ...],
        remarks: Remarks,
    ) -> FeatureSchema:
        """Learn from the feature columns of a table. `chosen`: kinds that the caller asked for."""
        columns, read = dict[str, Column](), []
        for column in table.column_names:
            raw = table[column].combine_chunks()
            cells = _cells(raw, nulls)
            place, as_text = f"{name}, column {column!r}", means_text(raw, cells, typed)
            made = _learned(place, cells, as_text, chosen.get(column), remarks.problems)
            if made is None:
                continue
            if isinstance(made, Oddity):
                remarks.column(name, column, made)
                read.append(ColumnRead(column, LEFT_OUT, cells.null_count, made.found))
                continue
            if made.kind == TEXT and column not in chosen:
                remarks.column(name, column, SENTENCES)
            _remark_on_values(name, column, made, cells, remarks)
            columns[column] = made
            read.append(ColumnRead(column, made.kind, cells.null_count, str(made)))
        return cls(columns, tuple(read), nulls)

    @property
    def left_out(self) -> set[str]:
        return {one.column for one in self.read if one.kind == LEFT_OUT}

    def encode(self, name: str, table: pa.Table, remarks: Remarks, quiet: bool = False) -> Encoded | None:
        """None where a column is absent or cannot be read. `quiet`: on the table of the fit, which was remarked on."""
        problems, before = remarks.problems, len(remarks.problems.found)
        present, left_out = set(table.column_names), self.left_out
        absent = [column for column in self.columns if column not in present]
        if absent:
            problems.add(name, f"no column {listed(absent)}", "the columns that the model was fitted with")
        for column in table.column_names:
            if column not in self.columns and column not in left_out:
                remarks.column(name, column, EXTRA)
        blocks = []
        for column, how in self.columns.items():
            if column not in present:
                continue
            cells = _cells(table[column].combine_chunks(), self.nulls)
            if not quiet:
                _check_kind(f"{name}, column {column!r}", cells, how, problems)
                _remark_on_values(name, column, how, cells, remarks)
            if len(problems.found) == before:
                blocks.append(how.encode(cells))
        if len(problems.found) > before:
            return None
        widths = [block.shape[1] for block in blocks]
        kinds = np.repeat([_KINDS[how.kind] for how in self.columns.values()], widths)
        names = [feature for column, how in self.columns.items() for feature in how.names(column)]
        return Encoded(_side_by_side(blocks, table.num_rows), kinds.astype("U8"), tuple(names))


_KINDS = {NUMERIC: "guess", BOOLEAN: "as-is", CATEGORICAL: "as-is", TEXT: "as-is", DATE: "number"}
"""What is to be done with the values of each kind of column; as `Encoded.kinds` says."""


def _side_by_side(blocks: list[Any], n: int) -> Matrix:
    if not blocks:
        return np.zeros((n, 0))
    stored = sum(block.nnz if sp.issparse(block) else np.count_nonzero(block) for block in blocks)
    if 2 * stored < n * sum(block.shape[1] for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
    return np.hstack([block.toarray() if sp.issparse(block) else block for block in blocks])


def _cells(raw: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """The values of a column, null where nothing is known."""
    if is_text(raw.type):
        return known(raw, nulls)
    return pc.if_else(pc.is_nan(raw), None, raw) if pa.types.is_floating(raw.type) else raw


def _is_date(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _learned(
    place: str, cells: pa.Array, as_text: bool, chosen: str | None, problems: Problems
) -> Column | Oddity | None:
    """How to read a column; why it is left out; or None if it cannot be used.

    as_text: whether numbers that are written as text are meant as text.
    """
    kind = cells.type
    if cells.null_count == len(cells):
        return EMPTY
    of_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    if not (is_text(kind) or is_number(kind) or of_time or pa.types.is_boolean(kind)):
        advice = "Take it out with --ignore, or write one column for each number in it."
        problems.add(place, f"values of type {kind}", "numbers, booleans, dates or text", advice)
        return None
    given = cells.drop_null()
    if chosen == CATEGORICAL:
        return _categories(given, len(cells), keep=True)
    if chosen == TEXT:
        text = Text.fit(cells)
        if text.words:
            return text
        return Oddity("no word that repeats", "words that occur in at least two rows", "left out")
    if pa.types.is_boolean(kind):
        return Number(BOOLEAN) if len(pc.unique(given)) > 1 or cells.null_count else CONSTANT
    if _is_date(kind):
        return Date.fit(cells, "") if len(pc.unique(given)) > 1 else CONSTANT
    if is_number(kind) or pa.types.is_temporal(kind):
        return _numbers(place, cells, ".", problems)
    return _words(place, cells, given, as_text, problems)


def _words(place: str, cells: pa.Array, given: pa.Array, as_text: bool, problems: Problems) -> Column | Oddity | None:
    """How to read a column of text: as numbers, dates, categories or sentences."""
    if cells.null_count == 0 and len(pc.unique(given)) == 1:
        return CONSTANT
    if pc.any(pc.match_substring_regex(some(given), "[0-9]")).as_py():
        if not as_text and (decimal := _decimal(given)):
            return _numbers(place, cells, decimal, problems)
        found = date_format(given)
        if found is not None:
            return Date.fit(cells, found.format) if len(pc.unique(given)) > 1 else CONSTANT
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


def _numbers(place: str, cells: pa.Array, decimal: Any, problems: Problems) -> Column | Oddity | None:
    values = floats(numbers(cells, decimal) if is_text(cells.type) else as_numbers(cells))
    values = values[~np.isnan(values)]
    if values.size == 0:
        return EMPTY
    if np.abs(values).max() > LARGEST:
        problems.add(place, *_HUGE)
        return None
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


def _remark_on_values(table: str, column: str, how: Column, cells: pa.Array, remarks: Remarks) -> None:
    """Cells that are missing, cannot be read, could mean two things, or that the fit has not seen."""
    if isinstance(how, Category):
        unseen = pc.filter(texts(cells), pa.array(how.positions(cells) == len(how.categories)))
        if len(unseen) and not how.other:
            found = f"{counted(len(unseen), 'value')} that the fit has not seen ({listed(pc.unique(unseen))})"
            remarks.note(f"{table}, column {column!r}", Oddity(found, "categories of the fit", "taken as unknown"))
        return
    if isinstance(how, Text):
        return
    given = cells.drop_null()
    unread = pc.filter(given, pa.array(np.isnan(how.encode(given)[:, 0]))) if is_text(given.type) else []
    if len(unread):
        what = "date" if isinstance(how, Date) else "number"
        many = f"{counted(len(unread), 'value')} that {'is' if len(unread) == 1 else 'are'} no {what}"
        found = f"{many} ({listed(pc.unique(unread))})"
        allowed = f"{what}s; empty where unknown"
        remarks.note(f"{table}, column {column!r}", Oddity(found, allowed, "taken as missing"))
    elif cells.null_count:
        remarks.column(table, column, MISSING)
    both = date_format(given) if isinstance(how, Date) and how.format and is_text(given.type) else None
    if isinstance(how, Date) and both is not None and both.other:
        found = f"dates that can be read as {how.format} and as {both.other}"
        remarks.note(f"{table}, column {column!r}", Oddity(found, "dates such as 2020-12-31", f"read as {how.format}"))


def _check_kind(place: str, cells: pa.Array, how: Column, problems: Problems) -> None:
    """A column that held numbers or dates must still do so, mostly."""
    given = cells.drop_null()
    if isinstance(how, Category | Text) or len(given) == 0:
        return
    kind = given.type
    if is_text(kind):
        readable = np.isnan(how.encode(given)[:, 0]).mean() <= LEAST_NUMBERS
    elif isinstance(how, Date):
        readable = _is_date(kind)
    else:
        readable = is_number(kind) or pa.types.is_boolean(kind) or (pa.types.is_temporal(kind) and not _is_date(kind))
    if readable and isinstance(how, Number) and np.nanmax(np.abs(how.encode(given))) > LARGEST:
        problems.add(place, *_HUGE)
    if not readable:
        what = f"{listed(pc.unique(given))}, which are no {'dates' if isinstance(how, Date) else 'numbers'}"
        problems.add(place, what, f"values like those of the fit ({how.kind})")
