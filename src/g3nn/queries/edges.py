"""Which edges to check: those that may be false and whose ends would be believed to be something else without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.queries.expected_error import class_mixing

_ANYWAY = 0.05
"""What an edge is worth that changes nothing about its ends."""


@dataclass(frozen=True)
class EdgeSuggestion:
    """source, target: the ends, by the caller's ids. numbers: of the two nodes. probability: that the edge is false.
    score: this times what checking would change. reason: in words."""

    source: Any
    target: Any
    numbers: tuple[int, int]
    probability: float
    score: float
    reason: str


def doubtful_edges(
    k: int, false: np.ndarray, beliefs: np.ndarray, edges: np.ndarray, adjacency: sp.csr_array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k edges to check first: their places, scores and what each would change at its ends.

    false: (E,), the probability that each edge is false. beliefs: (n, K). An edge that is not there sends no message:
    without it an end v is believed to be p_v(l) / sum_k p_u(k) M_kl, normalised, by the block model of
    `expected_reduction`. The change is the total variation between this and p_v, for both ends together. An edge whose
    two ends are labelled changes nothing about them, and counts by a small part of its probability alone.
    """
    mixing = class_mixing(beliefs, adjacency)
    change = np.zeros(edges.shape[1])
    for here, there in ((0, 1), (1, 0)):
        own, other = beliefs[edges[here]], beliefs[edges[there]]
        without = own / np.maximum(other @ mixing, 1e-12)
        without /= np.maximum(without.sum(1, keepdims=True), 1e-300)
        change += np.abs(without - own).sum(1) / 2
    scores = false * (_ANYWAY + change)
    order = np.argsort(-scores, kind="stable")[:k]
    return order, scores[order], change[order]
