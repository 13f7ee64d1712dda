"""A look at some pairs of every block: how many edges the model expects, and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from g3nn.audit.blocks import Blocks
from g3nn.audit.latent import LatentGraph
from g3nn.audit.observed import Observed

_DRAWS, _LEAST_ROUNDS = 400_000, 64
"""Pairs drawn from all blocks together, or so many from each block if that is more."""

_CHUNK = 1 << 17
"""Pairs held at once."""

_NEAR_PAIRS = 500
"""Pairs per node that may be looked at one by one."""


@dataclass(frozen=True, eq=False)
class Survey:
    """Logits of drawn pairs, each for labels of its ends drawn from q, at equal numbers of edges and non-edges.

    edges:  (rounds, E): of the observed edges, each under the model that was fitted without it.
    others: (rounds, B): of a pair from each block, under the mean model; minus infinity if it is no non-edge.
    """

    blocks: Blocks
    edges: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, graph: LatentGraph, q: np.ndarray, observed: Observed, fold: np.ndarray) -> Survey:
        rng = np.random.default_rng(0)
        labels = Labels(q)
        blocks = Blocks.of(*plug_in(graph, q), observed.directed)
        rounds = max(1, min(_LEAST_ROUNDS, _DRAWS // fold.size))
        base = graph.base_of(observed.edges, fold)
        edges = [base + graph.table[fold, *labels.draw_ends(observed.edges, rng)] for _ in range(rounds)]
        count = blocks.pairs.size
        rounds, together = max(_LEAST_ROUNDS, _DRAWS // count), max(1, _CHUNK // count)
        others = []
        for done in range(0, rounds, together):
            pairs = blocks.draw(np.tile(np.arange(count), min(together, rounds - done)), rng)
            logits = graph.base(pairs) + graph.mean_table[labels.draw_ends(pairs, rng)]
            others.append(np.where(is_non_edge(pairs, observed), logits, -np.inf).reshape(-1, count))
        return cls(blocks, np.stack(edges), np.concatenate(others))

    def expected_edges(self, shift: float) -> float:
        """How many edges the model expects when all its log-odds are shifted."""
        among_others = self.blocks.pairs @ expit(self.others + shift).mean(0)
        return float(expit(self.edges + shift).mean(0).sum() + among_others)

    @cached_property
    def shift(self) -> float:
        """The one at which the model expects as many edges as were observed."""
        wanted = self.edges.shape[1]
        return float(brentq(lambda shift: self.expected_edges(shift) - wanted, -60.0, 60.0, xtol=1e-6))

    @cached_property
    def peaks(self) -> np.ndarray:
        """(B,): the highest logit met in each block."""
        highest: np.ndarray = self.others.max(0)
        return highest

    @cached_property
    def near(self) -> np.ndarray:
        """The blocks with the highest logits, as many as may be looked at pair by pair; every block if n is small."""
        order = np.argsort(-self.peaks, kind="stable")
        limit = _NEAR_PAIRS * self.blocks.senders.order.size
        return order[np.cumsum(self.blocks.pairs[order]) <= limit]

    @cached_property
    def far(self) -> np.ndarray:
        """All other blocks."""
        return np.setdiff1d(np.arange(self.peaks.size), self.near)


def plug_in(graph: LatentGraph, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """left and right, (n, h) each, with left_i . right_j = the mean model's logit with beliefs q put in for labels.

    With one-hot q it is the logit itself.
    """
    left = np.concatenate([graph.mean_left, q @ graph.mean_table], axis=1)
    return left.astype(np.float32), np.concatenate([graph.mean_right, q], axis=1).astype(np.float32)


def is_non_edge(pairs: np.ndarray, observed: Observed) -> np.ndarray:
    """Whether a pair is of two nodes and not observed."""
    free: np.ndarray = (pairs[0] != pairs[1]) & (observed.find(pairs) < 0)
    return free


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
