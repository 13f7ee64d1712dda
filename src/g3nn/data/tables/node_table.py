"""The node table: one row per node, CSV or Parquet. `load_nodes` reads ids, labels, the split and the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import (
    CATEGORICAL,
    TEXT,
    counted,
    feature_kind,
    identifiers,
    listed,
    plain,
    refuse,
    split_parts,
)
from g3nn.data.tables.files import TableFile
from g3nn.data.tables.labels import AUTO, read_labels
from g3nn.errors import InputError, Problems
from g3nn.outcomes import Labels

SPLIT = "split"


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a node table that are not ordinary features. Several `labels` are tags.

    Every other column describes the nodes: numbers and booleans as they are, text as categories, `text` columns as
    words, `categorical` columns as categories even if they hold numbers. The `split` column says which labelled nodes
    are for training, validation and test; by default it is a column called split, if it holds train, val and test only.
    """

    id: str
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    split: str | None = None
    outcome: str = AUTO

    @property
    def special(self) -> set[str]:
        return {name for name in (self.id, *self.labels, self.split) if name is not None}


@dataclass(frozen=True, eq=False)
class NodeTable:
    """n nodes.

    ids:      (n,) int64 or text, each id once.
    features: the columns that describe the nodes; `kinds` says how to read each.
    labels:   what the label columns say; None without one, or if they cannot be read.
    split:    (n,) "train", "val" or "test", from `split_column`; None without one.
    typed:    whether the file says that ids are numbers or text.
    """

    name: str
    ids: pa.Array
    features: pa.Table
    kinds: Mapping[str, str]
    labels: Labels | None = None
    split: np.ndarray | None = None
    split_column: str | None = None
    typed: bool = True
    outcome: str = AUTO

    @property
    def num_nodes(self) -> int:
        return len(self.ids)


def load_nodes(path: str | Path, columns: NodeColumns, problems: Problems) -> NodeTable | None:
    """Read a node table without the columns that have problems; None if its ids cannot be read."""
    file = TableFile.open(path)
    roles = {"id": (columns.id,), "label": columns.labels, "split": (columns.split,)}
    roles |= {"text": columns.text, "categorical": columns.categorical, "ignored": columns.ignore}
    file.check_roles(roles, problems)
    table = file.read(text={*columns.special, *columns.text, *columns.categorical})
    columns = _with_split(table, columns)
    ids, parts, outcome, labels = None, None, columns.outcome, None
    if columns.id in file.names:
        with problems.gathered():
            ids = identifiers(file.place(columns.id), table[columns.id], file.typed)
            _check_distinct(file.place(columns.id), ids)
    if columns.labels and set(columns.labels) <= set(file.names):
        outcome, labels = read_labels(file, table, columns.labels, outcome, problems)
    if columns.split in file.names:
        with problems.gathered():
            parts = split_parts(file.place(columns.split), table[columns.split])
    # Without ids or labels a column that was meant for them would pass for a feature.
    complete = {columns.id, *columns.labels} <= set(file.names)
    kinds = _feature_kinds(file, table, columns, problems) if complete else {}
    if ids is None:
        return None
    features = pa.table({name: plain(table[name], file.typed) for name in kinds})
    return NodeTable(str(path), ids, features, kinds, labels, parts, columns.split, file.typed, outcome)


def _with_split(table: pa.Table, columns: NodeColumns) -> NodeColumns:
    """A column that is called split and holds a split is the split column, if no role is given to it."""
    used = {*columns.special, *columns.text, *columns.ignore, *columns.categorical}
    if columns.split is not None or SPLIT not in table.column_names or SPLIT in used:
        return columns
    try:
        split_parts("", table[SPLIT])
    except InputError:
        return columns
    return columns if table[SPLIT].null_count == table.num_rows else replace(columns, split=SPLIT)


def _check_distinct(place: str, ids: pa.Array) -> None:
    values, rows = pc.value_counts(ids).flatten()
    repeated = pc.filter(values, pc.greater(rows, 1))
    if len(repeated):
        given = f"{counted(len(repeated), 'id')} in more than one row ({listed(repeated)})"
        refuse(place, given, "each id once", "Keep one row per node.")


def _feature_kinds(file: TableFile, table: pa.Table, columns: NodeColumns, problems: Problems) -> dict[str, str]:
    """The kind of each feature column. Columns that cannot be features are problems and left out."""
    chosen = {**dict.fromkeys(columns.categorical, CATEGORICAL), **dict.fromkeys(columns.text, TEXT)}
    names = [name for name in table.column_names if name not in {*columns.special, *columns.ignore}]
    if not names:
        given = "no column that describes the nodes"
        problems.add(str(file.path), given, "at least one column besides ids and labels")
    kinds: dict[str, str] = {}
    for name in names:
        with problems.gathered():
            kind = feature_kind(file.place(name), table[name], typed=file.typed or name in chosen)
            kinds[name] = chosen.get(name, kind)
    return kinds
