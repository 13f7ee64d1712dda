"""How alike nodes are once features are smoothed over the graph, and how well labelled nodes stand for the others."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.

from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import normalised_adjacency

_HOPS = 2
"""Steps over the graph by which features are smoothed."""
_SIZE = 256
"""Columns beyond which features are projected at random, which keeps their products nearly as they were."""
_TARGETS, _CELLS = (1000, 4000), 1 << 25
"""In a larger graph a random sample of the nodes represents all: between these two numbers, and as many as keep the
table of likeness, which is computed once, below this number of cells."""
_POWER = 2
"""Nodes count as alike to this power of their cosine: nearness counts more than a faint resemblance."""

_HERDING = 0.3
"""What it counts that labels are as numerous where there are more nodes, beside that every node is covered."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """vectors: (n, r) float32, features smoothed over two steps of the graph, centred, in rows of length one. targets:
    nodes that stand for all."""

    vectors: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, features: Matrix | None, edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> Likeness:
        """Without features, nodes are alike that have the same nodes around them."""
        rng = np.random.default_rng(0)
        adjacency = normalised_adjacency(edges, n, weights).astype(np.float32)
        rows = _begun(features, n, rng)
        for _ in range(_HOPS):
            rows = adjacency @ rows
        rows = sklearn.preprocessing.normalize(rows - rows.mean(0))
        targets, most = np.arange(n), int(np.clip(_CELLS // max(n, 1), *_TARGETS))
        if n > most:
            targets = np.sort(rng.choice(n, most, replace=False))
        return cls(np.ascontiguousarray(rows, dtype=np.float32), targets)

    def __getstate__(self) -> dict[str, np.ndarray]:
        """Without the table, which is quickly made again."""
        return {"vectors": self.vectors, "targets": self.targets}

    def between(self, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(len(nodes), len(others)) in 0..1; 1 for nodes that look the same."""
        cosine = self.vectors[nodes] @ self.vectors[others].T
        return np.asarray(np.clip(cosine, 0.0, 1.0, out=cosine) ** _POWER)

    @cached_property
    def _table(self) -> np.ndarray | None:
        """(n, T): of every node to the targets, unless it would be too large."""
        nodes = np.arange(len(self.vectors))
        return self.between(nodes, self.targets) if len(nodes) * len(self.targets) <= _CELLS else None

    def to_targets(self, nodes: np.ndarray) -> np.ndarray:
        """(len(nodes), T)"""
        return self.between(nodes, self.targets) if self._table is None else self._table[nodes]

    def covered(self, nodes: np.ndarray) -> np.ndarray:
        """(T,): how well each target is covered by its likest of these nodes."""
        best = np.zeros(len(self.targets), dtype=np.float32)
        for part in _parts(nodes, len(self.targets)):
            np.maximum(best, self.to_targets(part).max(0, initial=0.0), out=best)
        return best

    def crowd(self, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(len(nodes),): how alike each is to all others together; of many others some stand for all."""
        some = others[np.linspace(0, len(others) - 1, min(len(others), _TARGETS[0])).astype(int)]
        found = np.concatenate([self.between(part, some).sum(1) for part in _parts(nodes, len(some))])
        return found.astype(np.float64) * (len(others) / max(len(some), 1))


def _begun(features: Matrix | None, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, r) float32, in rows of length one before they are smoothed."""
    if features is None:
        return rng.standard_normal((n, _SIZE), dtype=np.float32) / np.float32(np.sqrt(_SIZE))
    if sp.issparse(features):
        rows: Matrix = sklearn.preprocessing.normalize(sp.csr_array(features))
    else:
        deviation = features.std(0)
        rows = sklearn.preprocessing.normalize((features - features.mean(0)) / np.where(deviation > 0, deviation, 1.0))
    if rows.shape[1] > _SIZE:
        rows = rows @ (rng.standard_normal((rows.shape[1], _SIZE), dtype=np.float32) / np.float32(np.sqrt(_SIZE)))
    elif sp.issparse(rows):
        rows = rows.toarray()
    return np.asarray(rows, dtype=np.float32)


def greedy_cover(
    likeness: Likeness, candidates: np.ndarray, labelled: np.ndarray, k: int, worth: np.ndarray | None = None
) -> tuple[list[int], list[float]]:
    """Places of the k candidates that add most, one after the other, and how many targets each covers anew.

    They cover other nodes, and are as numerous where there are more of them: greedily the most of

        sum over targets v of w_v (max over chosen u of s(u, v) + h sum over chosen u of s(u, v))
            - h price times the sum over pairs of chosen nodes of s,

    where s is likeness, h is 0.3 and the price T divided by the number of labels there will be. The maximum covers; the
    rest keeps the mean of the chosen nodes near that of all, in the space where s is a product (kernel herding). What a
    node adds only shrinks with every other: a node whose old gain is below the new gain of another is not looked at.

    worth: (n,), how much it matters that each node is covered; scaled to w, which sums to the number of targets.
    """
    own = np.ones(len(likeness.targets)) if worth is None else worth[likeness.targets] + 1e-12
    value = (own * len(own) / own.sum()).astype(np.float32)
    price = len(own) / (len(labelled) + k)
    left, crowd = likeness.covered(labelled), likeness.crowd(candidates, labelled)
    chosen: list[int] = []
    covered: list[float] = []

    def gains(places: np.ndarray) -> list[float]:
        tables = map(likeness.to_targets, _parts(candidates[places], len(left)))
        added = [(np.maximum(near - left, 0.0) + _HERDING * near) @ value for near in tables]
        among = likeness.between(candidates[places], candidates[np.array(chosen, dtype=np.int64)]).sum(1)
        return list((np.concatenate(added) - _HERDING * price * (crowd[places] + among)).tolist())

    heap = [(-gain, place) for place, gain in enumerate(gains(np.arange(len(candidates))))]
    heapq.heapify(heap)
    asked = np.zeros(len(heap), dtype=np.int64)
    while heap and len(chosen) < k:
        _, place = heapq.heappop(heap)
        if asked[place] == len(chosen):
            near = likeness.to_targets(candidates[[place]])[0]
            covered.append(float(np.maximum(near - left, 0.0) @ value))
            chosen.append(place)
            left = np.maximum(left, near)
            continue
        # Several at once, since a product with a few rows costs no more than one with a single row.
        some = [place, *(heapq.heappop(heap)[1] for _ in range(min(15, len(heap))))]
        for one, fresh in zip(some, gains(np.array(some)), strict=True):
            asked[one] = len(chosen)
            heapq.heappush(heap, (-fresh, one))
    return chosen, covered


def _parts(nodes: np.ndarray, width: int) -> list[np.ndarray]:
    """Parts whose likeness to `width` others fits into memory; at least one."""
    size = max(1, _CELLS // max(width, 1))
    return [nodes[start : start + size] for start in range(0, max(len(nodes), 1), size)]
