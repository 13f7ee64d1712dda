"""Finds pairs that probably lack an edge, in time about linear in the size of the graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from g3nn.queries.scores import ObservedEdges, row_products
from g3nn.queries.survey import Survey

_HUB = 100
"""Two neighbours of a node with more neighbours than this are not looked at for that reason alone."""
_CHUNK = 1 << 22
"""Pairs held at once, about."""


def likely_pairs(
    survey: Survey, ends: tuple[np.ndarray, np.ndarray], observed: ObservedEdges, count: int
) -> np.ndarray:
    """(2, P): the `count` non-edges with the highest scores, or all if there are fewer, among those looked at.

    These are nodes with a common neighbour, and all pairs in the tiles where edges are likely; in a small graph, all
    pairs. ends: left and right with left_i . right_j the score of a pair.
    """
    best = _Best(count, observed)
    for tile in survey.near.tolist():
        i, j, scores = survey.tiles.scores(tile, *ends)
        row, column = np.nonzero(scores > best.least)
        best.add(np.stack([i[row], j[column]]), scores[row, column].astype(np.float64))
    for pairs in two_steps_away(observed):
        best.add(pairs, row_products(*ends, pairs))
    return observed.pairs(best.codes)


def two_steps_away(observed: ObservedEdges) -> Iterator[np.ndarray]:
    """(2, P) each: pairs with a common neighbour, directions ignored; both orders of a pair on a directed graph."""
    n, edges = observed.n, observed.edges
    half = sp.coo_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(n, n)).tocsr()
    both = half + half.T
    degree = both.sum(axis=0)
    middle = both[:, degree <= _HUB]
    back = middle.T.tocsr()
    # As many rows at a time as lead to about so many pairs.
    reached = np.cumsum(middle @ degree[degree <= _HUB])
    for rows in np.split(np.arange(n), np.flatnonzero(np.diff(reached // _CHUNK)) + 1):
        i, j = (middle[rows] @ back).nonzero()
        i = rows[i]
        kept = i != j if observed.directed else i < j
        yield np.stack([i[kept], j[kept]]).astype(np.int64)


class _Best:
    """The codes of the non-edges with the highest scores so far."""

    def __init__(self, count: int, observed: ObservedEdges) -> None:
        self.count, self.observed = count, observed
        self.least = -np.inf
        self.codes = np.zeros(0, dtype=np.int64)
        self._scores = np.zeros(0)

    def add(self, pairs: np.ndarray, scores: np.ndarray) -> None:
        high = scores > self.least
        pairs, scores = pairs[:, high], scores[high]
        free = self.observed.is_free(pairs)
        codes = np.concatenate([self.codes, self.observed.codes(pairs[:, free])])
        scores = np.concatenate([self._scores, scores[free]])
        codes, first = np.unique(codes, return_index=True)
        order = np.argsort(-scores[first], kind="stable")[: self.count]
        self.codes, self._scores = codes[order], scores[first][order]
        if order.size == self.count:
            self.least = self._scores[-1]
