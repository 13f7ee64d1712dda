"""What the caller gives to an estimator, taken apart: arrays, nodes of a graph, a PyG `Data`, or tables."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoDataFrame

from g3nn.base.errors import Problems, any_of, refuse
from g3nn.base.parse import is_frame, to_numpy
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.remarks import Remarks

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Nodes:
    """Some nodes of a graph, all of them at first; indexing keeps the whole graph and remembers which are meant.

    So `cross_val_score(G3NNClassifier(), Nodes(X, edges), y)` works: each fit sees the whole graph and the labels of
    its own fold alone, and each prediction answers for the nodes of the other fold.

    X, edges, weights: as `G3NNClassifier.fit` takes them. index: (m,) the numbers of the nodes that are meant.
    """

    def __init__(self, X: object, edges: object = None, *, directed: bool = False, weights: object = None) -> None:
        self.X, self.edges, self.directed, self.weights = X, edges, directed, weights
        self.num_nodes = _count(X)
        self.index = np.arange(self.num_nodes)

    @property
    def shape(self) -> tuple[int]:
        """(m,): scikit-learn takes what has a shape for an array, and cuts it into folds as one."""
        return (len(self.index),)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, key: slice | npt.NDArray[np.generic] | Sequence[int] | int) -> Nodes:
        """Numbers, a mask or a slice, counted among the nodes that are meant here."""
        if isinstance(key, tuple):  # scikit-learn indexes with [rows, ...]
            key = key[0]
        chosen = Nodes(self.X, self.edges, directed=self.directed, weights=self.weights)
        chosen.index = np.atleast_1d(self.index[key])
        return chosen

    def __repr__(self) -> str:
        return f"Nodes({len(self)} of {self.num_nodes})"


def _count(X: object) -> int:
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, Sized):
        return len(X)
    if not shape:
        refuse("X", type(X).__name__, "a matrix or data frame with one row for each node")
    return int(shape[0])


@dataclass(frozen=True, eq=False)
class Given:
    """The caller's data taken apart, not checked. nodes: those that y and weights are about, None for all."""

    X: object
    y: object
    edges: object
    val: object
    directed: bool
    nodes: np.ndarray | None = None
    edge_weights: object = None
    weights: object = None


def take_apart(
    X: object, y: object, edges: object, val: object, directed: bool, problems: Problems, weights: object = None
) -> Given:
    """`Nodes` and a PyG `Data` bring their own edges, and `Data` its labels and masks too. weights: of the edges."""
    if isinstance(X, Nodes):
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
        weights = X.weights if weights is None else weights
        return Given(X.X, y, X.edges, val, directed or X.directed, X.index, weights)
    if not _is_pyg(X):
        return Given(X, y, edges, val, directed, edge_weights=weights)
    for name, value in (("y", y), ("edges", edges)):
        if value is not None:
            problems.add(name, f"{name} beside a PyG Data", "nothing", "The Data holds its own.")
    if X.get("y") is None:
        problems.add("data.y", "nothing", "a tensor", "Set data.y first.")
    problems.raise_if_any()
    labels = to_numpy(X.y)
    train, own_val = X.get("train_mask"), X.get("val_mask")
    if train is not None and labels.ndim in (1, 2):
        seen = [to_numpy(mask) for mask in (train, own_val) if mask is not None]
        if all(mask.shape == labels.shape[:1] for mask in seen):
            # Any other label is there to be tested on.
            labels = labels.astype(object)
            labels[~np.any(seen, axis=0)] = None
        else:
            problems.add("data.train_mask", f"shape {tuple(train.shape)}", f"{labels.shape[:1]}", "Choose one split.")
            own_val = None
    from g3nn.graph.pyg import edge_weights  # PyG takes long to import.

    weights = edge_weights(X, directed)[0] if weights is None else weights
    val = own_val if val is None else val
    return Given(X.get("x"), labels, tuple(X.edge_index), val, directed, edge_weights=weights)


def _is_pyg(X: object) -> TypeGuard[Data]:
    return type(X).__module__.startswith("torch_geometric.") and hasattr(X, "edge_index")


def table_graph(
    X: object, y: object, edges: object, id: str | None, directed: bool, outcomes: Sequence[str], problems: Problems
) -> TableGraph | None:
    """The graph in data frames, or what `read_tables` made of files; None for anything else.

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
    label = [y] if isinstance(y, str) else _columns_among(y, X)
    outcome = outcomes[-1] if len(label) > 1 else outcomes[0]
    table = edges if is_frame(edges) else None
    return read_tables(X, table, id=id, label=label, directed=directed, outcome=outcome, problems=problems)


def _columns_among(y: object, frame: IntoDataFrame) -> list[str]:
    """The names of columns that y lists; none if y lists labels that are strings."""
    names = [name for name in y if isinstance(name, str)] if isinstance(y, list | tuple) else []
    every = isinstance(y, list | tuple) and len(names) == len(y)
    return names if every and set(names) <= {str(name) for name in frame.columns} else []


def given_by(graph: TableGraph, y: object, edges: object, val: object, weights: object = None) -> Given:
    """What the tables say, and the rest as the caller gave it."""
    labels = y if graph.labels is None else graph.labels
    own = edges is None or is_frame(edges)
    pairs = tuple(graph.edges) if own else edges
    chosen = graph.val if val is None else val
    weights = graph.weights if weights is None and own else weights
    features = graph.features if graph.features.names else None
    return Given(features, labels, pairs, chosen, graph.directed, edge_weights=weights)


def asked_of(tables: FittedTables, X: object, edges: object) -> NewNodes:
    """Rows of a data frame or a file, with ids of the fit or new ones."""
    if isinstance(X, NewNodes):
        return X
    remarks = Remarks()
    asked = read_new_nodes(tables, X, edges, remarks)
    remarks.tell()
    remarks.raise_if_any()
    assert asked is not None
    return asked


def is_table(X: object) -> bool:
    return is_frame(X) or isinstance(X, str | Path | NewNodes)
