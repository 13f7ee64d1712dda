"""What comes with edges and is not used: directions, attributes, columns. Said in notes, with what to do."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import scipy.sparse as sp

from g3nn.base.parse import TYPE_NAMES, is_frame, is_networkx
from g3nn.graph.outcomes.labels import quoted

_USED = {"source", "target", "weight", "edge_index", "edge_weight"}


def notes_on(
    edges: object, directed: bool, weights: object, types: object = None, kinds: object = None
) -> tuple[str, ...]:
    """About edges as a caller gave them, also in a PyG `Data`. weights, types, kinds: what was said about those, if
    anything."""
    of_nodes, of_edges = _attributes(edges, types)
    used = [name for name in (types, kinds) if isinstance(name, str)]
    of_nodes, of_edges = ([name for name in found if name not in used] for found in (of_nodes, of_edges))
    left = weights is None and of_edges
    reasons = {
        "edges: some have a direction, which is not used. directed=True uses it.": not directed and _directed(edges),
        f"edges: the attributes of nodes {quoted(of_nodes)} are not used. Make them columns of X.": of_nodes,
        f"edges: {quoted(of_edges)} of the edges are not used. `weights` takes one number for each edge.": left,
    }
    return tuple(note for note, is_true in reasons.items() if is_true)


def _directed(edges: Any) -> bool:
    """Whether edges have a direction; that of types is known from their ends. A matrix that is zero on one side of its
    diagonal lists each edge once."""
    if sp.issparse(edges):
        sides = sp.triu(edges, 1).count_nonzero(), sp.tril(edges, -1).count_nonzero()
        return edges.shape[0] == edges.shape[1] and all(sides) and (sp.csr_array(edges) != edges.T).nnz > 0
    if getattr(edges, "edge_type", None) is not None or not hasattr(edges, "is_directed") or not edges.is_directed():
        return False
    is_igraph = hasattr(edges, "get_edgelist")
    if not is_igraph and not is_networkx(edges):
        return True
    arcs = set(map(tuple, edges.get_edgelist() if is_igraph else edges.edges()))
    return any((head, tail) not in arcs for tail, head in arcs)


def _attributes(edges: Any, types: object) -> tuple[list[str], list[str]]:
    """The names of what is said of nodes and of edges, besides names and weights."""
    of_nodes, of_edges = set[str](), set[str]()
    if is_networkx(edges):
        of_nodes = {str(key) for _, one in edges.nodes(data=True) for key in one}
        of_edges = {str(key) for *_, one in edges.edges(data=True) for key in one}
    elif hasattr(edges, "get_edgelist"):
        of_nodes, of_edges = {*edges.vs.attributes()} - {"name"}, {*edges.es.attributes()}
    elif hasattr(edges, "edge_attrs"):
        # One column serves as weights, unless there are others.
        alone = edges.get("edge_weight") is None and getattr(edges.get("edge_attr"), "shape", (0, 0))[1:] in ((), (1,))
        of_edges = {*edges.edge_attrs()} - {"edge_type", *(["edge_attr"] if alone else [])}
    elif is_frame(edges):
        columns = [name for name in nw.from_native(edges, eager_only=True).columns if str(name) != str(types)]
        of_edges = set(columns[2:] and columns) - {*TYPE_NAMES}
    return sorted(of_nodes), sorted(of_edges - _USED)
