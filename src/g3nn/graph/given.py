"""What the caller gives to an estimator, taken apart: arrays, nodes of a graph, a PyG `Data`, or tables."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from narwhals.typing import IntoDataFrame

from g3nn.base.errors import Problems, any_of, refuse
from g3nn.base.parse import NONE, attribute, is_frame, is_networkx, linked, stated_edges, to_numpy, two_by_two
from g3nn.graph.outcomes.labels import quoted
from g3nn.graph.tables.edge_table import EdgeColumns
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, numbers_by, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.labels import AUTO
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.unused import notes_on

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Nodes:
    """Some nodes of a graph, all of them at first; indexing keeps the whole graph and remembers which are meant.

    So `cross_val_score(G3NNClassifier(), Nodes(X, edges), y)` works: each fit sees the whole graph and the labels of
    its own fold alone, and each prediction answers for the nodes of the other fold.

    X, edges, weights, id, edge_types, node_kinds: as `G3NNClassifier.fit` takes them. index: (m,) the numbers of the
    nodes that are meant.
    """

    def __init__(
        self,
        X: object,
        edges: object = None,
        *,
        directed: bool = False,
        weights: object = None,
        id: str | None = None,
        edge_types: object = None,
        node_kinds: object = None,
    ) -> None:
        self.X, self.edges, self.directed, self.weights, self.id = X, edges, directed, weights, id
        self.edge_types, self.node_kinds = edge_types, node_kinds
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
        chosen = copy.copy(self)
        chosen.index = np.atleast_1d(self.index[key])
        return chosen

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        """Other steps of a pipeline would ask for the features."""
        advice = "Features are scaled by the estimator itself; otherwise use Nodes(scaler.fit_transform(X), edges)."
        refuse("X", "Nodes for a step that knows no graph, such as a scaler", "an array of features there", advice)

    def __repr__(self) -> str:
        return f"Nodes({len(self)} of {self.num_nodes})"


def _count(X: object) -> int:
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, Sized):
        return len(X)
    if not shape:
        refuse("X", type(X).__name__, "a matrix or data frame with one row for each node")
    return int(shape[0])


_ENDS = EdgeColumns("source", "target", "weight")


@dataclass(frozen=True, eq=False)
class Given:
    """The caller's data, not checked; `take_apart` takes it apart.

    nodes: those that y and weights are about, None for all. id: the column of X with ids. ids: whether val has them.
    notes: what is not used. graph: what the tables say, if X is one.
    """

    X: object
    y: object
    edges: object
    val: object
    directed: bool
    nodes: np.ndarray | None = None
    edge_weights: object = None
    weights: object = None
    id: str | None = None
    ids: bool = True
    notes: tuple[str, ...] = ()
    graph: TableGraph | None = None
    edge_types: object = None
    node_kinds: object = None


def take_apart(given: Given, problems: Problems, outcomes: Sequence[str] = (AUTO,)) -> Given:
    """`Nodes` and a PyG `Data` bring their own edges, and `Data` its labels and masks too. outcomes: as in
    `table_graph`."""
    X = given.X
    if isinstance(X, Nodes):
        if given.edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
        weights = X.weights if given.edge_weights is None else given.edge_weights
        own: dict[str, Any] = {
            "directed": given.directed or X.directed,
            "edge_weights": weights,
            "id": given.id or X.id,
            "edge_types": X.edge_types if given.edge_types is None else given.edge_types,
            "node_kinds": X.node_kinds if given.node_kinds is None else given.node_kinds,
        }
        given, X = replace(given, X=X.X, edges=X.edges, nodes=X.index, **own), X.X
    if isinstance(X, TableGraph) or is_frame(X) or given.id is not None or isinstance(given.y, str):
        graph = table_graph(given, outcomes, problems)
        if graph is not None:
            return _given_by(graph, given, problems)
    if _is_pyg(X):
        return _given_by_pyg(X, given, problems)
    if isinstance(kinds := given.node_kinds, str):
        if kinds != NONE and is_networkx(given.edges):
            of_nodes, every = dict(given.edges.nodes(data=kinds)), range(_count(given.y if X is None else X))
            kinds = attribute([of_nodes.get(node) for node in every], "node_kinds", kinds, problems)
        elif kinds != NONE:
            problems.add("node_kinds", repr(kinds), "a kind for each node, where X is no data frame")
        kinds = None if isinstance(kinds, str) else kinds
    notes = notes_on(given.edges, given.directed, given.edge_weights, given.edge_types, given.node_kinds)
    return replace(given, node_kinds=kinds, notes=notes)


def _given_by_pyg(data: Data, given: Given, problems: Problems) -> Given:
    from g3nn.graph import pyg  # PyG takes long to import.

    data = pyg.as_one(data)
    for name, value in (("y", given.y), ("edges", given.edges)):
        if value is not None:
            problems.add(name, f"{name} beside a PyG Data", "nothing", "The Data holds its own.")
    if data.get("y") is None:
        problems.add("data.y", "nothing", "a tensor", "Set data.y first.")
    problems.raise_if_any()
    labels = to_numpy(data.y)
    train, own_val = data.get("train_mask"), data.get("val_mask")
    if train is not None and labels.ndim in (1, 2):
        seen = [to_numpy(mask) for mask in (train, own_val) if mask is not None]
        if all(mask.shape == labels.shape[:1] for mask in seen):
            # Any other label is there to be tested on.
            labels = labels.astype(object)
            labels[~np.any(seen, axis=0)] = None
        else:
            problems.add("data.train_mask", f"shape {tuple(train.shape)}", f"{labels.shape[:1]}", "Choose one split.")
            own_val = None
    weights, val = given.edge_weights, own_val if given.val is None else given.val
    notes = notes_on(data, given.directed, weights)
    weights = pyg.edge_weights(data, given.directed)[0] if weights is None else weights
    parts = {"X": data.get("x"), "y": labels, "edges": tuple(data.edge_index)}
    for name, own in (("edge_types", "edge_type"), ("node_kinds", "node_type")):
        if getattr(given, name) is None and data.get(own) is not None:
            parts[name] = to_numpy(data[own])
    return replace(given, **parts, val=val, edge_weights=weights, notes=notes)


def _is_pyg(X: object) -> TypeGuard[Data]:
    return type(X).__module__.startswith("torch_geometric.") and (hasattr(X, "edge_index") or hasattr(X, "edge_types"))


def table_graph(given: Given, outcomes: Sequence[str], problems: Problems) -> TableGraph | None:
    """The graph in data frames, or what `read_tables` made of files; None for anything else.

    y: the names of columns, or labels that are read later. edges: a data frame of ids, or edges that are read later.
    id: the column with the ids, or the index of a pandas frame. outcomes: what labels may be; of a single column the
    first, of several the last.
    """
    X, y, edges, id = given.X, given.y, given.edges, given.id
    if isinstance(X, TableGraph):
        said = {"y": y, "edges": edges, "id": id, "edge_types": given.edge_types, "node_kinds": given.node_kinds}
        for name, value in said.items():
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
    table, weight = edge_frame(edges, type=given.edge_types)
    X, id = _with_ids(X, edges, id)
    own = table if _of_frames(edges) or (id is not None and is_networkx(edges)) else None
    how: dict[str, Any] = {"id": id, "label": label, "weight": weight, "outcome": outcome}
    for name, argument in (("edge_types", "edge_type"), ("node_kinds", "kind")):
        value = getattr(given, name)
        if own is not None and not (value is None or isinstance(value, str)):
            problems.add(name, "values beside data frames", "the name of a column that holds them")
        if own is None and name == "edge_types" and isinstance(value, str) and value != NONE and not is_networkx(edges):
            problems.add(name, repr(value), "a type for each edge, where edges are no data frame")
        # Values beside edges of node numbers are read with these.
        how[argument] = value if value is None or isinstance(value, str) else NONE
    return read_tables(X, own, **how, directed=given.directed, problems=problems)


def edge_frame(edges: object, columns: EdgeColumns = _ENDS, type: object = None) -> tuple[object, str | None]:
    """A networkx graph as a data frame of names, and its column of weights if there is one; anything else as it is.
    type: the attribute with the types."""
    if not is_networkx(edges):
        return edges, None
    ends, weights = linked(edges)
    whole = all(isinstance(name, int | np.integer) for pair in ends for name in pair)
    sides = ([pair[side] if whole else str(pair[side]) for pair in ends] for side in (0, 1))
    table = pa.table(dict(zip((columns.source, columns.target), sides, strict=True)))
    if isinstance(type, str) and type != NONE:
        table = table.append_column(type, [[None if one is None else str(one) for *_, one in edges.edges(data=type)]])
    return (table, None) if weights is None else (table.append_column(columns.weight, [weights]), columns.weight)


def _of_frames(edges: object) -> bool:
    """Whether edges are a data frame, or a mapping from types to such."""
    return is_frame(edges) or (isinstance(edges, Mapping) and is_table(edges))


def _with_ids(frame: object, edges: object, id: str | None) -> tuple[object, str | None]:
    """The index of a pandas frame holds the ids if `id` names it, or if `id` is None and it has the nodes of a networkx
    graph: then it becomes a column. Also the name of the column with ids.

    An index of text without a name has any; one of whole numbers may only be what a filter left of row numbers.
    """
    pandas = nw.to_native(frame, pass_through=True)
    if not nw.dependencies.is_pandas_dataframe(pandas) or pandas.index.nlevels > 1 or id in pandas.columns:
        return frame, id
    called, by_rows = pandas.index.name, bool((pandas.index == np.arange(len(pandas))).all())
    if id is None and is_networkx(edges) and not by_rows and set(edges.nodes) <= set(pandas.index):
        id = str(called or "index")
    unnamed = called is None and not by_rows and pandas.index.dtype.kind not in "iuf"
    is_index = id is not None and (unnamed or id == (called or "index"))
    return (pandas.reset_index(names=id), id) if is_index else (frame, id)


def _columns_among(y: object, frame: IntoDataFrame) -> list[str]:
    """The names of columns that y lists; none if y lists labels that are strings."""
    names = [name for name in y if isinstance(name, str)] if isinstance(y, list | tuple) else []
    every = isinstance(y, list | tuple) and len(names) == len(y)
    return names if every and set(names) <= {str(name) for name in frame.columns} else []


def _given_by(graph: TableGraph, given: Given, problems: Problems) -> Given:
    """What the tables say, and the rest as the caller gave it."""
    edges, weights, val = given.edges, given.edge_weights, graph.val
    parts: dict[str, Any] = {"X": graph.features if graph.features.names else None}
    if graph.labels is not None:
        parts["y"] = graph.labels
    # Names of columns have been read.
    own = edges is None or _of_frames(edges) or (is_networkx(edges) and graph.nodes.columns.id is not None)
    read = {"edge_types": own and given.edge_types not in (None, NONE), "node_kinds": True}
    parts |= {name: None for name, used in read.items() if used and isinstance(getattr(given, name), str)}
    if own:
        parts |= {"edges": tuple(graph.edges), "edge_weights": graph.weights if weights is None else weights}
    elif given.node_kinds is None or isinstance(given.node_kinds, str):
        parts["node_kinds"] = graph.nodes.kinds
    notes = () if _of_frames(edges) else notes_on(edges, graph.directed, weights, given.edge_types, given.node_kinds)
    if given.val is not None:
        nodes = graph.nodes
        ids = nodes.ids if given.ids else None
        val = numbers_by(ids, nodes.num_nodes, "val", given.val, problems, nodes.whole)
    return replace(given, **parts, val=val, directed=graph.directed, notes=notes, graph=graph)


def asked_of(tables: FittedTables, X: object, edges: object, *, quiet: bool = False) -> NewNodes:
    """Rows of a data frame or a file, with ids of the fit or new ones. edges: a table, or a networkx graph, of ids; or
    edges of node numbers."""
    if isinstance(X, NewNodes):
        return X
    remarks, n, id, columns = Remarks(), len(tables.ids), tables.node_columns.id, tables.edge_columns
    links, _ = edge_frame(edges, columns if columns.source else _ENDS, columns.type) if id else (edges, None)
    named = links if is_table(links) else None
    asked = read_new_nodes(tables, _with_ids(X, None, id)[0], named, remarks)
    if asked is not None and links is not None and named is None:
        if tables.edge_features is not None:
            allowed = f"a table with the columns {quoted(list(tables.edge_features.schema.columns))}, as in the fit"
            remarks.add("edges", "pairs of node numbers", allowed)
        numbered = stated_edges(two_by_two(links, n), n + asked.count, remarks)
        asked = replace(asked, edges=numbered.pairs, weights=numbered.weights, types=numbered.types)
    if not quiet:
        remarks.tell()
    remarks.raise_if_any()
    assert asked is not None
    return asked


def is_table(X: object) -> bool:
    """Whether it is a table of rows or of edges, or several of them: files in a list, or a mapping from names."""
    if isinstance(X, list | Mapping) and X:
        parts = X.values() if isinstance(X, Mapping) else X
        return all(isinstance(part, str | Path) or is_frame(part) for part in parts)
    return is_frame(X) or isinstance(X, str | Path | NewNodes)
