"""Two tables as one graph: features, edges as row numbers, labels and the split; all problems of both at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from g3nn.data.tables.edge_table import EdgeColumns, join, load_edges
from g3nn.data.tables.labels import as_given, check_split
from g3nn.data.tables.node_table import NodeColumns, NodeTable, load_nodes
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError, Problems
from g3nn.parse import NO_EDGES, Matrix


@dataclass(frozen=True, eq=False)
class TableGraph:
    """Everything that a fit needs.

    features: (n, d) as `schema` encodes them. edges: (2, E) row numbers, from `edge_columns`.
    y:        labels as an estimator takes them, unknown for test nodes.
    val:      labelled nodes for validation; None without a split.
    test:     labelled nodes to evaluate the answers on, with the labels `test_y`.
    """

    nodes: NodeTable
    schema: FeatureSchema
    features: Matrix
    edges: np.ndarray
    edge_columns: EdgeColumns
    y: Any
    val: np.ndarray | None
    test: np.ndarray
    test_y: Any


def read_graph(
    nodes_path: str | Path,
    edges_path: str | Path,
    node_columns: NodeColumns,
    edge_columns: EdgeColumns,
    problems: Problems,
    *,
    missing: str = "error",
    drop_unknown: bool = False,
) -> TableGraph | None:
    """Read and check both tables; None if there are problems. `missing`: as in `FeatureSchema.fit`."""
    before = len(problems.found)
    nodes, edges, labels, schema = None, None, None, None
    with table_problems("nodes", problems):
        nodes = load_nodes(nodes_path, node_columns, problems)
    with table_problems("edges", problems):
        edges = load_edges(edges_path, edge_columns, problems)
    if nodes is not None and nodes.labels is not None:
        seen, val, test = check_split(nodes.name, nodes.labels, nodes.split, nodes.outcome, problems)
        labels = as_given(seen), val, test, as_given(replace(nodes.labels, values=nodes.labels.values[test]))
    if nodes is not None and nodes.kinds:
        with problems.gathered():
            schema = FeatureSchema.fit(nodes, missing=missing)
    pairs = NO_EDGES
    if nodes is not None and edges is not None:
        with problems.gathered():
            pairs = join(edges, nodes.ids, nodes.typed, drop_unknown=drop_unknown)
    if nodes is None or edges is None or labels is None or schema is None or len(problems.found) > before:
        return None
    columns = EdgeColumns(*edges.columns, edge_columns.weight)
    return TableGraph(nodes, schema, schema.encode(nodes, quiet=True), pairs, columns, *labels)


@contextmanager
def table_problems(argument: str, problems: Problems) -> Iterator[None]:
    """Collect what is wrong with the file of a table and with its content."""
    try:
        with problems.gathered():
            yield
    except DataError as error:
        problems.add(argument, str(error).removesuffix("."), "a CSV or Parquet table")
