"""What was learned about pairs, as plain arrays: the log-odds of an edge for every pair and all labels of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sklearn  # Its parts are imported where they are used: they take long.
from scipy.special import expit, logit

from g3nn.base.parse import encode
from g3nn.graph.relations import Relations

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

    A pair has one code, whichever end of an undirected one comes first. relations: where given, nodes of kinds that no
    edge joins are no pair.
    """

    edges: np.ndarray
    n: int
    directed: bool
    relations: Relations | None = None

    def codes(self, pairs: np.ndarray) -> np.ndarray:
        return pairs[0] * self.n + pairs[1] if self.directed else encode(pairs[0], pairs[1], self.n)

    def find(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): where each pair stands among the edges, -1 if it is no edge."""
        order, codes = self._sorted
        wanted = self.codes(pairs)
        place = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
        return np.where(codes[place] == wanted, order[place], -1)

    def is_free(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): whether a pair is of two different nodes without an edge."""
        free = (pairs[0] != pairs[1]) & (self.find(pairs) < 0)
        return free if self.relations is None else free & self.relations.fit(pairs)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        codes = self.codes(self.edges)
        order = np.argsort(codes)
        return order, codes[order]


_TAILS = np.linspace(0.1, 0.9, 41)
"""Shares of the pairs by chance, those with the lowest scores."""


def false_share(edges: np.ndarray, chance: np.ndarray, weights: np.ndarray) -> float:
    """The share of edges that look like pairs by chance, 1 - pi.

    If genuine edges have scores with density f and pairs by chance with density h, observed edges have pi f + (1 - pi)
    h, of which at least 1 - pi times h. Genuine edges are rarest where scores are lowest. So 1 - pi is at most what the
    lowest scores hold of the edges, divided by what they hold of the pairs by chance, and equal where no genuine edge
    is among them: the estimator of Storey (2002) for the share of true null hypotheses. A short tail has few genuine
    edges but is a noisy measure: the one is taken whose ratio is lowest with a standard error added to it. The lowest
    of many is too low by about half of that, which stays added.
    """
    order = np.argsort(chance, kind="stable")
    mass = np.cumsum(weights[order]) / weights.sum()
    last = np.minimum(np.searchsorted(mass, _TAILS), len(order) - 1)
    count = 1 + np.searchsorted(np.sort(edges), chance[order[last]], side="right")
    size, error = np.maximum(mass[last], _TAILS) * len(edges), np.sqrt(count)
    best = np.argmin((count + error) / size)
    return float(min((count[best] + error[best] / 2) / size[best], 1.0))


def genuine_by_score(edges: np.ndarray, chance: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """(2, m): scores in ascending order, and the probability that an edge with such a score is genuine.

    edges: (E,), chance: (P,), scores of observed edges and of pairs by chance, each by the graph without it. weights:
    (P,), as how many pairs each one counts. With r(t) = (pi f + (1 - pi) h) / h, found by isotonic regression, the
    probability is 1 - (1 - pi) / r(t).
    """
    weights = np.ones(len(chance)) if weights is None else weights
    score = np.concatenate([edges, chance])
    kind = np.repeat([1.0, 0.0], [len(edges), len(chance)])
    counts = np.concatenate([np.full(len(edges), 1 / len(edges)), weights / weights.sum()])
    observed = sklearn.isotonic.IsotonicRegression(y_min=0, y_max=1).fit_transform(score, kind, sample_weight=counts)
    # Between the centres of two levels the probability rises linearly.
    level, place = np.unique(observed, return_inverse=True)
    centre = np.bincount(place, counts * score) / np.bincount(place, counts)
    by_chance = (1 - level) / np.maximum(level, np.finfo(np.float64).tiny)
    return np.stack([centre, np.clip(1 - false_share(edges, chance, weights) * by_chance, 0, 1)])
