"""Tables as what a fit is given, and tables of new nodes as what a fitted model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from g3nn.base.errors import Problems, any_of
from g3nn.base.parse import is_frame
from g3nn.estimator.features import FeatureTable
from g3nn.estimator.request import Given
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import Encoded


def table_graph(
    X: Any, y: Any, edges: Any, id: str | None, directed: bool, outcomes: Sequence[str], problems: Problems
) -> TableGraph | None:
    """The graph of a caller who gives data frames, or what `read_tables` made of files; None for anything else.

    y: the names of columns, or labels that are read later. edges: a data frame of ids, or edges that are read later.
    outcomes: what labels may be; of a single column the first, of several the last.
    """
    if isinstance(X, TableGraph):
        for name, value in (("y", y), ("edges", edges), ("id", id)):
            if value is not None:
                problems.add(name, f"{name} beside a graph from tables", "nothing", "The graph holds its own.")
        if X.outcome not in outcomes:
            advice = f"`g3nn.read_tables(..., outcome={outcomes[0]!r})` reads them so; or use another estimator."
            problems.add("X", f"labels read as {X.outcome}", any_of(outcomes), advice)
        problems.raise_if_any()
        return X
    if not is_frame(X):
        for name, value in (("id", id), ("y", y if isinstance(y, str) else None)):
            if value is not None:
                problems.add(name, repr(value), "a data frame as X if this is the name of a column")
        problems.raise_if_any()
        return None
    label = [y] if isinstance(y, str) else list(y) if _are_columns(X, y) else []
    outcome = outcomes[-1] if len(label) > 1 else outcomes[0]
    table = edges if is_frame(edges) else None
    return read_tables(X, table, id=id, label=label, directed=directed, outcome=outcome, problems=problems)


def _are_columns(frame: Any, y: Any) -> bool:
    """Whether y lists names of columns, as opposed to labels that are strings."""
    names = isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)
    return names and set(y) <= {str(name) for name in frame.columns}


def given_by(graph: TableGraph, y: Any, edges: Any, val: Any, weights: Any = None) -> Given:
    """What the tables say, and the rest as the caller gave it."""
    labels = y if graph.labels is None else graph.labels
    own = edges is None or is_frame(edges)
    pairs = tuple(graph.edges) if own else edges
    chosen = graph.val if val is None else val
    weights = graph.weights if weights is None and own else weights
    return Given(features_of(graph.features), labels, pairs, chosen, graph.directed, edge_weights=weights)


def features_of(encoded: Encoded) -> FeatureTable | None:
    """None if no column describes the nodes."""
    return FeatureTable(encoded.matrix, encoded.names, encoded.kinds) if encoded.names else None


def asked_of(tables: FittedTables, X: Any, edges: Any) -> NewNodes:
    """Rows of a data frame or a file, with ids of the fit or new ones."""
    if isinstance(X, NewNodes):
        return X
    remarks = Remarks()
    asked = read_new_nodes(tables, X, edges, remarks)
    remarks.tell()
    remarks.raise_if_any()
    assert asked is not None
    return asked


def is_table(X: Any) -> bool:
    return is_frame(X) or isinstance(X, str | Path | NewNodes)
