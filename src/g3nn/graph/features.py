"""Features of nodes as a table of numbers: read from whatever the caller has, filled in where values are missing, or
made from the edges where there are none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.typing import IntoDataFrame

from g3nn.base.errors import Problems
from g3nn.base.parse import LARGEST, SHOWN, Matrix, feature_matrix, is_frame, to_numpy
from g3nn.graph.outcomes.labels import quoted
from g3nn.kernels.sparse import normalised_adjacency

COUNT, NUMBER, AS_IS, GUESS = "count", "number", "as-is", "guess"
"""What a column holds, which says what is done to it: see `Form`."""
_COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """matrix: (n, d) numbers, sparse if they came sparse, NaN where a value is missing. names: of the d columns.

    kinds: (d,) texts, what each column holds: "count", "number", "as-is" (flags, one-hot, TF-IDF), or "guess" where
    it follows from the values. None: all are guessed.
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
        return counts_in_columns(self.matrix, np.isnan)

    @property
    def blanks(self) -> sp.csr_array | None:
        """(n, d) booleans: where a value is missing; None if none is."""
        if not self.missing.any():
            return None
        if not sp.issparse(self.matrix):
            return sp.csr_array(np.isnan(self.matrix))
        found = sp.csr_array(self.matrix)
        # Zeros are eliminated in place, which the features must not share.
        found = sp.csr_array((np.isnan(found.data), found.indices, found.indptr), shape=found.shape, copy=True)
        found.eliminate_zeros()
        return found

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

    def beside(self, other: FeatureTable) -> FeatureTable:
        """The columns of both, which have names and kinds; sparse if either is."""
        both = self, other
        if any(sp.issparse(one.matrix) for one in both):
            matrix: Matrix = sp.csr_array(sp.hstack([sp.csr_array(one.matrix) for one in both]))
        else:
            matrix = np.hstack([one.matrix for one in both])
        names = tuple(name for one in both for name in one.names or ())
        kinds = np.concatenate([one.kinds for one in both if one.kinds is not None])
        return FeatureTable(matrix, names, kinds)

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


def read_features(X: object, missing: str, problems: Problems) -> FeatureTable | None:
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


def counts_in_columns(matrix: Matrix, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(d,): how many values of each column pass a test, without zeros that are not stored."""
    if not sp.issparse(matrix):
        return np.asarray(test(matrix).sum(axis=0))
    return np.bincount(matrix.indices[test(matrix.data)], minlength=matrix.shape[1])


def _table(X: object, problems: Problems) -> FeatureTable | None:
    raw = _frame(X, problems) if is_frame(X) else FeatureTable(_plain_array(X))
    if raw is not None:
        with problems.gathered():
            # Values that are not finite are reported by column later.
            return replace(raw, matrix=feature_matrix(raw.matrix, Problems(), exact=True))
    return None


def _plain_array(X: object) -> object:
    """Lists that hold None become numbers with NaN; everything else is left to the checks."""
    if sp.issparse(X) or hasattr(X, "layout"):
        return X
    array = to_numpy(X)
    if array.dtype == object:
        with suppress(TypeError, ValueError):
            return array.astype(np.float64)
    return array


def _frame(X: IntoDataFrame, problems: Problems) -> FeatureTable | None:
    """Numbers and booleans column by column; a null becomes NaN."""
    frame = nw.from_native(X, eager_only=True)
    wrong = [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if wrong:
        shown = ", ".join(f"{name!r} ({frame.schema[name]})" for name in wrong[:SHOWN])
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        advice = "Encode or drop them; `g3nn fit` encodes categories and text by itself."
        problems.add("X", f"columns {shown}{more}", "columns of numbers or booleans", advice)
        return None
    if not frame.columns:
        return FeatureTable(np.zeros((len(frame), 0)))
    columns = [column.cast(nw.Float64).to_numpy() for column in frame.iter_columns()]
    names = tuple(frame.columns) if all(isinstance(name, str) for name in frame.columns) else None
    kinds = np.array([AS_IS if kind == nw.Boolean else GUESS for kind in frame.schema.values()])
    return FeatureTable(np.column_stack(columns), names, kinds)


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
    if n == 0:
        return np.zeros((0, 1))
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
