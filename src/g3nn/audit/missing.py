"""Finds pairs that probably lack an edge, in time about linear in the size of the graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from g3nn.audit.latent import row_products
from g3nn.audit.observed import Observed
from g3nn.audit.survey import Survey, is_non_edge

_HUB = 100
"""Two neighbours of a node with more neighbours than this are not candidates for that reason alone."""


def candidates(survey: Survey, ends: tuple[np.ndarray, np.ndarray], observed: Observed, count: int) -> np.ndarray:
    """(2, P): the best `count` non-edges, or all if there are fewer, out of those that were looked at.

    Looked at: nodes with a common neighbour, and all pairs in the blocks of latent space and labels where the model
    puts edges (all pairs at all in a small graph). ends: left and right with left_i . right_j the score of a pair.
    """
    best = _Best(count)
    for block in survey.near.tolist():
        i, j, scores = survey.blocks.scores(block, *ends)
        row, column = np.nonzero(scores > best.least)
        pairs = np.stack([i[row], j[column]])
        best.add(pairs, scores[row, column].astype(np.float64), observed)
    pairs = two_steps_away(observed)
    best.add(pairs, row_products(*ends, *pairs), observed)
    return observed.pairs(best.codes)


def two_steps_away(observed: Observed) -> np.ndarray:
    """(2, P): pairs with a common neighbour, directions ignored; both orders of a pair on a directed graph."""
    n, edges = observed.n, observed.edges
    half = sp.coo_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(n, n)).tocsr()
    both = half + half.T
    middle = both[:, both.sum(axis=0) <= _HUB]
    i, j = (middle @ middle.T).nonzero()
    kept = i != j if observed.directed else i < j
    return np.stack([i[kept], j[kept]]).astype(np.int64)


class _Best:
    """The codes of the pairs with the highest scores so far."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.least = -np.inf
        self.codes = np.zeros(0, dtype=np.int64)
        self._scores = np.zeros(0)

    def add(self, pairs: np.ndarray, scores: np.ndarray, observed: Observed) -> None:
        high = scores > self.least
        pairs, scores = pairs[:, high], scores[high]
        free = is_non_edge(pairs, observed)
        codes = np.concatenate([self.codes, observed.codes(pairs[:, free])])
        scores = np.concatenate([self._scores, scores[free]])
        codes, first = np.unique(codes, return_index=True)
        order = np.argsort(-scores[first], kind="stable")[: self.count]
        self.codes, self._scores = codes[order], scores[first][order]
        if order.size == self.count:
            self.least = self._scores[-1]
