"""Tables of new nodes, for a model that was fitted on tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.parse import NO_EDGES
from g3nn.graph.tables.edge_table import check_types, join, load_edges, of_one_type
from g3nn.graph.tables.encoders import CATEGORICAL, TEXT
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.fitted_tables import FittedTables
from g3nn.graph.tables.node_table import NodeColumns, load_nodes
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import Encoded


@dataclass(frozen=True, eq=False)
class NewNodes:
    """Rows to answer for. With n nodes in the fit, number i < n is one of those and n + j the j-th new one.

    ids, numbers: (m,) of all rows. features: of the new ones. edges: (2, E) numbers. weights: (E,) or None.
    content: all columns of the table. known: whether rows have ids by which nodes of the fit can be told.
    """

    ids: pa.Array
    numbers: np.ndarray
    features: Encoded
    edges: np.ndarray
    weights: np.ndarray | None
    content: pa.Table
    known: bool = True

    @property
    def count(self) -> int:
        """How many are new."""
        return int(self.features.matrix.shape[0])


def read_new_nodes(
    tables: FittedTables, nodes_table: Any, edges_table: Any, remarks: Remarks, *, drop_unknown: bool = False
) -> NewNodes | None:
    """Read and check both tables; None if there are problems. A row with an id of the fit is that node."""
    problems, before = remarks.problems, len(remarks.problems.found)
    nodes, edges, pairs, weights = None, None, NO_EDGES, None
    with remarks.of_table("nodes"):
        source = Source.open(nodes_table, "nodes", remarks)
        nodes = load_nodes(source, _columns(tables, source), remarks)
    if edges_table is not None:
        with remarks.of_table("edges"):
            edges = load_edges(edges_table, tables.edge_columns, remarks)
    if nodes is None:
        return None
    with problems.gathered():
        check_types(f"{nodes.name}, ids", nodes.ids, nodes.typed, tables.node_ids, tables.typed)
    if len(problems.found) > before:
        return None
    ids, fitted = of_one_type(nodes.ids, tables.node_ids)
    if tables.node_columns.id is None:
        # Rows without ids are new.
        ids = pa.array(len(fitted) + np.arange(len(ids)))
    position = pc.index_in(ids, value_set=fitted)
    new = position.is_null().to_numpy(zero_copy_only=False)
    features = tables.schema.encode(nodes.name, nodes.features.filter(pa.array(new)), remarks)
    if edges is not None:
        everyone = pa.concat_arrays([fitted, pc.filter(ids, pa.array(new))])
        with problems.gathered():
            pairs, weights = join(edges, everyone, tables.typed and nodes.typed, remarks, drop_unknown=drop_unknown)
    if features is None or len(problems.found) > before:
        return None
    if not new.all():
        share = f"{int((~new).sum()):,} of {new.size:,} ids were in the fit"
        remarks.say(f"{nodes.name}: {share}; their answers are those of the fit")
    numbers = np.where(new, len(fitted) + np.cumsum(new) - 1, pc.fill_null(position, 0).to_numpy())
    known = tables.node_columns.id is not None
    return NewNodes(nodes.ids, numbers, features, pairs, weights, nodes.content, known)


def _columns(tables: FittedTables, source: Source) -> NodeColumns:
    """The columns of the fit that are present. Labels, the split and what was ignored are not read."""
    columns, schema = tables.node_columns, tables.schema
    kinds = {name: how.kind for name, how in schema.columns.items() if name in source.names}
    unread = (*columns.labels, columns.split, *columns.ignore, *schema.left_out)
    return NodeColumns(
        columns.id,
        text=tuple(name for name, kind in kinds.items() if kind == TEXT),
        categorical=tuple(name for name, kind in kinds.items() if kind == CATEGORICAL),
        ignore=tuple(name for name in unread if name is not None and name in source.names),
        nulls=columns.nulls,
    )
