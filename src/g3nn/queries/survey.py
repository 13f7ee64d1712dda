"""All pairs of nodes cut into tiles, and a look at some pairs of each: how many edges are expected, and where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.cluster import MiniBatchKMeans

from g3nn.graph.datasets.random_graph import uniform_pairs
from g3nn.queries.scores import ObservedEdges, PairScores, row_products

_DRAWS, _LEAST_ROUNDS = 400_000, 64
"""Pairs drawn from all tiles together, or this many from each tile if that is more."""

_CHUNK = 1 << 17
"""Pairs held at once."""

_NEAR_PAIRS = 500
"""Pairs per node that may be looked at one by one."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Nodes in cells. order: all nodes, cell by cell; start, size: where each cell lies in it."""

    order: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def near(cls, vectors: np.ndarray, count: int) -> Cells:
        """About `count` cells of nodes whose vectors (n, h) are near each other, none of them very large."""
        means = MiniBatchKMeans(count, batch_size=4096, max_iter=20, n_init=1, random_state=0)
        cluster = means.fit_predict(vectors).astype(np.int64)
        order, size = np.argsort(cluster, kind="stable"), np.bincount(cluster)
        # A tile of two large clusters would be too much to look at, so they are cut into several cells.
        rank = np.arange(order.size) - np.repeat(np.cumsum(size) - size, size)
        piece = rank // (2 * -(-order.size // count))
        size = np.unique(cluster[order] * order.size + piece, return_counts=True)[1]
        return cls(order, np.cumsum(size) - size, size)

    def at(self, cell: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The nodes at these places in these cells."""
        nodes: np.ndarray = self.order[self.start[cell] + place]
        return nodes

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
class Survey:
    """Log-odds at equal numbers of edges and non-edges.

    edges:  (E,): of the observed edges.
    others: (rounds, T): of a drawn pair from each tile, for labels of its ends drawn from q; minus infinity if it is
            not a non-edge.
    """

    tiles: Tiles
    edges: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, scores: PairScores, q: np.ndarray, observed: ObservedEdges) -> Survey:
        rng = np.random.default_rng(0)
        labels = Labels(q)
        tiles = Tiles.of(*scores.plug_in(q), observed.directed)
        count = tiles.pairs.size
        rounds, together = max(_LEAST_ROUNDS, _DRAWS // count), max(1, _CHUNK // count)
        others = []
        for done in range(0, rounds, together):
            pairs = tiles.draw(np.tile(np.arange(count), min(together, rounds - done)), rng)
            logits = row_products(scores.left, scores.right, pairs) + scores.table[labels.draw_ends(pairs, rng)]
            others.append(np.where(observed.is_free(pairs), logits, -np.inf).reshape(-1, count))
        return cls(tiles, scores.odds, np.concatenate(others))

    def expected_edges(self, shift: float) -> float:
        """How many edges are expected when all log-odds are shifted."""
        among_others = self.tiles.pairs @ expit(self.others + shift).mean(0)
        return float(expit(self.edges + shift).sum() + among_others)

    @cached_property
    def shift(self) -> float:
        """The one at which as many edges are expected as were observed."""
        wanted = self.edges.size
        return float(brentq(lambda shift: self.expected_edges(shift) - wanted, -60.0, 60.0, xtol=1e-6))

    @cached_property
    def peaks(self) -> np.ndarray:
        """(T,): the highest log-odds met in each tile."""
        highest: np.ndarray = self.others.max(0)
        return highest

    @cached_property
    def near(self) -> np.ndarray:
        """The tiles with the highest log-odds, as many as may be looked at pair by pair; every tile if n is small."""
        order = np.argsort(-self.peaks, kind="stable")
        limit = _NEAR_PAIRS * self.tiles.sources.order.size
        return order[np.cumsum(self.tiles.pairs[order]) <= limit]

    @cached_property
    def far(self) -> np.ndarray:
        """All other tiles."""
        return np.setdiff1d(np.arange(self.peaks.size), self.near)


class Labels:
    """Draws labels from beliefs q (n, K)."""

    def __init__(self, q: np.ndarray) -> None:
        self._below = np.cumsum(q, axis=1)
        # Rounding must not keep the last class from being reached.
        self._below[:, -1] = np.inf

    def draw(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A label for each of these nodes, independent even where a node is given twice."""
        labels: np.ndarray = (self._below[nodes] < rng.random((nodes.size, 1))).sum(1)
        return labels

    def draw_ends(self, pairs: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels for both ends of pairs (2, P)."""
        return self.draw(pairs[0], rng), self.draw(pairs[1], rng)
