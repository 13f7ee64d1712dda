"""Two tables as one graph: features, edges by row number, labels and the split; all problems of both at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.checks import check_labels
from g3nn.data.tables.columns import is_text, listed
from g3nn.data.tables.outcome_columns import TAGS
from g3nn.data.tables.reading import EdgeColumns, EdgeTable, NodeColumns, NodeTable, load_edges, load_nodes, of_one_type
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError, G3NNWarning, Problems
from g3nn.parse import Matrix


@dataclass(frozen=True, eq=False)
class TableGraph:
    """Everything that a fit needs.

    features: (n, d) as `schema` encodes them. edges: (2, E) row numbers.
    y:    (n,) labels as Python values, None where unlabelled or for test nodes only; with another outcome than classes
          (n,) numbers, NaN where there is none, or (n, T) tags.
    val:  labelled nodes to validate on, None if nothing says which.
    test: labelled nodes to judge the answer by.
    edge_columns: where the ends and the weights of the edges were found.
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
    """Read and check both tables; None where a problem was found. `missing`: as in `FeatureSchema.fit`."""
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
    y, val, test = _labels_and_split(nodes)
    found = EdgeColumns(*edges.columns, edge_columns.weight)
    return TableGraph(nodes, schema, schema.encode(nodes, quiet=True), pairs, found, y, val, test)


@contextmanager
def table_problems(argument: str, problems: Problems) -> Iterator[None]:
    """Collect what is wrong with a table, be it with its file or with what it holds."""
    try:
        with problems.gathered():
            yield
    except DataError as error:
        problems.add(argument, str(error).removesuffix("."), "a CSV or Parquet table")


def _labels_and_split(nodes: NodeTable) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    if nodes.values is not None:
        known = ~np.isnan(nodes.values).all(1)
        y = nodes.values.copy() if nodes.outcome == TAGS else nodes.values[:, 0].copy()
    else:
        assert nodes.labels is not None
        known = nodes.labels.is_valid().to_numpy(zero_copy_only=False)
        y = np.empty(nodes.num_nodes, dtype=object)
        y[:] = nodes.labels.to_pylist()
    if nodes.split is None:
        return y, None, np.zeros(0, dtype=np.int64)
    y[nodes.split == "test"] = None if nodes.values is None else np.nan
    return y, np.flatnonzero(known & (nodes.split == "val")), np.flatnonzero(known & (nodes.split == "test"))


def join(edges: EdgeTable, ids: pa.Array, typed: bool, *, drop_unknown: bool = False) -> np.ndarray:
    """(2, E) int64: for both ends of each edge, the position of its id in `ids`.

    Edges with an end that is not there are an error, or with `drop_unknown` left out and counted in a warning.
    typed: whether a file said that `ids` are numbers or text.
    """
    problems = Problems()
    check_types(f"{edges.name}, columns {listed(edges.columns)}", edges.source, edges.typed, ids, typed, problems)
    problems.raise_if_any()
    (source, known), (target, _) = of_one_type(edges.source, ids), of_one_type(edges.target, ids)
    # A position that is null belongs to an unknown id.
    places = [pc.index_in(end, value_set=known) for end in (source, target)]
    unknown = np.logical_or(*(place.is_null().to_numpy(zero_copy_only=False) for place in places))
    pairs = np.stack([pc.fill_null(place, -1).to_numpy().astype(np.int64) for place in places])
    if not unknown.any():
        return pairs
    found = f"{int(unknown.sum())} of {unknown.size} edges"
    if not drop_unknown or unknown.all():
        strangers = [pc.filter(end, place.is_null()) for end, place in zip((source, target), places, strict=True)]
        names = pc.unique(pa.chunked_array(strangers))
        shown = f"{found} with ids that no node has: {listed(names[:5].to_pylist(), len(names))}"
        advice = "Both tables must use the same ids." if drop_unknown else "--drop-unknown-edges leaves them out."
        problems.add(edges.name, shown, "edges between ids of the node table", advice)
        problems.raise_if_any()
    warnings.warn(f"{edges.name}: left out {found}, with ids that no node has", G3NNWarning, stacklevel=2)
    return pairs[:, ~unknown]


def check_types(place: str, ids: pa.Array, typed: bool, known: pa.Array, known_typed: bool, problems: Problems) -> None:
    """Two files that both say what their ids are must agree; the numbers of a CSV file can stand for text."""
    if typed and known_typed and is_text(ids.type) != is_text(known.type):
        advice = "Write the ids of both tables with the same type."
        problems.add(place, f"ids that are {_words(ids)}", f"{_words(known)}, as in the node table", advice)


def _words(ids: pa.Array) -> str:
    return "text" if is_text(ids.type) else "whole numbers"
