"""What was learned about pairs, as plain arrays: the log-odds of an edge for every pair and all labels of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

_CHUNK = 1 << 22
"""Numbers held at once."""

_CERTAIN = 1e-9


@dataclass(frozen=True, eq=False)
class PairScores:
    """The log-odds of an edge between i and j with labels k and l, where there is none, is left_i . right_j + table_kl.

    left, right: (n, h). On an undirected graph neither end of a pair comes first: left_i . right_j = left_j . right_i.
    table:       (K, K).
    odds:        (E,): the log-odds of every edge, whatever the labels of its ends, by the graph without it.
    """

    left: np.ndarray
    right: np.ndarray
    table: np.ndarray
    odds: np.ndarray

    def probability(self, q: np.ndarray, pairs: np.ndarray, place: np.ndarray, shift: float) -> np.ndarray:
        """(P,): sum_kl q_ik q_jl sigmoid(left_i . right_j + table_kl + shift) of pairs (2, P), or that of an edge.

        place: (P,): where each pair stands among the edges, -1 for a non-edge.
        """
        others = self.linked(q[pairs[0]], q[pairs[1]], row_products(self.left, self.right, pairs) + shift)
        return np.where(place >= 0, expit(self.odds[place] + shift), others)

    def linked(self, source: np.ndarray, target: np.ndarray, base: np.ndarray) -> np.ndarray:
        """(P,): sum_kl s_k t_l sigmoid(base + table_kl), for beliefs about both ends (P, K) and a given base (P,)."""
        result = np.empty(base.size)
        size = max(1, _CHUNK // self.table.size)
        for start in range(0, base.size, size):
            chunk = slice(start, start + size)
            linked = expit(base[chunk, None, None] + self.table)
            result[chunk] = np.einsum("pk,pkl,pl->p", source[chunk], linked, target[chunk], optimize=True)
        return result

    def plug_in(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """left and right, (n, h + K) each: left_i . right_j is the log-odds of a non-edge with beliefs q in place of
        labels; the log-odds themselves if q is one-hot."""
        left = np.concatenate([self.left, q @ self.table], axis=1)
        return left.astype(np.float32), np.concatenate([self.right, q], axis=1).astype(np.float32)


def log_odds(probability: np.ndarray) -> np.ndarray:
    return np.asarray(logit(np.clip(probability, _CERTAIN, 1 - _CERTAIN)))


def row_products(left: np.ndarray, right: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(P,): left_i . right_j of pairs (2, P)."""
    products = np.empty(pairs.shape[1])
    size = max(1, _CHUNK // left.shape[1])
    for start in range(0, products.size, size):
        i, j = pairs[:, start : start + size]
        products[start : start + size] = np.einsum("ph,ph->p", left[i], right[j])
    return products


@dataclass(frozen=True, eq=False)
class ObservedEdges:
    """The edges (2, E) of a graph, and which of any pairs are among them.

    A pair has one code, whichever end of an undirected one comes first.
    """

    edges: np.ndarray
    n: int
    directed: bool

    def codes(self, pairs: np.ndarray) -> np.ndarray:
        i, j = pairs if self.directed else (pairs.min(0), pairs.max(0))
        return i * self.n + j

    def pairs(self, codes: np.ndarray) -> np.ndarray:
        return np.stack([codes // self.n, codes % self.n])

    def find(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): where each pair stands among the edges, -1 if it is no edge."""
        order, codes = self._sorted
        wanted = self.codes(pairs)
        place = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
        return np.where(codes[place] == wanted, order[place], -1)

    def is_free(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): whether a pair is of two different nodes without an edge."""
        free: np.ndarray = (pairs[0] != pairs[1]) & (self.find(pairs) < 0)
        return free

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        codes = self.codes(self.edges)
        order = np.argsort(codes)
        return order, codes[order]
