"""What comes with edges and is not used: directions, attributes, columns. Said in notes, with what to do."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import scipy.sparse as sp

from g3nn.base.parse import is_frame, is_networkx, two_by_two
from g3nn.graph.outcomes.labels import quoted

ONE_WAY = "edges: some go one way only; their direction is not used. directed=True uses it."


def notes_on(edges: object, directed: bool, weights: object) -> tuple[str, ...]:
    """About edges as a caller gave them. weights: what was said about those, if anything."""
    notes = [ONE_WAY] if not directed and _one_way(edges) else []
    of_nodes, of_edges = _attributes(edges)
    if of_nodes:
        notes.append(f"edges: the attributes of nodes {quoted(sorted(of_nodes))} are not used. Make them columns of X.")
    if of_edges and weights is None:
        notes.append(unused(of_edges))
    pairs = two_by_two(edges)
    if pairs is not None:
        (a, b), (c, d) = pairs.tolist()
        notes.append(f"edges: a 2 x 2 array is read as (2, E): {a}-{c} and {b}-{d}. Transpose it if rows are edges.")
    return tuple(notes)


def unused(names: set[str]) -> str:
    """The note on attributes or columns of edges."""
    advice = "`weights` takes one number for each edge."
    return f"edges: {quoted(sorted(names))} of the edges are not used. {advice}"


def _one_way(edges: Any) -> bool:
    """Whether edges have a direction that matters. A matrix that is zero on one side of its diagonal has none."""
    if sp.issparse(edges):
        matrix = sp.csr_array(edges)
        sides = sp.triu(matrix, 1).count_nonzero(), sp.tril(matrix, -1).count_nonzero()
        return matrix.shape[0] == matrix.shape[1] and all(sides) and (matrix != matrix.T).nnz > 0
    if is_networkx(edges):
        return edges.is_directed() and not all(edges.has_edge(j, i) for i, j in edges.edges())
    return hasattr(edges, "is_mutual") and edges.is_directed() and not all(edges.is_mutual())


def _attributes(edges: Any) -> tuple[set[str], set[str]]:
    """The names of what is said of nodes and of edges, besides names and weights."""
    if is_networkx(edges):
        nodes, links = (part.data() for part in (edges.nodes, edges.edges))
        of_nodes, of_edges = (
            {str(key) for _, one in nodes for key in one},
            {str(key) for *_, one in links for key in one},
        )
    elif hasattr(edges, "get_edgelist"):
        of_nodes, of_edges = set(edges.vs.attributes()) - {"name"}, set(edges.es.attributes())
    elif is_frame(edges):
        columns = set(nw.from_native(edges, eager_only=True).columns)
        of_nodes, of_edges = set(), columns - {"source", "target"} if {"source", "target"} <= columns else set()
    else:
        return set(), set()
    return of_nodes, of_edges - {"weight"}
