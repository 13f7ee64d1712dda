"""From the columns of a node table to a matrix of features, in the same way for every later table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from g3nn.base.errors import counted
from g3nn.base.parse import Matrix
from g3nn.graph.features import AS_IS, GUESS, NUMBER, FeatureTable
from g3nn.graph.tables.cells import NULL_WORDS, date_formats, is_text, known, means_text, texts
from g3nn.graph.tables.encoders import (
    MISSING,
    SENTENCES,
    Category,
    Column,
    Date,
    Lacking,
    Text,
    check_kind,
    learned,
)
from g3nn.graph.tables.remarks import Oddity, Remarks, listed

LEFT_OUT = "left out"

EXTRA = Oddity("columns that the model was not fitted with", "the columns of the fit", "left out")


class ColumnRead(NamedTuple):
    """How one column was read. missing: cells without a value. became: what was made of it."""

    column: str
    kind: str
    missing: int
    became: str


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
    - Where a column is empty for all nodes of a kind, nothing is missing: `lacking` says what these get.

    How numbers are scaled is not decided here but by the model.
    """

    columns: dict[str, Column]
    read: tuple[ColumnRead, ...]
    nulls: tuple[str, ...] = NULL_WORDS
    lacking: dict[str, Lacking] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        name: str,
        table: pa.Table,
        typed: bool,
        chosen: dict[str, str],
        nulls: tuple[str, ...],
        remarks: Remarks,
        kinds: np.ndarray | None = None,
    ) -> FeatureSchema:
        """Learn from the feature columns of a table. `chosen`: kinds of columns that the caller asked for. kinds: (n,)
        of the nodes."""
        columns, read, lacking = dict[str, Column](), [], dict[str, Lacking]()
        for column in table.column_names:
            raw = table[column].combine_chunks()
            cells = _cells(raw, nulls)
            without = _without(cells, kinds)
            if kinds is not None and without:
                # Other kinds do not have such a column: what it holds is learned from those that do.
                own = pa.array(~np.isin(kinds, without))
                raw, cells = raw.filter(own), cells.filter(own)
            with remarks.gathered():
                place, as_text = f"{name}, column {column!r}", means_text(raw, cells, typed)
                made = learned(place, cells, as_text, chosen.get(column))
                if isinstance(made, Oddity):
                    remarks.column(name, column, made)
                    read.append(ColumnRead(column, LEFT_OUT, cells.null_count, made.found))
                    continue
                if isinstance(made, Text) and column not in chosen:
                    remarks.column(name, column, SENTENCES)
                _remark_on_values(name, column, made, cells, remarks)
                columns[column] = made
                read.append(ColumnRead(column, made.kind, cells.null_count, str(made)))
                if without:
                    lacking[column] = Lacking.of(without, made, cells)
        return cls(columns, tuple(read), nulls, lacking)

    @property
    def left_out(self) -> set[str]:
        return {one.column for one in self.read if one.kind == LEFT_OUT}

    def completed(self, table: pa.Table, kinds: np.ndarray | None) -> pa.Table:
        """A later table with the columns that none of its kinds of nodes has."""
        for column in self.lacking:
            if column not in table.column_names and self._lacks(column, kinds, table.num_rows).all():
                table = table.append_column(column, pa.nulls(table.num_rows))
        return table

    def check(self, name: str, table: pa.Table, remarks: Remarks, kinds: np.ndarray | None = None) -> None:
        """Record columns of a later table that are absent or cannot be read, and remark on the others."""
        for column in table.column_names:
            if column not in self.columns and column not in self.left_out:
                remarks.column(name, column, EXTRA)
        absent = [column for column in self.columns if column not in table.column_names]
        if absent:
            remarks.add(name, f"no column {listed(absent)}", "the columns that the model was fitted with")
        for column, how in self.columns.items():
            if column not in absent:
                cells = _cells(table[column].combine_chunks(), self.nulls)
                held = ~self._lacks(column, kinds, len(cells)) | cells.is_valid().to_numpy(False)
                cells = cells.filter(pa.array(held))
                with remarks.gathered():
                    check_kind(f"{name}, column {column!r}", cells, how)
                _remark_on_values(name, column, how, cells, remarks)

    def values(self, table: pa.Table, column: str) -> np.ndarray:
        """(n,) of one column that is no text: numbers, of categories their positions."""
        how, cells = self.columns[column], _cells(table[column].combine_chunks(), self.nulls)
        return how.positions(cells) if isinstance(how, Category) else how.encode(cells)[:, -1]

    def encode(self, table: pa.Table, kinds: np.ndarray | None = None) -> FeatureTable:
        """The features (n, d) of a table without problems, float64, NaN where a number is missing; a scipy CSR array if
        most of them are zero, else dense. kinds: (n,) of the nodes."""
        columns = self.columns.items()
        blocks = [how.encode(_cells(table[column].combine_chunks(), self.nulls)) for column, how in columns]
        for column, block in zip(self.columns, blocks, strict=True):
            if not sp.issparse(block) and (rows := self._lacks(column, kinds, len(block))).any():
                block[rows] = np.where(np.isnan(block[rows]), self.lacking[column].values, block[rows])
        held = np.repeat([_KINDS[how.kind] for how in self.columns.values()], [block.shape[1] for block in blocks])
        names = tuple(feature for column, how in columns for feature in how.names(column))
        return FeatureTable(side_by_side(blocks, table.num_rows), names, held.astype("U8"))

    def _lacks(self, column: str, kinds: np.ndarray | None, n: int) -> np.ndarray:
        """(n,): the nodes of kinds that do not have the column."""
        if kinds is None or column not in self.lacking:
            return np.zeros(n, dtype=bool)
        return np.isin(kinds, self.lacking[column].kinds)


_KINDS = {"numeric": GUESS, "boolean": AS_IS, "categorical": AS_IS, "text": AS_IS, "date": NUMBER}
"""What the features of each kind of column hold."""


def side_by_side(blocks: list[Any], n: int) -> Matrix:
    """Blocks of columns of n rows, sparse if most of what they hold is zero."""
    if not blocks:
        return np.zeros((n, 0))
    stored = sum(block.nnz if sp.issparse(block) else np.count_nonzero(block) for block in blocks)
    if 2 * stored < n * sum(block.shape[1] for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
    return np.hstack([block.toarray() if sp.issparse(block) else block for block in blocks])


def _cells(raw: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """The values of a column, null where nothing is known."""
    cells = known(raw, nulls)
    return pc.if_else(pc.is_nan(cells), None, cells) if pa.types.is_floating(cells.type) else cells


def _without(cells: pa.Array, kinds: np.ndarray | None) -> tuple[str, ...]:
    """The kinds of nodes for which a column is empty, unless it is for all."""
    if kinds is None or cells.null_count in (0, len(cells)):
        return ()
    names, codes = np.unique(kinds, return_inverse=True)
    filled = np.bincount(codes, cells.is_valid().to_numpy(zero_copy_only=False), minlength=len(names))
    return tuple(names[filled == 0].tolist())


def _remark_on_values(table: str, column: str, how: Column, cells: pa.Array, remarks: Remarks) -> None:
    """Cells that are missing, cannot be read, could mean two things, or that the fit has not seen."""
    place, given = f"{table}, column {column!r}", cells.drop_null()
    if isinstance(how, Category):
        unseen = pc.filter(texts(cells), pa.array(how.positions(cells) == len(how.categories)))
        if len(unseen) and not how.other:
            found = f"{counted(len(unseen), 'value')} that the fit has not seen ({listed(pc.unique(unseen))})"
            remarks.note(place, found, "categories of the fit", "taken as unknown")
    if isinstance(how, Category | Text):
        return
    unread = pc.filter(given, pa.array(np.isnan(how.encode(given)[:, 0]))) if is_text(given.type) else []
    if len(unread):
        what = "date" if isinstance(how, Date) else "number"
        many = f"{counted(len(unread), 'value')} that {'is' if len(unread) == 1 else 'are'} no {what}"
        found = f"{many} ({listed(pc.unique(unread))})"
        remarks.note(place, found, f"{what}s; empty where unknown", "taken as missing")
    elif cells.null_count:
        remarks.column(table, column, MISSING)
    if isinstance(how, Date) and how.format and is_text(given.type):
        for other in date_formats(given)[1:]:
            found = f"dates that can be read as {how.format} and as {other}"
            remarks.note(place, found, "dates such as 2020-12-31", f"read as {how.format}")
