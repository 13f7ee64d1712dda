"""A graph in two tables: one row per node, one row per edge; CSV or Parquet.

Everything that is wrong with a table is said in one error. `load_nodes` and `load_edges` record it in a list instead
and go on with what is left, so that the problems of both tables can be said together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import (
    CATEGORICAL,
    TEXT,
    check_unmixed,
    class_labels,
    feature_kind,
    floats,
    identifiers,
    is_text,
    listed,
    plain,
    split_parts,
)
from g3nn.data.tables.files import TableFile
from g3nn.data.tables.outcome_columns import CLASSES, TAGS, decided, number_labels
from g3nn.errors import Problems, suggestion

EDGE_COLUMNS = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Pairs of names by which the columns of an edge table are known, whatever their case."""


SPLIT = "split"


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a node table that are not plain features, as in `read_node_table`."""

    id: str
    label: str | tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    split: str | None = None
    outcome: str = CLASSES

    @property
    def labels(self) -> tuple[str, ...]:
        """The label columns: several if they are tags."""
        if self.label is None:
            return ()
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def special(self) -> set[str]:
        return {name for name in (self.id, *self.labels, self.split) if name is not None}


@dataclass(frozen=True)
class EdgeColumns:
    """The columns of an edge table, as in `read_edge_table`."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class NodeTable:
    """n nodes.

    ids:      (n,) int64 or text, each once.
    features: the columns that describe the nodes; `kinds` says how each is to be read.
    labels:   (n,) int64, boolean or text, null where unlabelled; None without a label column, or where it is not of
              classes but of `outcome`: then `values` (n, T) holds numbers, NaN where unlabelled, of `value_names`.
    split:    (n,) "train", "val" or "test"; None without a split column.
    split_column: where that was found.
    typed:    whether the file said that ids are numbers or text.
    """

    name: str
    ids: pa.Array
    features: pa.Table
    kinds: Mapping[str, str]
    labels: pa.Array | None = None
    split: np.ndarray | None = None
    split_column: str | None = None
    typed: bool = True
    outcome: str = CLASSES
    values: np.ndarray | None = None
    value_names: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges by the ids of their two ends, int64 or text. `columns`: where they were found."""

    name: str
    source: pa.Array
    target: pa.Array
    columns: tuple[str, str]
    typed: bool = True

    @property
    def num_edges(self) -> int:
        return len(self.source)


def read_node_table(
    path: str | Path,
    id: str,
    label: str | None = None,
    text: Sequence[str] = (),
    ignore: Sequence[str] = (),
    *,
    categorical: Sequence[str] = (),
    split: str | None = None,
) -> NodeTable:
    """Every column that is neither named here as something else nor ignored describes the nodes.

    Numbers and booleans are taken as they are, other columns as categories, those in `text` as words. `categorical`
    ones are categories even if they hold numbers. A column `split` says of labelled nodes whether they are for
    training, validation or test. Without the argument, a column called split is taken if nothing but train, val and
    test stands in it.
    """
    problems = Problems()
    columns = NodeColumns(id, label, tuple(text), tuple(ignore), tuple(categorical), split)
    nodes = load_nodes(path, columns, problems)
    problems.raise_if_any()
    assert nodes is not None
    return nodes


def load_nodes(path: str | Path, columns: NodeColumns, problems: Problems) -> NodeTable | None:
    """As `read_node_table`, without the columns that have problems; None if there are no ids to go on with."""
    file = TableFile.open(path)
    roles: dict[str, Sequence[str | None]] = {"id": [columns.id], "label": columns.labels, "split": [columns.split]}
    roles |= {"text": columns.text, "categorical": columns.categorical, "ignored": columns.ignore}
    _check_roles(file, roles, problems)
    table = file.read(text={*columns.special, *columns.text, *columns.categorical})
    columns = _with_split(file, table, columns)
    ids, parts, labels = None, None, _Labels()
    if columns.id in file.names:
        ids = _distinct(_place(file, columns.id), table[columns.id], file.typed, problems)
    if columns.labels and set(columns.labels) <= set(file.names):
        labels = _read_labels(file, table, columns, problems)
    if columns.split in file.names:
        parts = split_parts(_place(file, columns.split), table[columns.split], problems)
    left = [name for name in table.column_names if name not in {*columns.special, *columns.ignore}]
    # Which columns describe the nodes is known only if ids and labels were found: a label is no feature with gaps.
    known = {columns.id, *columns.labels} <= set(file.names)
    kinds = _kinds(file, table.select(left), columns, problems) if known else {}
    if ids is None:
        return None
    features = {name: plain(table[name], file.typed) for name in kinds}
    found = (ids, pa.table(features), kinds, labels.classes, parts, columns.split, file.typed)
    return NodeTable(file.name, *found, labels.outcome, labels.values, columns.labels)


@dataclass(frozen=True, eq=False)
class _Labels:
    """What the label columns hold: classes (n,), or values (n, T)."""

    outcome: str = CLASSES
    classes: pa.Array | None = None
    values: np.ndarray | None = None


def _read_labels(file: TableFile, table: pa.Table, columns: NodeColumns, problems: Problems) -> _Labels:
    outcome = decided(columns.outcome, [table[name] for name in columns.labels], file.typed)
    if outcome != TAGS and len(columns.labels) > 1:
        advice = "Several columns are --outcome tags, or one fit each."
        problems.add("label", f"{len(columns.labels)} columns for --outcome {outcome}", "one column", advice)
        return _Labels(outcome)
    if outcome == CLASSES:
        name = columns.labels[0]
        return _Labels(CLASSES, class_labels(_place(file, name), table[name], file.typed, problems))
    read = [number_labels(_place(file, name), table[name], file.typed, outcome, problems) for name in columns.labels]
    known = [column for column in read if column is not None]
    return _Labels(outcome, None, np.column_stack(known) if len(known) == len(read) else None)


def read_edge_table(
    path: str | Path, source: str | None = None, target: str | None = None, weight: str | None = None
) -> EdgeTable:
    """The two ends are in the columns named here, else in columns named as in `EDGE_COLUMNS`, else in the first two.

    A `weight` must be a finite number of at least 0. An edge of weight 0 is no edge and is left out; otherwise weights
    change nothing, as no model here uses them. Other columns are left unread.
    """
    problems = Problems()
    edges = load_edges(path, EdgeColumns(source, target, weight), problems)
    problems.raise_if_any()
    assert edges is not None
    return edges


def load_edges(path: str | Path, columns: EdgeColumns, problems: Problems) -> EdgeTable | None:
    """As `read_edge_table`; None if there are no edges to go on with."""
    file = TableFile.open(path)
    weight = columns.weight
    roles = {"source": [columns.source], "target": [columns.target], "weight": [weight]}
    known = len(problems.found)
    _check_roles(file, roles, problems)
    ends = _edge_columns(file, columns.source, columns.target, problems)
    if ends is None or len(problems.found) > known:
        return None
    table = file.read(text=ends, only={*ends, *([] if weight is None else [weight])})
    first, second = (identifiers(_place(file, name), table[name], file.typed, problems) for name in ends)
    kept = None if weight is None else _positive(_place(file, weight), plain(table[weight], file.typed), problems)
    if first is None or second is None:
        return None
    if file.typed and is_text(first.type) != is_text(second.type):
        found = f"text in one of the columns {listed(ends)} and whole numbers in the other"
        problems.add(file.name, found, "ids of one type")
        return None
    first, second = of_one_type(first, second)
    if kept is not None:
        first, second = pc.filter(first, pa.array(kept)), pc.filter(second, pa.array(kept))
    return EdgeTable(file.name, first, second, ends, file.typed)


def of_one_type(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Ids as they are, or all as text if one of the two holds text."""
    if is_text(one.type) == is_text(other.type):
        return one, other
    return pc.cast(one, pa.large_string()), pc.cast(other, pa.large_string())


def _place(file: TableFile, column: str | None) -> str:
    return f"{file.name}, column {column!r}"


def _with_split(file: TableFile, table: pa.Table, columns: NodeColumns) -> NodeColumns:
    """A column that is called split and looks like one is one."""
    used = {*columns.special, *columns.text, *columns.ignore, *columns.categorical}
    if columns.split is not None or SPLIT not in file.names or SPLIT in used:
        return columns
    trial = Problems()
    split_parts("", table[SPLIT], trial)
    return columns if trial.found or table[SPLIT].null_count == table.num_rows else replace(columns, split=SPLIT)


def _check_roles(file: TableFile, roles: Mapping[str, Sequence[str | None]], problems: Problems) -> None:
    """Every named column must be there, and have one role."""
    seen: dict[str, str] = {}
    for role, name in ((role, name) for role, names in roles.items() for name in names if name is not None):
        if name not in file.names:
            columns = f"its columns {listed(file.names)}"
            problems.add(f"{file.name}, {role} column", repr(name), columns, suggestion(name, file.names))
        elif seen.setdefault(name, role) != role:
            found = f"{name!r}, which is the {seen[name]} column too"
            problems.add(f"{file.name}, {role} column", found, "a column of its own")


def _distinct(place: str, column: pa.ChunkedArray, typed: bool, problems: Problems) -> pa.Array | None:
    """Ids of which each comes once."""
    ids = identifiers(place, column, typed, problems)
    if ids is not None:
        counts = pc.value_counts(ids)
        double = pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1))
        if len(double):
            found = f"{len(double)} ids in more than one row: {listed(double[:5].to_pylist(), len(double))}"
            problems.add(place, found, "each id once", "Keep one row per node.")
    return ids


def _kinds(file: TableFile, features: pa.Table, columns: NodeColumns, problems: Problems) -> dict[str, str]:
    """The kind of each feature column; those that can be no feature are problems and left out."""
    chosen = {**dict.fromkeys(columns.categorical, CATEGORICAL), **dict.fromkeys(columns.text, TEXT)}
    kinds: dict[str, str] = {}
    for name in features.column_names:
        kind, advice = feature_kind(features[name].type)
        if not kind:
            found = f"values of type {features[name].type}"
            problems.add(_place(file, name), found, "numbers, booleans or text", advice)
            continue
        if kind == CATEGORICAL and not file.typed and name not in chosen:
            check_unmixed(_place(file, name), features[name], problems)
        kinds[name] = chosen.get(name, kind)
    if not features.column_names:
        problems.add(file.name, "no column that describes the nodes", "at least one besides id and label")
    return kinds


def _edge_columns(
    file: TableFile, source: str | None, target: str | None, problems: Problems
) -> tuple[str, str] | None:
    if source is not None and target is not None:
        return source, target
    if source is not None or target is not None:
        problems.add("source and target", f"{source!r} and {target!r}", "both names or none")
        return None
    lower = {name.lower(): name for name in file.names}
    for first, second in EDGE_COLUMNS:
        if first in lower and second in lower:
            return lower[first], lower[second]
    if len(file.names) < 2:
        problems.add(file.name, f"one column {file.names[0]!r}", "two columns with the ids of both ends")
        return None
    return file.names[0], file.names[1]


def _positive(place: str, weights: pa.Array, problems: Problems) -> np.ndarray | None:
    """Which edges have a weight above 0."""
    if not (pa.types.is_integer(weights.type) or pa.types.is_floating(weights.type)):
        problems.add(place, f"values of type {weights.type}", "numbers of at least 0")
        return None
    numbers = floats(weights)
    broken = ~(np.isfinite(numbers) & (numbers >= 0))
    if broken.any():
        count = int(broken.sum())
        found = f"{count} weights that are missing, negative or infinite: {listed(numbers[broken][:5].tolist(), count)}"
        problems.add(place, found, "numbers of at least 0")
        return None
    return numbers > 0
