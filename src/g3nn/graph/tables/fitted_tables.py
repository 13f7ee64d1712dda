"""What a model that was fitted on tables must remember, to answer for the rows of later tables; and these rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError, Problems
from g3nn.base.parse import NO_EDGES, node_numbers
from g3nn.graph.features import FeatureTable
from g3nn.graph.outcomes.labels import flat_values, quoted
from g3nn.graph.tables.cells import is_text
from g3nn.graph.tables.edge_table import NO_WEIGHT, EdgeColumns, check_types, join, load_edges, of_one_type
from g3nn.graph.tables.encoders import Category, Text
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.graph import NodeColumns, TableGraph, load_nodes
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import ColumnRead, FeatureSchema
from g3nn.graph.tables.traps import Trap


@dataclass(frozen=True)
class FittedTables:
    """The names of the columns, how they become features, and the ids of the fitted nodes in their order.

    ids:   as text, also if they are `whole` numbers.
    typed: whether the node table says that ids are numbers or text.
    read:  how each column of the node table was read.
    test, test_values: the test nodes by number, and their labels as numbers, which the fit did not see.
    never: nodes of kinds that never have a label, by number.
    traps: columns that are seldom meant as they are read.
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

    @classmethod
    def of(cls, graph: TableGraph) -> FittedTables:
        nodes, test = graph.nodes, graph.test.tolist()
        ids, whole = pc.cast(nodes.ids, pa.large_string()).to_pylist(), pa.types.is_integer(nodes.ids.type)
        held_out = [] if graph.test_labels is None else graph.test_labels.values.tolist()
        # Edges that counted alike in the fit will do so later.
        links = replace(graph.edge_columns, weight=graph.edge_columns.weight or NO_WEIGHT)
        known = (nodes.columns, links, graph.schema, ids, whole, nodes.typed, graph.columns, test, held_out)
        return cls(*known, never=graph.never.tolist(), traps=graph.traps)

    @cached_property
    def node_ids(self) -> pa.Array:
        """(n,) int64 or text."""
        return pc.cast(pa.array(self.ids, pa.large_string()), pa.int64() if self.whole else pa.large_string())

    def to_json(self) -> dict[str, object]:
        """As plain lists, mappings, numbers and texts."""
        content: dict[str, object] = json.loads(json.dumps(asdict(self)))
        # Where there is none it is as earlier versions wrote it.
        return {name: value for name, value in content.items() if value or name not in ("never", "traps")}

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


def numbers_by(ids: pa.Array | None, n: int, argument: str, nodes: object, problems: Problems) -> np.ndarray | None:
    """Node numbers, from ids (n,) if there are any, or else from node numbers or a mask. One may stand alone. Where ids
    are text, and none is written like one of these numbers, they are node numbers too."""
    values = flat_values([nodes] if isinstance(nodes, str | int | np.integer) else nodes)
    is_mask = len(values) > 0 and all(isinstance(value, bool | np.bool_) for value in values.tolist())
    if ids is None or is_mask:
        return node_numbers(argument, values if values.dtype != object else list(values), n, problems)
    place = {id: number for number, id in enumerate(ids.to_pylist())}
    numbers = is_text(ids.type) and all(isinstance(value, int) for value in values.tolist())
    if numbers and not any(str(value) in place for value in values.tolist()):
        return node_numbers(argument, list(values), n, problems)
    found = [place.get(value, -1) for value in values.tolist()]
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
    before, nodes, edges, pairs, weights = len(remarks.found), None, None, NO_EDGES, None
    with remarks.of_table("nodes"):
        source = Source.open(nodes_table, "nodes", remarks)
        nodes = load_nodes(source, _columns(tables, source), remarks)
    if edges_table is not None:
        with remarks.of_table("edges"):
            edges = load_edges(edges_table, tables.edge_columns, remarks)
    if nodes is None:
        return None
    with remarks.gathered():
        check_types(f"{nodes.name}, ids", nodes.ids, nodes.typed, tables.node_ids, tables.typed)
    if len(remarks.found) > before:
        return None
    ids, fitted = of_one_type(nodes.ids, tables.node_ids)
    if tables.node_columns.id is None:
        # Rows without ids are new.
        ids = pa.array(len(fitted) + np.arange(len(ids)))
    position = pc.index_in(ids, value_set=fitted)
    new = position.is_null().to_numpy(zero_copy_only=False)
    described = nodes.features.filter(pa.array(new))
    tables.schema.check(nodes.name, described, remarks)
    if edges is not None:
        everyone = pa.concat_arrays([fitted, pc.filter(ids, pa.array(new))])
        with remarks.gathered():
            pairs, weights = join(edges, everyone, tables.typed and nodes.typed, remarks, drop_unknown=drop_unknown)
    if len(remarks.found) > before:
        return None
    if not new.all():
        share = f"{int((~new).sum()):,} of {new.size:,} ids were in the fit"
        remarks.notes.append(f"{nodes.name}: {share}; their answers are those of the fit")
    numbers = np.where(new, len(fitted) + np.cumsum(new) - 1, pc.fill_null(position, 0).to_numpy())
    features = tables.schema.encode(described)
    return NewNodes(nodes.ids, numbers, features, pairs, weights, nodes.content)


def _columns(tables: FittedTables, source: Source) -> NodeColumns:
    """The columns of the fit that are present. Labels, the split and what was ignored are not read."""
    columns, schema = tables.node_columns, tables.schema
    kinds = {name: how.kind for name, how in schema.columns.items() if name in source.names}
    unread = (*columns.labels, columns.split, *columns.ignore, *schema.left_out)
    return NodeColumns(
        columns.id,
        text=tuple(name for name, kind in kinds.items() if kind == Text.kind),
        categorical=tuple(name for name, kind in kinds.items() if kind == Category.kind),
        ignore=tuple(name for name in unread if name is not None and name in source.names),
        nulls=columns.nulls,
    )
