"""What a model that was fitted on tables must remember, to answer for the rows of later tables; and these rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError, Problems, counted
from g3nn.base.parse import NO_EDGES, NONE, Edges, node_numbers
from g3nn.graph.features import FeatureTable
from g3nn.graph.outcomes.labels import flat_values, quoted
from g3nn.graph.relations import EDGE
from g3nn.graph.tables.cells import is_text
from g3nn.graph.tables.edge_features import EdgeFeatures
from g3nn.graph.tables.edge_table import (
    NO_WEIGHT,
    REPEATS,
    EdgeColumns,
    EdgeTable,
    Located,
    check_types,
    load_edges,
    locate,
    of_one_type,
)
from g3nn.graph.tables.encoders import Category, Text
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.graph import NodeColumns, NodeTable, TableGraph, load_nodes
from g3nn.graph.tables.kinds import FILE, open_nodes
from g3nn.graph.tables.linked import linked_ids
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import EXTRA, ColumnRead, FeatureSchema
from g3nn.graph.tables.traps import Trap

_LATER = {
    "never": None,
    "traps": None,
    "added": None,
    "edge_features": None,
    "node_columns": ("kind", "edges_from"),
    "edge_columns": ("type", "ignore"),
    "schema": ("lacking",),
}
"""What earlier versions did not write, as a whole or in parts: where there is none, neither is it written now."""


@dataclass(frozen=True)
class FittedTables:
    """The names of the columns, how they become features, and the ids of the fitted nodes in their order.

    ids:   as text, also if they are `whole` numbers.
    typed: whether the node table says that ids are numbers or text.
    read:  how each column of the node table was read.
    test, test_values: the test nodes by number, and their labels as numbers, which the fit did not see.
    never: nodes of kinds that never have a label, by number.
    traps: columns that are seldom meant as they are read.
    added: how many of the nodes, the last ones, have no row: columns name them. Then ids are text, also if those of the
           rows are `whole` numbers.
    edge_features: how columns of the edges become features of the nodes they join; None: they do not.
    """

    node_columns: NodeColumns
    edge_columns: EdgeColumns
    schema: FeatureSchema
    ids: list[str]
    whole: bool
    typed: bool
    read: tuple[ColumnRead, ...]
    test: list[int]
    test_values: list[object]
    never: list[int] = field(default_factory=list)
    traps: tuple[Trap, ...] = ()
    added: int = 0
    edge_features: EdgeFeatures | None = None

    @classmethod
    def of(cls, graph: TableGraph) -> FittedTables:
        nodes, test = graph.nodes, graph.test.tolist()
        ids = pc.cast(nodes.ids, pa.large_string()).to_pylist()
        whole = nodes.whole or pa.types.is_integer(nodes.ids.type)
        held_out = [] if graph.test_labels is None else graph.test_labels.values.tolist()
        # Edges that counted alike in the fit will do so later.
        links = replace(graph.edge_columns, weight=graph.edge_columns.weight or NO_WEIGHT)
        known = (nodes.columns, links, graph.schema, ids, whole, nodes.typed, graph.columns, test, held_out)
        later = graph.never.tolist(), graph.traps, nodes.added, graph.edge_features
        return cls(*known, *later)

    @cached_property
    def node_ids(self) -> pa.Array:
        """(n,) int64 or text."""
        ids = pa.array(self.ids, pa.large_string())
        return pc.cast(ids, pa.int64()) if self.whole and not self.added else ids

    @property
    def row_ids(self) -> pa.Array:
        """Of the nodes that have rows, which come first."""
        ids = self.node_ids[: len(self.ids) - self.added]
        return pc.cast(ids, pa.int64()) if self.whole else ids

    def to_json(self) -> dict[str, object]:
        """As plain lists, mappings, numbers and texts."""
        content: dict[str, object] = json.loads(json.dumps(asdict(self)))
        for name, parts in _LATER.items():
            within = content if parts is None else content[name]
            assert isinstance(within, dict)
            for part in (name,) if parts is None else parts:
                if not within[part]:
                    del within[part]
        return content

    @classmethod
    def from_json(cls, content: object) -> FittedTables:
        """What `to_json` gave. Nothing in it is trusted."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(FittedTables).validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(f"what the model remembers of its tables is damaged ({reason}).") from error


def numbers_by(
    ids: pa.Array | None, n: int, argument: str, nodes: object, problems: Problems, whole: bool = False
) -> np.ndarray | None:
    """Node numbers, from ids (n,) if there are any, or else from node numbers or a mask. One may stand alone. Where ids
    are text, and none is written like one of these numbers, they are node numbers too. whole: whether those of rows
    were whole numbers."""
    values = flat_values([nodes] if isinstance(nodes, str | int | np.integer) else nodes)
    is_mask = len(values) > 0 and all(isinstance(value, bool | np.bool_) for value in values.tolist())
    if ids is None or is_mask:
        return node_numbers(argument, values if values.dtype != object else list(values), n, problems)
    place = {id: number for number, id in enumerate(ids.to_pylist())}
    numbers = is_text(ids.type) and all(isinstance(value, int) for value in values.tolist())
    if numbers and not any(str(value) in place for value in values.tolist()):
        return node_numbers(argument, list(values), n, problems)
    found = [place.get(str(value) if numbers and whole else value, -1) for value in values.tolist()]
    strange = [value for value, number in zip(values.tolist(), found, strict=True) if number < 0]
    if strange:
        problems.add(argument, f"ids {quoted(strange)}", "ids of the node table")
        return None
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NewNodes:
    """Rows to answer for. With n nodes in the fit, number i < n is one of those and n + j the j-th new one.

    ids, numbers: (m,) of all rows. features: of the new ones. edges: (2, E) numbers. weights, types: (E,) or None.
    kinds: (j,) names of those of the new ones, or None.
    content: all columns of the table.
    """

    ids: pa.Array
    numbers: np.ndarray
    features: FeatureTable
    edges: np.ndarray
    weights: np.ndarray | None
    content: pa.Table
    types: np.ndarray | None = None
    kinds: np.ndarray | None = None

    @property
    def count(self) -> int:
        """How many are new."""
        return self.features.num_nodes


def read_new_nodes(
    tables: FittedTables, nodes_table: object, edges_table: object, remarks: Remarks, *, drop_unknown: bool = False
) -> NewNodes | None:
    """Read and check both tables; None if there are problems. A row with an id of the fit is that node."""
    before, nodes, edges, found = len(remarks.found), None, None, Edges(NO_EDGES)
    with remarks.of_table("nodes"):
        source = open_nodes(nodes_table, tables.node_columns.kind or NONE, remarks)
        nodes = load_nodes(source, _columns(tables, source), remarks)
    if edges_table is not None:
        # What is in a mapping has types, also where those of the fit came beside arrays.
        usual = FILE if isinstance(edges_table, Mapping) else NONE
        columns = replace(tables.edge_columns, type=tables.edge_columns.type or usual)
        with remarks.of_table("edges"):
            edges = load_edges(edges_table, columns, remarks)
    if nodes is None:
        return None
    with remarks.gathered():
        check_types(f"{nodes.name}, ids", nodes.ids, nodes.typed, tables.node_ids, tables.typed)
    if len(remarks.found) > before:
        return None
    ids, fitted = of_one_type(nodes.ids, tables.node_ids)
    if tables.node_columns.id is None:
        # Rows without ids are new.
        ids = pc.cast(pa.array(len(fitted) + np.arange(len(ids))), fitted.type)
    position = pc.index_in(ids, value_set=fitted)
    new = position.is_null().to_numpy(zero_copy_only=False)
    kinds = None if nodes.kinds is None else nodes.kinds[new]
    described = nodes.features.filter(pa.array(new))
    if nodes.columns.kind in described.column_names and nodes.columns.kind not in tables.schema.columns:
        described = described.drop_columns([nodes.columns.kind])
    described = tables.schema.completed(described, kinds)
    tables.schema.check(nodes.name, described, remarks, kinds)
    stated: Located | None = None
    if edges is not None:
        everyone = pa.concat_arrays([fitted, pc.filter(ids, pa.array(new))])
        with remarks.gathered():
            stated = locate(edges, everyone, tables.typed and nodes.typed, drop_unknown)
            found = _joined(tables, edges.name, stated, len(everyone), remarks)
            _check_content(tables, edges, remarks)
    if len(remarks.found) > before:
        return None
    if not new.all():
        share = f"{int((~new).sum()):,} of {new.size:,} ids were in the fit"
        remarks.notes.append(f"{nodes.name}: {share}; their answers are those of the fit")
    numbers = np.where(new, len(fitted) + np.cumsum(new) - 1, pc.fill_null(position, 0).to_numpy())
    features = tables.schema.encode(described, kinds)
    if tables.edge_features is not None:
        features = features.beside(tables.edge_features.of_new(stated, len(fitted), int(new.sum())))
    if tables.node_columns.edges_from:
        with remarks.gathered():
            found = _with_named(tables, nodes, numbers, found, remarks)
    return NewNodes(nodes.ids, numbers, features, found.pairs, found.weights, nodes.content, found.types, kinds)


def _joined(tables: FittedTables, name: str, stated: Located, n: int, remarks: Remarks) -> Edges:
    """Edges with types as they are stated, since each type is merged by itself; others as `join` gives them."""
    repeats = tables.edge_columns.weight == REPEATS
    pairs, weights = stated.merged(name, n, remarks, None, repeats and stated.edges.types is None)
    if stated.edges.types is not None and repeats and weights is None:
        weights = np.ones(pairs.shape[1])
    return Edges(pairs, weights, types=stated.edges.types)


def _check_content(tables: FittedTables, edges: EdgeTable, remarks: Remarks) -> None:
    """Columns of edges that the fit used must be there, and others are said to be left out."""
    content = pa.table({}) if edges.content is None else edges.content
    if tables.edge_features is not None:
        tables.edge_features.schema.check(edges.name, content, remarks)
        return
    for name in content.column_names:
        remarks.column(edges.name, name, EXTRA)


def _with_named(tables: FittedTables, nodes: NodeTable, numbers: np.ndarray, found: Edges, remarks: Remarks) -> Edges:
    """With edges from new rows to the nodes of the fit that their cells name."""
    parts, count, unknown = [found.pairs], found.pairs.shape[1], 0
    types = [np.full(count, EDGE, dtype=object) if found.types is None else found.types]
    for column, rows, named in linked_ids(nodes.name, nodes.content, tables.node_columns):
        place = pc.fill_null(pc.index_in(named, value_set=tables.node_ids), -1).to_numpy().astype(np.int64)
        joins = numbers[rows] >= len(tables.ids)
        unknown += int((joins & (place < 0)).sum())
        joins &= place >= 0
        parts.append(np.stack([numbers[rows[joins]], place[joins]]))
        types.append(np.full(int(joins.sum()), column, dtype=object))
    if unknown:
        remarks.notes.append(f"{nodes.name}: {counted(unknown, 'name')} that the fit has not seen; left out")
    pairs, weights = np.concatenate(parts, axis=1), found.weights
    if weights is not None:
        weights = np.concatenate([weights, np.full(pairs.shape[1] - count, weights.mean() if count else 1.0)])
    return Edges(pairs, weights, types=np.concatenate(types))


def _columns(tables: FittedTables, source: Source) -> NodeColumns:
    """The columns of the fit that are present. Labels, the split and what was ignored are not read."""
    columns, schema = tables.node_columns, tables.schema
    kinds = {name: how.kind for name, how in schema.columns.items() if name in source.names and name != columns.kind}
    unread = (*columns.labels, columns.split, *columns.ignore, *schema.left_out - {columns.kind})
    return NodeColumns(
        columns.id,
        text=tuple(name for name, kind in kinds.items() if kind == Text.kind),
        categorical=tuple(name for name, kind in kinds.items() if kind == Category.kind),
        ignore=tuple(name for name in unread if name is not None and name in source.names),
        nulls=columns.nulls,
        kind=columns.kind or NONE,
        edges_from=columns.edges_from,
    )
