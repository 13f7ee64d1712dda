"""Two tables as one graph: features, edges as row numbers, labels and the split; all problems of both at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from g3nn.data.tables.checks import check_labels
from g3nn.data.tables.edge_table import EdgeColumns, join, load_edges
from g3nn.data.tables.node_table import NodeColumns, NodeTable, load_nodes
from g3nn.data.tables.outcome_columns import TAGS
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError, Problems
from g3nn.parse import Matrix


@dataclass(frozen=True, eq=False)
class TableGraph:
    """Everything that a fit needs.

    features: (n, d) as `schema` encodes them. edges: (2, E) row numbers, from `edge_columns`.
    y:        (n,) classes as Python values, None where unlabelled and for test nodes. For other outcomes numbers, NaN
              where unlabelled: (n,), or (n, T) for tags.
    val:      labelled nodes for validation; None without a split.
    test:     labelled nodes to evaluate the answers on.
    """

    nodes: NodeTable
    schema: FeatureSchema
    features: Matrix
    edges: np.ndarray
    edge_columns: EdgeColumns
    y: np.ndarray
    val: np.ndarray | None
    test: np.ndarray


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
    nodes, edges, schema, pairs = None, None, None, None
    with table_problems("nodes", problems):
        nodes = load_nodes(nodes_path, node_columns, problems)
    with table_problems("edges", problems):
        edges = load_edges(edges_path, edge_columns, problems)
    if nodes is not None and (nodes.labels is not None or nodes.values is not None):
        check_labels(nodes, problems)
    if nodes is not None and nodes.kinds:
        with problems.gathered():
            schema = FeatureSchema.fit(nodes, missing=missing)
    if nodes is not None and edges is not None:
        with problems.gathered():
            pairs = join(edges, nodes.ids, nodes.typed, drop_unknown=drop_unknown)
    if len(problems.found) > before or nodes is None or edges is None or schema is None or pairs is None:
        return None
    columns = EdgeColumns(*edges.columns, edge_columns.weight)
    return TableGraph(nodes, schema, schema.encode(nodes, quiet=True), pairs, columns, *_labels_and_split(nodes))


@contextmanager
def table_problems(argument: str, problems: Problems) -> Iterator[None]:
    """Collect what is wrong with the file of a table and with its content."""
    try:
        with problems.gathered():
            yield
    except DataError as error:
        problems.add(argument, str(error).removesuffix("."), "a CSV or Parquet table")


def _labels_and_split(nodes: NodeTable) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    if nodes.values is not None:
        labelled = ~np.isnan(nodes.values).all(1)
        y = nodes.values.copy() if nodes.outcome == TAGS else nodes.values[:, 0].copy()
    else:
        assert nodes.labels is not None
        labelled = nodes.labels.is_valid().to_numpy(zero_copy_only=False)
        y = np.empty(nodes.num_nodes, dtype=object)
        y[:] = nodes.labels.to_pylist()
    if nodes.split is None:
        return y, None, np.zeros(0, dtype=np.int64)
    y[nodes.split == "test"] = None if nodes.values is None else np.nan
    return y, np.flatnonzero(labelled & (nodes.split == "val")), np.flatnonzero(labelled & (nodes.split == "test"))
