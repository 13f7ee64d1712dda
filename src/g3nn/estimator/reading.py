"""From what a caller calls X and edges to a matrix of numbers and a list of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.parse import Matrix, edge_list, feature_matrix, to_numpy

_SHOWN = 5
NO_EDGES = np.zeros((2, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Features:
    """matrix: (n, d) float32, sparse if it came sparse, NaN where a value is missing. names: of the d columns."""

    matrix: Matrix
    names: tuple[str, ...] | None = None

    @property
    def num_nodes(self) -> int:
        return int(self.matrix.shape[0])

    def missing_columns(self) -> np.ndarray:
        """(d,) booleans: where a value is missing."""
        if not sp.issparse(self.matrix):
            return np.isnan(self.matrix).any(axis=0)
        found = np.zeros(self.matrix.shape[1], dtype=bool)
        found[self.matrix.indices[np.isnan(self.matrix.data)]] = True
        return found

    def title(self, columns: np.ndarray) -> str:
        """The first few columns of a mask by name or number, and how many there are."""
        numbers = np.flatnonzero(columns)
        shown = [repr(self.names[c]) if self.names else str(c) for c in numbers[:_SHOWN].tolist()]
        more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
        return f"{', '.join(shown)}{more}"


def read_features(X: Any, missing: str, problems: Problems) -> Features | None:
    """Arrays, sparse matrices, tensors and data frames. Records what is wrong; None if there is nothing to go on with.

    missing: "error" if a missing value is a problem, "impute" if it is to be filled in later.
    """
    raw, names = _frame(X, problems) if _is_frame(X) else (_plain_array(X), None)
    if raw is None:
        return None
    matrix, scratch = None, Problems()
    with problems.gathered():
        matrix = feature_matrix(raw, scratch)
    if matrix is None:
        return None
    # What else `scratch` holds is about values that are not finite: said here by column.
    found = Features(matrix, names)
    stored = matrix.data if sp.issparse(matrix) else matrix
    if np.isinf(stored).any():
        problems.add("X", f"{int(np.isinf(stored).sum())} infinite values (as 32-bit numbers)", "finite numbers")
    columns = found.missing_columns()
    if columns.any() and missing == "error":
        advice = 'Fill them first, or set missing="impute".'
        problems.add("X", f"missing values in column {found.title(columns)}", "a number everywhere", advice)
    return found


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


def _is_frame(X: Any) -> bool:
    return nw.dependencies.is_into_dataframe(X) or nw.dependencies.is_narwhals_dataframe(X)


def _frame(X: Any, problems: Problems) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    """Numbers and booleans column by column; a null becomes NaN."""
    frame = nw.from_native(X, eager_only=True)
    wrong = [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if wrong:
        shown = ", ".join(f"{name!r} ({frame.schema[name]})" for name in wrong[:_SHOWN])
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        advice = "Encode or drop them; `g3nn fit` encodes categories and text by itself."
        problems.add("X", f"columns {shown}{more}", "columns of numbers or booleans", advice)
        return None, None
    if not frame.columns:
        return np.zeros((len(frame), 0)), None
    columns = [frame[name].cast(nw.Float64).to_numpy() for name in frame.columns]
    names = tuple(frame.columns) if all(isinstance(name, str) for name in frame.columns) else None
    return np.column_stack(columns), names


def align(features: Features, names: tuple[str, ...] | None, d: int, problems: Problems) -> Features:
    """The columns of new nodes in the order of the fitted ones; whatever differs is named."""
    if names is not None and features.names is not None:
        absent, extra = (
            [n for n in a if n not in set(b)] for a, b in ((names, features.names), (features.names, names))
        )
        if absent or extra:
            told = [f"{word} {', '.join(map(repr, part[:_SHOWN]))}" for word, part in _told(absent, extra) if part]
            problems.add("X", "; ".join(told), f"the {d} columns of the fit")
            return features
        place = {name: position for position, name in enumerate(features.names)}
        return Features(features.matrix[:, [place[name] for name in names]], names)
    if features.matrix.shape[1] != d:
        problems.add("X", f"{features.matrix.shape[1]} columns", f"{d} columns, as in the fit")
    return features


def _told(absent: list[str], extra: list[str]) -> tuple[tuple[str, list[str]], ...]:
    return ("without", absent), ("with", extra)


def read_edges(edges: Any, n: int, directed: bool, problems: Problems) -> np.ndarray:
    """(2, E) int64 from (2, E), (E, 2), a scipy adjacency matrix, a networkx graph or a data frame; None: no edges."""
    if edges is None:
        return NO_EDGES
    if sp.issparse(edges):
        pairs = _adjacency(edges, n, problems)
    elif hasattr(edges, "nodes") and hasattr(edges, "edges"):
        pairs = _networkx(edges, n, problems)
    elif _is_frame(edges):
        pairs = _edge_frame(edges, problems)
    else:
        pairs = to_numpy(edges)
        if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.shape[0] != 2:
            pairs = pairs.T
    return edge_list(pairs, n, directed, problems)


def _adjacency(matrix: Any, n: int, problems: Problems) -> np.ndarray:
    if matrix.shape != (n, n):
        problems.add("edges", f"an adjacency matrix of shape {matrix.shape}", f"shape ({n}, {n}), one row per node")
        return NO_EDGES
    entries = sp.coo_array(matrix)
    stored = entries.data != 0
    return np.stack([entries.row[stored], entries.col[stored]]).astype(np.int64)


def _networkx(graph: Any, n: int, problems: Problems) -> np.ndarray:
    """Nodes called 0..n-1 are what they are called; others stand for the rows of X in the order of the graph."""
    names = list(graph.nodes)
    numbered = all(isinstance(name, int | np.integer) and 0 <= name < n for name in names)
    if not numbered and len(names) != n:
        allowed = f"nodes named 0..{n - 1}, or as many nodes as X has rows ({n}), in the same order"
        problems.add("edges", f"a graph of {len(names)} nodes", allowed)
        return NO_EDGES
    number = {name: name if numbered else position for position, name in enumerate(names)}
    ends = [(number[i], number[j]) for i, j in graph.edges()]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def _edge_frame(edges: Any, problems: Problems) -> np.ndarray:
    """The columns `source` and `target` if there are such, else the two that there are."""
    frame = nw.from_native(edges, eager_only=True)
    columns = ["source", "target"] if {"source", "target"} <= set(frame.columns) else frame.columns
    if len(columns) != 2:
        problems.add("edges", f"a data frame with columns {frame.columns[:_SHOWN]}", "two columns: the ends of an edge")
        return NO_EDGES
    return np.stack([frame[name].to_numpy() for name in columns])


def as_kind(matrix: Matrix, like: Matrix) -> Matrix:
    """Sparse or dense, as another matrix is."""
    if sp.issparse(like):
        return sp.csr_array(matrix)
    return matrix.toarray() if sp.issparse(matrix) else matrix


def below(upper: Matrix, lower: Matrix) -> Matrix:
    """One matrix of the rows of two."""
    lower = as_kind(lower, upper)
    return sp.csr_array(sp.vstack([upper, lower])) if sp.issparse(upper) else np.concatenate([upper, lower])
