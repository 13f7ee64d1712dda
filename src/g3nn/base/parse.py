"""From what a caller passes in to checked arrays: features, edges, and the nodes of a split.

Each function records what is wrong in a `Problems` list and returns None where it cannot continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.typing import IntoDataFrame

from g3nn.base.errors import Problems, counted, warn_caller
from g3nn.base.mapped import blocks, map_features

Matrix = Any
"""A scipy CSR array or a dense numpy array, which may be a file that is mapped."""

UNKNOWN = -1
"""The label of a node whose class is not known."""

SHOWN = 5
"""How many examples a message gives."""

LARGEST = 1e150
"""Squares of larger numbers overflow."""

TYPE_NAMES = ("type", "edge_type", "relation", "predicate")
"""Names by which a column with the types of edges is recognised."""

NONE = "none"
"""What to say where there is such a column but all edges, or nodes, are alike."""

NO_EDGES = np.zeros((2, 0), dtype=np.int64)

_AT_A_TIME = 1 << 22
"""How many edges are looked at together."""

_NO_WEIGHTS = "Mend them, or take all edges as alike with weights=False."

_NAMES = (
    "Rows are not matched by their order. X may be a data frame with these names in its index or in the column `id`; "
    "or give edges as networkx.to_scipy_sparse_array(graph, nodelist=NAMES), the names of the rows of X in their order."
)

_SPLIT = "a boolean mask or a list of node numbers"


def to_numpy(value: object) -> np.ndarray:
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        # Numpy has no such type.
        value = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return np.asarray(value)


def feature_matrix(features: object, problems: Problems, exact: bool = False) -> Matrix:
    """(n, d) float32, or float64 where that is needed to be `exact`; sparse if it came sparse; as it is if it is a
    file, or the name of one, that is mapped. Raises at once if there is no matrix at all."""
    if isinstance(features, str | Path):
        features = map_features(Path(features), problems)
        problems.raise_if_any()
    layout = str(getattr(features, "layout", ""))
    if hasattr(features, "to_sparse_coo") and layout in ("torch.sparse_coo", "torch.sparse_csr"):
        coo = features.to_sparse_coo().coalesce().cpu()
        rows, cols = coo.indices().numpy()
        features = sp.csr_array((coo.values().numpy(), (rows, cols)), shape=tuple(coo.shape))
    matrix: Matrix = sp.csr_array(features) if sp.issparse(features) else to_numpy(features)
    if matrix.dtype.kind not in "biuf":
        advice = "Complex data not supported." if matrix.dtype.kind == "c" else ""
        problems.add("features", f"values of type {matrix.dtype}", "numbers", advice)
        problems.raise_if_any()
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] == 0:
        advice = "Reshape your data: one row for each node." if matrix.ndim != 2 else ""
        if matrix.shape[1:] == (0,):
            advice = f"0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required."
        allowed = "a matrix (n, d) with at least one node and one feature"
        problems.add("features", f"shape {matrix.shape}", allowed, advice)
        problems.raise_if_any()
    if isinstance(features, np.memmap) and not exact and matrix.dtype.kind == "f":
        _check_finite(sum(int((~np.isfinite(rows)).sum()) for _, rows in blocks(features)), problems)
        return features
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float64 if exact and matrix.dtype != np.float32 else np.float32)
    stored = matrix.data if sp.issparse(matrix) else matrix
    _check_finite(0 if np.isfinite(stored).all() else int((~np.isfinite(stored)).sum()), problems)
    if sp.issparse(matrix):
        matrix.sum_duplicates()
        matrix.sort_indices()
    return matrix


def _check_finite(bad: int, problems: Problems) -> None:
    if bad:
        problems.add("features", f"{bad} NaN or infinite values", "finite numbers", "Fill or drop them first.")


def is_frame(value: object) -> TypeGuard[IntoDataFrame]:
    """Whether it is a data frame of any library that narwhals supports."""
    return nw.dependencies.is_into_dataframe(value) or nw.dependencies.is_narwhals_dataframe(value)


class Edges(NamedTuple):
    """pairs: (2, E). weights: (E,), None if nothing was said about them. repeats: whether they are how often edges were
    stated. types: (E,) names or numbers, None if nothing was said about them. names: types that may have no edges."""

    pairs: np.ndarray
    weights: np.ndarray | None = None
    repeats: bool = False
    types: np.ndarray | None = None
    names: tuple[str, ...] = ()

    def at(self, kept: np.ndarray) -> Edges:
        """Some of them, by a mask."""
        weights, types = (None if values is None else values[kept] for values in (self.weights, self.types))
        return self._replace(pairs=self.pairs[:, kept], weights=weights, types=types)


def read_edges(edges: object, n: int, directed: bool, problems: Problems) -> np.ndarray:
    """The pairs of `read_weighted_edges`, whatever they weigh."""
    return read_weighted_edges(edges, n, directed, problems, weights=False).pairs


def read_weighted_edges(
    edges: object, n: int, directed: bool, problems: Problems, weights: object = None, repeats: bool = True
) -> Edges:
    """The edges of `stated_edges`: (2, E) int64, each pair once, no self-loop. One warning says what was merged or left
    out.

    weights: as there. Those of a repeated pair, and of both directions of an undirected one, add up. repeats: whether
    without any they are weights. Pairs that have types may be repeated.
    """
    given = stated_edges(edges, n, problems, weights)
    pairs, values = given.pairs, given.weights
    if values is None and not directed and _is_clean(pairs, n):
        return Edges(pairs)
    outside = (pairs < 0) | (pairs >= n)
    if outside.any():
        found = f"{int(outside.sum())} ends outside the graph, e.g. {int(pairs[outside][0])}"
        problems.add("edges", found, f"node numbers 0..{n - 1}")
        return Edges(NO_EDGES)
    if values is not None:
        pairs, values = pairs[:, values > 0], values[values > 0]
    merged, more = merged_edges(pairs, values, n, directed, repeats and weights is None)
    # Both arcs of an undirected edge are one edge stored twice, the usual convention: no reason to warn.
    if more["self-loop"] or (more["repeat"] and given.types is None):
        more["of weight 0"] = given.pairs.shape[1] - pairs.shape[1]
        warn_caller(f"edges: {accounted(merged, given.pairs.shape[1], 'pair', more, 'weights=False')}")
    return merged


def stated_edges(
    edges: object, n: int, problems: Problems, weights: object = None, types: object = None, argument: str = "edges"
) -> Edges:
    """Edges as they were given, int64: from (2, E), (E, 2), a list of tuples, a tuple of two arrays, a scipy adjacency
    matrix, a networkx or igraph graph, a data frame, or a mapping from types to any of these; None: no edges.

    weights: one for each pair as given, 0 for no edge; by default those that come with the edges; False: none. types:
    one for each pair, or the column of a data frame; by default those that come with the edges; "none": none.
    """
    column = types if isinstance(types, str) else None
    if is_frame(edges):
        given = _edge_frame(edges, problems, column)
    else:
        given = _carried(edges, n, problems) or Edges(pair_array(argument, edges, problems))
        if column == NONE:
            given = given._replace(types=None, names=())
        elif is_networkx(edges) and column is not None:
            held = [value for *_, value in edges.edges(data=column)]
            given = given._replace(types=attribute(held, "edge_types", column, problems))
        elif column is not None:
            problems.add("edge_types", repr(column), "a type for each edge, where edges are no data frame")
    if types is not column:
        own = np.array(types, dtype=object) if isinstance(types, list | tuple) else to_numpy(types)
        given = given._replace(types=own, names=())
    pairs = given.pairs if given.pairs.size else NO_EDGES
    has_shape = pairs.ndim == 2 and pairs.shape[0] == 2
    count = pairs.shape[1] if has_shape else None
    values = _edge_weights(given.weights if weights is None else weights, count, problems)
    if not has_shape or not np.issubdtype(pairs.dtype, np.integer):
        found = (f"values of type {pairs.dtype}", "node numbers (integers)")
        problems.add(argument, *(found if has_shape else (f"shape {pairs.shape}", "shape (2, E)")))
        return Edges(NO_EDGES)
    pairs = pairs.astype(np.int64, copy=not isinstance(edges, Edges))
    return given._replace(pairs=pairs, weights=values)


def _carried(edges: object, n: int, problems: Problems) -> Edges | None:
    """The pairs of a scipy adjacency matrix, a networkx or igraph graph, or a mapping of edges by type, and the weights
    and types that come with them; None for anything else."""
    if edges is None or isinstance(edges, Edges):
        return edges or Edges(NO_EDGES)
    if isinstance(edges, Mapping):
        return _by_type(edges, n, problems)
    if sp.issparse(edges):
        return _adjacency(edges, n, problems)
    if is_networkx(edges):
        return _networkx(edges, n, problems)
    if hasattr(edges, "get_edgelist") and hasattr(edges, "es"):
        pairs = np.array(edges.get_edgelist(), dtype=np.int64).reshape(-1, 2).T
        return Edges(pairs, np.array(edges.es["weight"]) if "weight" in edges.es.attributes() else None)
    return None


def pair_array(argument: str, pairs: object, problems: Problems) -> np.ndarray:
    """(2, P) from (2, P), (P, 2), a list of tuples, a tuple of two arrays, or a data frame. An array that is 2 x 2 is
    read as (2, P)."""
    if is_frame(pairs):
        return _edge_frame(pairs, problems).pairs
    if isinstance(pairs, tuple) and len(pairs) == 2 and all(getattr(end, "ndim", 0) == 1 for end in pairs):
        return np.stack([to_numpy(end) for end in pairs])
    array = to_numpy(pairs)
    is_turned = array.ndim == 2 and array.shape[1] == 2 and (len(array) != 2 or _lists_tuples(pairs))
    return array.T if is_turned else array


def _lists_tuples(pairs: object) -> bool:
    return isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs)


def two_by_two(edges: object, n: int) -> object:
    """As given; but where only the rows of a 2 x 2 array, and not its columns, each join a new node (from n on) to
    another node, these are the edges. A warning says how such an array is read."""
    plain = isinstance(edges, tuple) and all(isinstance(part, tuple | list) for part in edges)
    is_array = plain or isinstance(edges, np.ndarray | list) or hasattr(edges, "detach")
    array = to_numpy(edges) if is_array and not _lists_tuples(edges) else NO_EDGES
    if array.shape != (2, 2) or array.dtype.kind not in "iu":
        return edges
    columns, rows = (((pairs >= n).any(axis=0) & (pairs[0] != pairs[1])).all() for pairs in (array, array.T))
    turned = rows and not columns
    first, second = map(tuple, (array if turned else array.T).tolist())
    how = "(E, 2), since so each edge has a new node" if turned else "(2, E)"
    other = "a tuple of two arrays is read as (2, E)" if turned else "a list of tuples lists pairs"
    warn_caller(f"edges: a 2 x 2 array is read as {how}: {first} and {second}; {other}")
    return array.T if turned else edges


def _adjacency(matrix: Any, n: int, problems: Problems) -> Edges:
    """Stored values are weights unless all of them are 1."""
    if matrix.shape != (n, n):
        problems.add("edges", f"an adjacency matrix of shape {matrix.shape}", f"shape ({n}, {n}), one row per node")
        return Edges(NO_EDGES)
    entries = sp.coo_array(matrix)
    stored = entries.data != 0
    pairs, values = np.stack([entries.row[stored], entries.col[stored]]).astype(np.int64), entries.data[stored]
    return Edges(pairs, None if (values == 1).all() else values)


def _by_type(edges: Mapping[Any, object], n: int, problems: Problems) -> Edges:
    """One after the other."""
    names = type_names(edges)
    named = zip(names, edges.values(), strict=True)
    parts = [stated_edges(some, n, problems, argument=f"edges[{name!r}]") for name, some in named]
    sizes = np.array([part.pairs.shape[1] for part in parts], dtype=np.int64)
    types = np.repeat(np.array(names, dtype=str), sizes)
    return all_edges(parts)._replace(types=types, names=tuple(names))


def all_edges(parts: Sequence[Edges]) -> Edges:
    """Pairs and weights of several. Where only some have weights, the edges of the others weigh 1."""
    ones = [np.ones(part.pairs.shape[1]) if part.weights is None else part.weights for part in parts]
    weights = np.concatenate(ones) if any(part.weights is not None for part in parts) else None
    return Edges(np.concatenate([NO_EDGES, *(part.pairs for part in parts)], axis=1), weights)


def type_names(types: Iterable[object]) -> list[str]:
    """What types are called: a tuple of PyG by its middle, or in full where several have the same one."""
    types = list(types)
    short = [str(type[1] if isinstance(type, tuple) and len(type) == 3 else type) for type in types]
    several = {name for name in short if short.count(name) > 1}
    return [
        " ".join(map(str, type)) if isinstance(type, tuple) and name in several else name
        for name, type in zip(short, types, strict=True)
    ]


def _networkx(graph: Any, n: int, problems: Problems) -> Edges:
    """Nodes are named by the rows of X, 0..n-1. Weights are the edges' attribute "weight", 1 where it is missing."""
    other = [name for name in graph.nodes if not (isinstance(name, int | np.integer) and 0 <= name < n)]
    if other:
        shown = ", ".join(map(repr, other[:SHOWN]))
        given = f"a graph of {len(graph.nodes)} nodes with other names ({shown}{', ...' if len(other) > SHOWN else ''})"
        problems.add("edges", given, f"nodes named 0..{n - 1}, the rows of X", _NAMES)
        return Edges(NO_EDGES)
    ends, weights = linked(graph)
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return Edges(pairs, None if weights is None else np.array(weights))


def is_networkx(edges: object) -> TypeGuard[Any]:
    return hasattr(edges, "nodes") and hasattr(edges, "edges")


def attribute(values: list[object], argument: str, name: str, problems: Problems) -> np.ndarray | None:
    """An attribute of the nodes or edges of a networkx graph, None where one lacks it."""
    if all(value is None for value in values):
        problems.add(argument, repr(name), "an attribute that the graph has")
        return None
    return np.array(values, dtype=object)


def linked(graph: Any) -> tuple[list[tuple[object, object]], list[object] | None]:
    """The ends of all edges of a networkx graph by name, and their weights if any has one."""
    weights = [weight for _, _, weight in graph.edges(data="weight")]
    known = any(weight is not None for weight in weights)
    return list(graph.edges()), [1.0 if weight is None else weight for weight in weights] if known else None


def _edge_frame(edges: IntoDataFrame, problems: Problems, type: str | None = None) -> Edges:
    """The columns `source`, `target` and, if there are such, `weight` and `type`; otherwise the only two columns. type:
    what the last one is called, or "none"."""
    frame = nw.from_native(edges, eager_only=True)
    if type not in (None, NONE, *frame.columns):
        problems.add("edge_types", repr(type), f"a column of the edges, one of {frame.columns[:SHOWN]}")
    named = {"source", "target"} <= set(frame.columns)
    columns = ["source", "target"] if named else [name for name in frame.columns if name != type]
    if len(columns) != 2:
        problems.add("edges", f"a data frame with columns {frame.columns[:SHOWN]}", "two columns: the ends of an edge")
        return Edges(NO_EDGES)
    pairs = np.stack([frame[name].to_numpy() for name in columns])
    weights = frame["weight"].to_numpy() if named and "weight" in frame.columns else None
    likely = (TYPE_NAMES if named else ()) if type is None else (type,)
    types = [frame[name].to_numpy() for name in likely if name in frame.columns]
    return Edges(pairs, weights, types=types[0] if types else None)


def merged_edges(
    pairs: np.ndarray, weights: np.ndarray | None, n: int, directed: bool, repeats: bool = False
) -> tuple[Edges, dict[str, int]]:
    """Each edge of a graph of n nodes once, and how many of the pairs (2, E) were more than that: self-loops, repeats,
    and the other direction of an undirected edge. Weights (E,) add up. Without them, an undirected edge whose `repeats`
    are weights weighs as much as it was stated in one direction: that both are stated says only how edges were
    written."""
    apart = pairs[0] != pairs[1]
    codes = pairs[0, apart] * n + pairs[1, apart]
    arcs = distinct(codes)
    ways = arcs if directed else encode(arcs // n, arcs % n, n)
    edges = distinct(ways)
    more = {"self-loop": int((~apart).sum()), "repeat": codes.size - arcs.size}
    more["stated both ways"] = arcs.size - edges.size
    repeats = repeats and weights is None and not directed and more["repeat"] > 0
    if weights is not None:
        stated = codes if directed else encode(codes // n, codes % n, n)
        weights = np.bincount(np.searchsorted(edges, stated), weights[apart], minlength=edges.size)
    elif repeats:
        weights = np.zeros(edges.size)
        np.maximum.at(weights, np.searchsorted(edges, ways), np.unique(codes, return_counts=True)[1])
    return Edges(decode(edges, n), weights, repeats), more


def accounted(edges: Edges, given: int, what: str, others: Mapping[str, int], once: str) -> str:
    """How many edges so many rows or pairs are, and what the others were. once: how repeats count once."""
    words = (f"{count:,} {kind}" if " " in kind else counted(count, kind) for kind, count in others.items() if count)
    left = f"{counted(edges.pairs.shape[1], 'edge')} in {counted(given, what)}; the others are {', '.join(words)}"
    return f"{left}. An edge weighs as much as it was repeated; {once} counts each once." if edges.repeats else left


def encode(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """A number for each pair of two of n nodes, whichever of them comes first."""
    return np.minimum(i, j) * n + np.maximum(i, j)


def decode(codes: np.ndarray, n: int) -> np.ndarray:
    """(2, P): both ends of the pairs with the numbers i n + j."""
    return np.stack([codes // n, codes % n])


def _is_clean(pairs: np.ndarray, n: int) -> bool:
    """Whether pairs (2, E) are as `read_weighted_edges` leaves them; looks at some at a time, so it takes no memory."""
    count = pairs.shape[1]
    for start in range(0, count, _AT_A_TIME):
        # The last pair of each part is the first of the next one.
        i, j = pairs[:, start : start + _AT_A_TIME + 1]
        if not ((i >= 0) & (i < j) & (j < n)).all() or not (np.diff(i * n + j) > 0).all():
            return False
    return True


def _edge_weights(weights: object, count: int | None, problems: Problems) -> np.ndarray | None:
    """(E,) float64 of at least 0; None without weights, or if they cannot be used. count: E, if it is known."""
    if weights is None or weights is False:
        return None
    values = to_numpy(weights)
    if values.dtype.kind not in "biuf":
        problems.add("weights", f"values of type {values.dtype}", "numbers", _NO_WEIGHTS)
        return None
    values = values.astype(np.float64)
    is_sound = count is None or values.shape == (count,)
    if not is_sound:
        problems.add("weights", f"shape {values.shape}", f"shape ({count},), one for each edge as given")
    for bad, kind in ((values < 0, "negative"), (~np.isfinite(values), "NaN or infinite")):
        if bad.any():
            found = f"{int(bad.sum())} {kind} values, e.g. {values[bad][0]}"
            problems.add("weights", found, "finite numbers of at least 0, where 0 means no edge", _NO_WEIGHTS)
            is_sound = False
    return values if is_sound else None


def relative_weights(totals: np.ndarray | None) -> np.ndarray | None:
    """Divided by their mean; None if all are equal, so that nothing tells them from a graph without weights."""
    if totals is None or (totals == totals[:1]).all():
        return None
    return np.asarray(totals / totals.mean())


def distinct(codes: np.ndarray) -> np.ndarray:
    """Sorted, each once, as numpy.unique gives them; its hash table is far slower than sorting at 10^7 codes."""
    codes = np.sort(codes)
    first = np.ones(codes.size, dtype=bool)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first]


def node_indices(key: str, value: object, n: int, problems: Problems) -> np.ndarray | None:
    """A boolean mask or a list of node numbers, as sorted unique numbers."""
    numbers = node_numbers(key, value, n, problems)
    return None if numbers is None else np.unique(numbers)


def node_numbers(key: str, value: object, n: int, problems: Problems) -> np.ndarray | None:
    """A boolean mask or a list of node numbers, as numbers in the order given."""
    raw = to_numpy(value)
    if raw.dtype == bool or (raw.dtype == np.uint8 and raw.shape == (n,)):
        if raw.shape == (n,):
            return np.flatnonzero(raw)
        problems.add(key, f"a mask of shape {raw.shape}", f"a mask of shape ({n},) or a list of node numbers")
    elif raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    elif raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        problems.add(key, f"shape {raw.shape} of type {raw.dtype}", _SPLIT)
    elif raw.min() < 0 or raw.max() >= n:
        problems.add(key, f"node numbers {raw.min()}..{raw.max()}", f"node numbers 0..{n - 1}")
    else:
        return raw.astype(np.int64)
    return None


def read_beliefs(beliefs: object, shape: tuple[int, int], problems: Problems) -> np.ndarray:
    given = np.asarray(to_numpy(beliefs), dtype=np.float64)
    if given.shape != shape:
        problems.add("beliefs", f"shape {given.shape}", f"shape {shape}: an answer for each node")
    elif not np.isfinite(given).all():
        problems.add("beliefs", "infinite values or NaN", "finite numbers")
    return given
