"""All pairs of nodes in blocks of pairs that are about equally likely to be linked, so that few need be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from g3nn.data.random_graph import uniform_pairs


@dataclass(frozen=True, eq=False)
class Cells:
    """Nodes in groups. order: all nodes, group by group; start, size: where each group lies in it."""

    order: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def near(cls, vectors: np.ndarray, count: int) -> Cells:
        """About `count` groups of nodes whose vectors (n, h) are near each other, none of them very large."""
        means = MiniBatchKMeans(count, batch_size=4096, max_iter=20, n_init=1, random_state=0)
        group = means.fit_predict(vectors).astype(np.int64)
        order, size = np.argsort(group, kind="stable"), np.bincount(group)
        # A block of two large groups would be too much to look at: they are cut into parts.
        rank = np.arange(order.size) - np.repeat(np.cumsum(size) - size, size)
        part = rank // (2 * -(-order.size // count))
        size = np.unique(group[order] * order.size + part, return_counts=True)[1]
        return cls(order, np.cumsum(size) - size, size)

    def at(self, cell: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The nodes at these places in these groups."""
        nodes: np.ndarray = self.order[self.start[cell] + place]
        return nodes

    def members(self, cell: int) -> np.ndarray:
        return self.order[self.start[cell] : self.start[cell] + self.size[cell]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block b holds the pairs of a node in the cell source[b] with one in the cell target[b].

    On an undirected graph both ends have the same cells, and every pair belongs to one block. On a directed graph a
    block may hold self-pairs; whoever draws from it leaves them out.
    """

    senders: Cells
    receivers: Cells
    source: np.ndarray
    target: np.ndarray
    directed: bool

    @classmethod
    def of(cls, left: np.ndarray, right: np.ndarray, directed: bool) -> Blocks:
        """About sqrt(n) cells, hence about n blocks. left, right: (n, h), with left_i . right_j the score of a pair."""
        count = max(1, round(len(left) ** 0.5))
        senders = Cells.near(left, count)
        receivers = Cells.near(right, count) if directed else senders
        source, target = np.indices((senders.size.size, receivers.size.size)).reshape(2, -1)
        if not directed:
            once = (source < target) | ((source == target) & (senders.size[source] > 1))
            source, target = source[once], target[once]
        return cls(senders, receivers, source, target, directed)

    @cached_property
    def pairs(self) -> np.ndarray:
        """(B,): how many pairs each block holds."""
        m, k = self.senders.size[self.source], self.receivers.size[self.target]
        return m * k if self.directed else np.where(self.source == self.target, m * (m - 1) // 2, m * k)

    def draw(self, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(2, P): a uniform pair out of each of these blocks."""
        a, b = self.source[block], self.target[block]
        i = rng.integers(self.senders.size[a])
        j = rng.integers(self.receivers.size[b])
        if not self.directed:
            own = a == b
            i[own], j[own] = uniform_pairs(self.senders.size[a[own]], int(own.sum()), rng)
        return np.stack([self.senders.at(a, i), self.receivers.at(b, j)])

    def scores(self, block: int, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nodes i and j of a block, and left_i . right_j for all of them, minus infinity where there is no pair."""
        i, j = self.senders.members(self.source[block]), self.receivers.members(self.target[block])
        found = left[i] @ right[j].T
        if self.directed:
            found[i[:, None] == j[None, :]] = -np.inf
        elif self.source[block] == self.target[block]:
            found[np.tril_indices(i.size)] = -np.inf
        return i, j, found
