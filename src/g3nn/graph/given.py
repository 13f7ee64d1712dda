"""What a caller gives, read: features as a matrix of numbers, or made from the edges; nodes of a graph; and tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems, any_of
from g3nn.base.parse import SHOWN, Matrix, feature_matrix, is_frame, to_numpy
from g3nn.graph.outcomes.labels import quoted
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import Encoded
from g3nn.graph.task import pyg_weights
from g3nn.kernels.sparse import normalised_adjacency

COUNT, NUMBER, AS_IS, GUESS = "count", "number", "as-is", "guess"
"""What a column holds, which says what is done to it: see `Form`."""
LARGEST = 1e150
"""The square of a number must be one that a computer can hold."""
_COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """matrix: (n, d) numbers, sparse if they came sparse, NaN where a value is missing. names: of the d columns.

    kinds: (d,) texts, what each column holds: "count", "number", "as-is" (flags, one-hot, TF-IDF), or "guess" where
    the values have to tell. None: all are guessed.
    """

    matrix: Matrix
    names: tuple[str, ...] | None = None
    kinds: np.ndarray | None = None

    @property
    def num_nodes(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def missing(self) -> np.ndarray:
        """(d,): how many values of each column are missing."""
        if not sp.issparse(self.matrix):
            return np.isnan(self.matrix).sum(axis=0)
        return np.bincount(self.matrix.indices[np.isnan(self.matrix.data)], minlength=self.matrix.shape[1])

    def at(self, nodes: np.ndarray) -> FeatureTable:
        return self if len(nodes) == self.num_nodes else replace(self, matrix=self.matrix[nodes])

    def title(self, columns: np.ndarray) -> str:
        """The first few columns of a mask by name or number, and how many more there are."""
        return quoted([self.names[c] if self.names else c for c in np.flatnonzero(columns).tolist()])

    def column_means(self, problems: Problems) -> np.ndarray:
        """(d,): the mean of the known values of each column; a column without any is a problem."""
        known = self.num_nodes - self.missing
        if (known == 0).any():
            empty = f"no value at all in column {self.title(known == 0)}"
            problems.add("X", empty, "a value for some node", "Leave the column out.")
        if sp.issparse(self.matrix):
            stored = self.matrix.copy()
            stored.data = np.nan_to_num(stored.data)
            sums = stored.sum(axis=0, dtype=np.float64)
        else:
            sums = np.nansum(self.matrix, axis=0, dtype=np.float64)
        return np.asarray(sums).ravel() / np.maximum(known, 1)

    def filled(self, edges: np.ndarray, means: np.ndarray) -> FeatureTable:
        """Without a missing value, sparse if it came sparse.

        Feature propagation (Rossi et al., 2022), in the implementation of PyG: the known values spread along the edges
        until the missing ones have settled. It acts on differences from the column means, so a node that no known value
        reaches, such as an isolated one, gets the mean of the column.
        """
        matrix = self.matrix.copy()
        numbers = np.flatnonzero(self.missing)
        for start in range(0, len(numbers), _COLUMNS_AT_ONCE):
            columns = numbers[start : start + _COLUMNS_AT_ONCE]
            part = matrix[:, columns]
            dense = part.toarray() if sp.issparse(part) else part
            values = _propagate(dense - means[columns], edges) + means[columns]
            # Missing values of a sparse matrix are stored entries, so its pattern does not change.
            rows, places = np.nonzero(np.isnan(dense))
            matrix[rows, columns[places]] = values[rows, places]
        return replace(self, matrix=matrix)

    def above(self, other: FeatureTable) -> FeatureTable:
        """The rows of both, sparse or dense as these are."""
        lower = as_kind(other.matrix, self.matrix)
        if sp.issparse(self.matrix):
            return replace(self, matrix=sp.csr_array(sp.vstack([self.matrix, lower])))
        return replace(self, matrix=np.concatenate([self.matrix, lower]))

    def aligned(self, names: tuple[str, ...] | None, d: int, problems: Problems) -> FeatureTable:
        """The columns of new nodes in the order of the fitted ones; every difference is a problem."""
        if names is not None and self.names is not None:
            position, fitted = {name: place for place, name in enumerate(self.names)}, set(names)
            absent = [name for name in names if name not in position]
            extra = [name for name in self.names if name not in fitted]
            if absent or extra:
                parts = (("without", absent), ("with", extra))
                given = [f"{word} {', '.join(map(repr, part[:SHOWN]))}" for word, part in parts if part]
                problems.add("X", "; ".join(given), f"the {d} columns of the fit")
                return self
            return FeatureTable(self.matrix[:, [position[name] for name in names]], names)
        if self.matrix.shape[1] != d:
            problems.add("X", f"{self.matrix.shape[1]} columns", f"{d} columns, as in the fit")
        return self


def read_features(X: Any, missing: str, problems: Problems) -> FeatureTable | None:
    """Arrays, sparse matrices, tensors, data frames and feature tables. Records what is wrong; None if no matrix can be
    made.

    missing: "error" if a missing value is a problem, "impute" if it is to be filled in later.
    """
    table = X if isinstance(X, FeatureTable) else _table(X, problems)
    if table is None:
        return None
    stored = table.matrix.data if sp.issparse(table.matrix) else table.matrix
    huge = int((np.abs(stored) > np.float64(LARGEST)).sum())
    if huge:
        problems.add("X", f"{huge} infinite or huge values", f"finite numbers up to {LARGEST:g}")
    holes = table.missing > 0
    if holes.any() and missing == "error":
        advice = 'Fill them first, or set missing="impute".'
        problems.add("X", f"missing values in column {table.title(holes)}", "a number everywhere, no NaN", advice)
    return table


def as_kind(matrix: Matrix, like: Matrix) -> Matrix:
    """Sparse or dense, as another matrix is."""
    if sp.issparse(like):
        return sp.csr_array(matrix)
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _table(X: Any, problems: Problems) -> FeatureTable | None:
    raw, names, kinds = _frame(X, problems) if is_frame(X) else (_plain_array(X), None, None)
    if raw is None:
        return None
    matrix = None
    with problems.gathered():
        # What else the check finds is about values that are not finite; they are reported by column.
        matrix = feature_matrix(raw, Problems(), exact=True)
    return None if matrix is None else FeatureTable(matrix, names, kinds)


def _plain_array(X: Any) -> Any:
    """Lists that hold None become numbers with NaN; everything else is left to the checks."""
    if sp.issparse(X) or hasattr(X, "layout"):
        return X
    array = to_numpy(X)
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            return array
    return array


def _frame(X: Any, problems: Problems) -> tuple[np.ndarray | None, tuple[str, ...] | None, np.ndarray | None]:
    """Numbers and booleans column by column, with their names and kinds; a null becomes NaN."""
    frame = nw.from_native(X, eager_only=True)
    wrong = [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if wrong:
        shown = ", ".join(f"{name!r} ({frame.schema[name]})" for name in wrong[:SHOWN])
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        advice = "Encode or drop them; `g3nn fit` encodes categories and text by itself."
        problems.add("X", f"columns {shown}{more}", "columns of numbers or booleans", advice)
        return None, None, None
    if not frame.columns:
        return np.zeros((len(frame), 0)), None, None
    columns = [column.cast(nw.Float64).to_numpy() for column in frame.iter_columns()]
    names = tuple(frame.columns) if all(isinstance(name, str) for name in frame.columns) else None
    kinds = np.array([AS_IS if kind == nw.Boolean else GUESS for kind in frame.schema.values()])
    return np.column_stack(columns), names, kinds


def _propagate(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """x (n, c) with NaN where a value is missing; directions of edges are ignored."""
    if edges.shape[1] == 0:
        return np.nan_to_num(x)
    # Imported where it is used: PyG's transforms take long to load, and few callers have missing features.
    import torch
    from torch_geometric.data import Data
    from torch_geometric.transforms import FeaturePropagation

    values = torch.from_numpy(x.astype(np.float32))
    arcs = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1).copy())
    with warnings.catch_warnings():
        # What torch says about its sparse matrices is of no use to the caller.
        warnings.filterwarnings("ignore", message="Sparse (CS[RC] tensor support|invariant checks)")
        filled = FeaturePropagation(values.isnan())(Data(x=values, edge_index=arcs)).x
    return np.asarray(filled.numpy())


_MOST, _FEWEST, _CELLS = 64, 16, 4_000_000
"""Eigenvectors of a small graph, of a large one, and about how many numbers they may have in between."""
_EXACT = 500
"""Up to this number of nodes the eigenvectors are computed exactly."""
_STEPS, _SPARE = 30, 8


def structural_features(edges: np.ndarray, n: int, seen: np.ndarray) -> FeatureTable:
    """(n, 1 + k): log(1 + degree) and the leading eigenvectors of the normalised adjacency matrix, each row of them of
    mean square 1, in the graph of the nodes that are `seen`; missing for all others. Directions are ignored."""
    inside = edges[:, np.isin(edges, seen).all(axis=0)]
    degrees = np.bincount(inside.ravel(), minlength=n)
    # Each isolated node would be an eigenvector of its own.
    linked = np.flatnonzero(degrees)
    number = np.zeros(n, dtype=np.int64)
    number[linked] = np.arange(len(linked))
    vectors = leading_vectors(number[inside], len(linked))
    lengths = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    matrix = np.full((n, 1 + vectors.shape[1]), np.nan, dtype=np.float32)
    matrix[seen, 0], matrix[seen, 1:] = np.log1p(degrees[seen]), 0.0
    matrix[linked, 1:] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return FeatureTable(matrix, kinds=np.array([NUMBER] + [AS_IS] * vectors.shape[1]))


def leading_vectors(edges: np.ndarray, n: int) -> np.ndarray:
    """(n, k): eigenvectors of D^-1/2 (A + I) D^-1/2 with the largest eigenvalues. The largest entry of each is
    positive.

    Large graphs: subspace iteration, which needs a fixed number of products and copes with equal eigenvalues, such as
    those of many components.
    """
    count = min(_MOST, max(_FEWEST, _CELLS // n), n)
    adjacency = normalised_adjacency(edges, n).astype(np.float32)
    if n <= _EXACT:
        _, vectors = np.linalg.eigh(adjacency.toarray().astype(np.float64))
    else:
        block = np.random.default_rng(0).standard_normal((n, count + _SPARE), dtype=np.float32)
        for _ in range(_STEPS):
            # Eigenvalues are shifted to 0..1, so that the largest in size are the largest.
            block, _ = np.linalg.qr(block + adjacency @ block)
        _, rotation = np.linalg.eigh(block.T @ (adjacency @ block))
        vectors = block @ rotation
    vectors = vectors[:, ::-1][:, :count]
    return vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])


class Nodes:
    """Some nodes of a graph, all of them at first; indexing keeps the whole graph and remembers which are meant.

    So `cross_val_score(G3NNClassifier(), Nodes(X, edges), y)` works: each fit sees the whole graph and the labels of
    its own fold alone, and each prediction answers for the nodes of the other fold.

    X, edges, weights: as `G3NNClassifier.fit` takes them. index: (m,) the numbers of the nodes that are meant.
    """

    def __init__(self, X: Any, edges: Any = None, *, directed: bool = False, weights: Any = None) -> None:
        self.X, self.edges, self.directed, self.weights = X, edges, directed, weights
        self.num_nodes = _count(X)
        self.index = np.arange(self.num_nodes)

    @property
    def shape(self) -> tuple[int]:
        """(m,): scikit-learn takes what has a shape for an array, and cuts it into folds as one."""
        return (len(self.index),)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, key: Any) -> Nodes:
        """Numbers, a mask or a slice, counted among the nodes that are meant here."""
        if isinstance(key, tuple):  # scikit-learn asks for [rows, ...]
            key = key[0]
        chosen = Nodes(self.X, self.edges, directed=self.directed, weights=self.weights)
        chosen.index = np.atleast_1d(self.index[key])
        return chosen

    def __repr__(self) -> str:
        return f"Nodes({len(self)} of {self.num_nodes})"


def _count(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is None and hasattr(X, "__len__"):
        return len(X)
    if not shape:
        problems = Problems()
        problems.add("X", type(X).__name__, "a matrix or data frame with one row for each node")
        problems.raise_if_any()
    assert shape is not None
    return int(shape[0])


@dataclass(frozen=True, eq=False)
class Given:
    """The caller's data taken apart, not checked. nodes: those that y and weights are about, None for all."""

    X: Any
    y: Any
    edges: Any
    val: Any
    directed: bool
    nodes: np.ndarray | None = None
    edge_weights: Any = None
    weights: Any = None


def take_apart(X: Any, y: Any, edges: Any, val: Any, directed: bool, problems: Problems, weights: Any = None) -> Given:
    """`Nodes` and a PyG `Data` bring their own edges, and `Data` its labels and masks too. weights: of the edges."""
    if isinstance(X, Nodes):
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
        weights = X.weights if weights is None else weights
        return Given(X.X, y, X.edges, val, directed or X.directed, X.index, weights)
    if not (type(X).__module__.startswith("torch_geometric.") and hasattr(X, "edge_index")):
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
    weights = pyg_weights(X, directed)[0] if weights is None else weights
    val = own_val if val is None else val
    return Given(X.get("x"), labels, tuple(X.edge_index), val, directed, edge_weights=weights)


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
