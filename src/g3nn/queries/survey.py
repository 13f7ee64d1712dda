"""All pairs of nodes cut into tiles, of which a sample is scored: how many edges are expected and where, which pairs
probably lack one, and new graphs drawn without visiting every pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.
from scipy.optimize import brentq
from scipy.special import expit

from g3nn.base.parse import decode, distinct
from g3nn.graph.datasets.random_graph import uniform_pairs
from g3nn.queries.scores import ObservedEdges, PairScores, row_products

_DRAWS, _LEAST_ROUNDS = 400_000, 64
"""Pairs drawn from all tiles together, or this many from each tile if that is more."""

_CHUNK = 1 << 17
"""Pairs held at once."""

_NEAR_PAIRS = 500
"""Pairs per node that may be looked at one by one."""

_HUB = 100
"""Two neighbours of a node with more neighbours than this are not looked at for that reason alone."""

_REACHED_AT_ONCE = 1 << 22
"""Pairs with a common neighbour held at once, about."""

_MARGIN = np.log(2.0)
"""Pairs are drawn exactly up to this far above the highest log-odds met in their tile."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Nodes in cells. order: all nodes, cell by cell; start, size: where each cell lies in it."""

    order: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def near(cls, vectors: np.ndarray, count: int) -> Cells:
        """About `count` cells of nodes whose vectors (n, h) are near each other, none of them very large."""
        means = sklearn.cluster.MiniBatchKMeans(count, batch_size=4096, max_iter=20, n_init=1, random_state=0)
        cluster = means.fit_predict(vectors).astype(np.int64)
        order, size = np.argsort(cluster, kind="stable"), np.bincount(cluster)
        # A tile of two large clusters would be too much to look at, so they are cut into several cells.
        rank = np.arange(order.size) - np.repeat(np.cumsum(size) - size, size)
        piece = rank // (2 * -(-order.size // count))
        size = np.unique(cluster[order] * order.size + piece, return_counts=True)[1]
        return cls(order, np.cumsum(size) - size, size)

    def at(self, cell: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The nodes at these places in these cells."""
        return self.order[self.start[cell] + place]

    def members(self, cell: int) -> np.ndarray:
        return self.order[self.start[cell] : self.start[cell] + self.size[cell]]


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tile t holds the pairs of a node in the cell source[t] with one in the cell target[t]: pairs with similar scores.

    On an undirected graph both ends have the same cells, and every pair belongs to one tile. On a directed graph a tile
    may hold self-pairs; draws from it must leave them out.
    """

    sources: Cells
    targets: Cells
    source: np.ndarray
    target: np.ndarray
    directed: bool

    @classmethod
    def of(cls, left: np.ndarray, right: np.ndarray, directed: bool) -> Tiles:
        """About sqrt(n) cells, hence about n tiles. left, right: (n, h), with left_i . right_j the score of a pair."""
        count = max(1, round(len(left) ** 0.5))
        sources = Cells.near(left, count)
        targets = Cells.near(right, count) if directed else sources
        source, target = np.indices((sources.size.size, targets.size.size)).reshape(2, -1)
        if not directed:
            once = (source < target) | ((source == target) & (sources.size[source] > 1))
            source, target = source[once], target[once]
        return cls(sources, targets, source, target, directed)

    @cached_property
    def pairs(self) -> np.ndarray:
        """(T,): how many pairs each tile holds."""
        m, k = self.sources.size[self.source], self.targets.size[self.target]
        return m * k if self.directed else np.where(self.source == self.target, m * (m - 1) // 2, m * k)

    def draw(self, tile: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(2, P): a uniform pair out of each of these tiles."""
        a, b = self.source[tile], self.target[tile]
        i, j = rng.integers(self.sources.size[a]), rng.integers(self.targets.size[b])
        if not self.directed:
            own = a == b
            i[own], j[own] = uniform_pairs(self.sources.size[a[own]], int(own.sum()), rng)
        return np.stack([self.sources.at(a, i), self.targets.at(b, j)])

    def scores(self, tile: int, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nodes i and j of a tile, and left_i . right_j for all of them, minus infinity where there is no pair."""
        i, j = self.sources.members(self.source[tile]), self.targets.members(self.target[tile])
        scores = left[i] @ right[j].T
        if self.directed:
            scores[i[:, None] == j[None, :]] = -np.inf
        elif self.source[tile] == self.target[tile]:
            scores[np.tril_indices(i.size)] = -np.inf
        return i, j, scores


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """edges: (2, E) int64, in the form of `NodeTask.edges`. labels: (n,): the labels that the edges were drawn for."""

    edges: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Survey:
    """All pairs of a graph, by a sample of each tile. q: (n, K), beliefs about labels. Log-odds are those at equal
    numbers of edges and non-edges."""

    scores: PairScores
    q: np.ndarray
    observed: ObservedEdges

    @cached_property
    def tiles(self) -> Tiles:
        return Tiles.of(*self.scores.plug_in(self.q), self.observed.directed)

    @cached_property
    def others(self) -> np.ndarray:
        """(rounds, T): the log-odds of a drawn pair from each tile, for labels of its ends drawn from q; minus infinity
        if it is not a non-edge."""
        rng, scores = np.random.default_rng(0), self.scores
        count, below = self.tiles.pairs.size, thresholds(self.q)
        rounds, together = max(_LEAST_ROUNDS, _DRAWS // count), max(1, _CHUNK // count)
        others = []
        for done in range(0, rounds, together):
            pairs = self.tiles.draw(np.tile(np.arange(count), min(together, rounds - done)), rng)
            by_labels = scores.table[tuple(draw_labels(below, pairs, rng))]
            logits = row_products(scores.left, scores.right, pairs) + by_labels
            others.append(np.where(self.observed.is_free(pairs), logits, -np.inf).reshape(-1, count))
        return np.concatenate(others)

    def expected_edges(self, shift: float) -> float:
        """The expected number of edges when all log-odds are shifted."""
        among_others = self.tiles.pairs @ expit(self.others + shift).mean(0)
        return float(expit(self.scores.odds + shift).sum() + among_others)

    @cached_property
    def shift(self) -> float:
        """The shift at which as many edges are expected as were observed."""
        wanted = self.scores.odds.size
        return float(brentq(lambda shift: self.expected_edges(shift) - wanted, -60.0, 60.0, xtol=1e-6))

    @cached_property
    def peaks(self) -> np.ndarray:
        """(T,): the highest log-odds met in each tile."""
        return self.others.max(0)

    @cached_property
    def near(self) -> np.ndarray:
        """The tiles with the highest log-odds, as many as may be looked at pair by pair; every tile if n is small."""
        order = np.argsort(-self.peaks, kind="stable")
        return order[np.cumsum(self.tiles.pairs[order]) <= _NEAR_PAIRS * self.observed.n]

    @cached_property
    def far(self) -> np.ndarray:
        """All other tiles."""
        return np.setdiff1d(np.arange(self.peaks.size), self.near)

    def likely_pairs(self, count: int) -> np.ndarray:
        """(2, P): the `count` non-edges with the highest scores, or all if there are fewer, among those looked at.

        These are nodes with a common neighbour, and all pairs in the tiles where edges are likely; in a small graph,
        all pairs. Beliefs take the place of labels, which gives almost the order of the probabilities.
        """
        best, ends = _Best(count, self.observed), self.scores.plug_in(self.q)
        for tile in self.near.tolist():
            i, j, scores = self.tiles.scores(tile, *ends)
            row, column = np.nonzero(scores > best.least)
            best.add(np.stack([i[row], j[column]]), scores[row, column].astype(np.float64))
        for pairs in two_steps_away(self.observed):
            best.add(pairs, row_products(*ends, pairs))
        return decode(best.codes, self.observed.n)

    def sample(self, rng: np.random.Generator) -> SampledGraph:
        """Labels from q, then every pair independently with its probability at the observed density: for these labels,
        or for observed edges whatever the labels are.

        Exact for observed edges and in the tiles where edges are likely: pair by pair. In the others, pairs receive
        hits at a common rate and keep one with the proportion of their own rate to it (as in `random_graph`). That rate
        comes from a sample of the tile, so the few pairs above it are drawn too rarely.
        """
        observed, odds = self.observed, self.scores.odds
        labels = draw_labels(thresholds(self.q), np.arange(len(self.q)), rng)
        again = rng.random(odds.size) < expit(odds + self.shift)
        ends = self.scores.plug_in(np.eye(self.q.shape[1])[labels])
        others = (*self._near_pairs(ends, rng), *self._far_pairs(ends, rng))
        free = [pairs[:, observed.is_free(pairs)] for pairs in others]
        drawn = np.concatenate([observed.edges[:, again], *free], axis=1)
        return SampledGraph(decode(distinct(observed.codes(drawn)), observed.n), labels)

    def _near_pairs(self, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
        for tile in self.near.tolist():
            i, j, logits = self.tiles.scores(tile, *ends)
            row, column = np.nonzero(rng.random(logits.shape, dtype=np.float32) < expit(logits + self.shift))
            yield np.stack([i[row], j[column]])

    def _far_pairs(self, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
        """A pair with log-odds t is linked if it receives at least one of a Poisson number of hits of mean
        log(1 + e^t)."""
        highest = np.logaddexp(0.0, self.peaks + self.shift + _MARGIN)
        tiles = np.repeat(self.far, rng.poisson(highest[self.far] * self.tiles.pairs[self.far]))
        for start in range(0, tiles.size, _CHUNK):
            chunk = tiles[start : start + _CHUNK]
            pairs = self.tiles.draw(chunk, rng)
            rate = np.logaddexp(0.0, row_products(*ends, pairs) + self.shift)
            yield pairs[:, rng.random(chunk.size) * highest[chunk] < rate]


def thresholds(q: np.ndarray) -> np.ndarray:
    """(n, K): up to which uniform number each class is drawn, by beliefs q (n, K)."""
    below = np.cumsum(q, axis=1)
    # Rounding must not keep the last class from being reached.
    below[:, -1] = np.inf
    return below


def draw_labels(below: np.ndarray, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label for each of these nodes by its thresholds, independent even where a node is given twice."""
    return (below[nodes] < rng.random((*nodes.shape, 1))).sum(-1)


def two_steps_away(observed: ObservedEdges) -> Iterator[np.ndarray]:
    """(2, P) each: pairs with a common neighbour, directions ignored; both orders of a pair on a directed graph."""
    n, edges = observed.n, observed.edges
    half = sp.coo_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(n, n)).tocsr()
    both = half + half.T
    degree = both.sum(axis=0)
    middle = both[:, degree <= _HUB]
    back = middle.T.tocsr()
    # As many rows at a time as reach about this number of pairs.
    reached = np.cumsum(middle @ degree[degree <= _HUB])
    for rows in np.split(np.arange(n), np.flatnonzero(np.diff(reached // _REACHED_AT_ONCE)) + 1):
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
