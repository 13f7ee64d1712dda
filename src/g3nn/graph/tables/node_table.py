"""The node table: one row per node. `load_nodes` reads ids, labels, the split and the columns that describe nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError, InputError
from g3nn.graph.outcomes import Labels
from g3nn.graph.tables.cells import NULL_WORDS, is_text
from g3nn.graph.tables.columns import PARTS, counted, identifiers, listed, plain, refuse, split_parts
from g3nn.graph.tables.encoders import CATEGORICAL, TEXT
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.labels import AUTO, read_labels
from g3nn.graph.tables.remarks import Oddity, Remarks

SPLIT = "split"


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a node table that are not ordinary features. Several `labels` are tags.

    Every other column describes the nodes, as `FeatureSchema` reads it: `text` columns as words, `categorical` columns
    as categories even if they hold numbers. Without an `id`, the rows are numbered from 0. The `split` column says
    which labelled nodes are for training, validation and test; by default it is a column called split, if it holds
    train, val and test only. nulls: words that say that nothing is known.
    """

    id: str | None = None
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    split: str | None = None
    outcome: str = AUTO
    nulls: tuple[str, ...] = NULL_WORDS

    @property
    def special(self) -> set[str]:
        return {name for name in (self.id, *self.labels, self.split) if name is not None}

    @property
    def chosen(self) -> dict[str, str]:
        """The kinds of columns that the caller asked for."""
        return {**dict.fromkeys(self.categorical, CATEGORICAL), **dict.fromkeys(self.text, TEXT)}


@dataclass(frozen=True, eq=False)
class NodeTable:
    """n nodes.

    ids:      (n,) int64 or text, each id once.
    features: the columns that describe the nodes.
    labels:   what the label columns say; None without one, or if they cannot be read.
    split:    (n,) "train", "val" or "test", from `columns.split`; None without one.
    columns:  what was asked for, with the split column and the outcome that were found.
    typed:    whether the table says that ids are numbers or text.
    content:  all columns of the table.
    """

    name: str
    ids: pa.Array
    features: pa.Table
    columns: NodeColumns
    content: pa.Table
    labels: Labels | None = None
    split: np.ndarray | None = None
    typed: bool = True

    @property
    def num_nodes(self) -> int:
        return len(self.ids)


def load_nodes(table: Any, columns: NodeColumns, remarks: Remarks) -> NodeTable | None:
    """Read a node table; None if its ids cannot be read."""
    source, problems = Source.open(table, "nodes", remarks), remarks.problems
    roles = {"id": (columns.id,), "label": columns.labels, "split": (columns.split,)}
    roles |= {"text": columns.text, "categorical": columns.categorical, "ignored": columns.ignore}
    source.check_roles(roles, problems)
    content = source.read(text={*columns.special, *columns.chosen}, nulls=columns.nulls)
    if content.num_rows == 0:
        raise DataError(f"{source.name}: has a header but no rows.")
    columns = _with_split(source, content, columns, remarks)
    ids, parts, labels = None, None, None
    if columns.id is None:
        ids = pa.array(np.arange(content.num_rows))
    elif columns.id in source.names:
        with problems.gathered():
            ids = identifiers(source.place(columns.id), content[columns.id], source.typed)
            _check_distinct(source.place(columns.id), ids)
    if columns.labels and set(columns.labels) <= set(source.names):
        found = read_labels(source, content, columns.labels, columns.outcome, columns.nulls, remarks)
        columns, labels = replace(columns, outcome=found[0]), found[1]
    if columns.split in source.names:
        with problems.gathered():
            parts = split_parts(source.place(columns.split), content[columns.split])
    if ids is None:
        return None
    other = {*columns.special, *columns.ignore}
    left = [name for name in content.column_names if name not in other]
    # Without ids or labels, a column that was meant for them would pass for a feature.
    if not {*([columns.id] if columns.id else []), *columns.labels} <= set(source.names):
        left = []
    # A table without columns, unlike a selection of none, would have no rows.
    features = (
        pa.table([plain(content[name], typed=False) for name in left], names=left) if left else content.select([])
    )
    return NodeTable(source.name, ids, features, columns, content, labels, parts, source.typed)


def _with_split(source: Source, table: pa.Table, columns: NodeColumns, remarks: Remarks) -> NodeColumns:
    """A column that is called split and holds a split is the split column, if no role is given to it."""
    used = {*columns.special, *columns.text, *columns.ignore, *columns.categorical}
    if columns.split is not None or SPLIT not in table.column_names or SPLIT in used:
        return columns
    try:
        split_parts("", table[SPLIT])
    except InputError as error:
        cells = plain(table[SPLIT], typed=False)
        if is_text(cells.type) and {str(cell).lower() for cell in cells.to_pylist()} & set(PARTS):
            advice = "--split split demands a split, --ignore split leaves it out."
            oddity = Oddity(
                error.problems[0].given, ", ".join(PARTS), "taken to describe the nodes, as no split", advice
            )
            remarks.note(source.place(SPLIT), oddity)
        return columns
    return columns if table[SPLIT].null_count == table.num_rows else replace(columns, split=SPLIT)


def _check_distinct(place: str, ids: pa.Array) -> None:
    values, rows = pc.value_counts(ids).flatten()
    repeated = pc.filter(values, pc.greater(rows, 1))
    if len(repeated):
        given = f"{counted(len(repeated), 'id')} in more than one row ({listed(repeated)})"
        refuse(place, given, "each id once", "Keep one row per node.")
