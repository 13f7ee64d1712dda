"""From scores to a batch of nodes that differ from each other, each with its reason."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.parse import Matrix
from g3nn.queries.strategies import STRATEGIES, Scores, Situation, Strategy, class_mixing

_ANYWAY = 0.05
"""What an edge is worth that changes nothing about its ends."""


@dataclass(frozen=True)
class EdgeSuggestion:
    """source, target: the ends, by the caller's ids. numbers: of the two nodes. probability: that the edge is false.
    score: this times what checking would change. reason: in words."""

    source: Hashable
    target: Hashable
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


_BESIDE = 0.5
"""What is left of the score of a node beside one that was chosen."""


@dataclass(frozen=True)
class Suggestion:
    """A node to be labelled. node: by the caller's id; number: in the graph. score: by the strategy, comparable within
    one answer only. reason: in words."""

    node: Hashable
    number: int
    score: float
    reason: str


@dataclass(frozen=True)
class LabelSuggestion:
    """A label to check. node: by the caller's id; number: in the graph. label: what it has; instead: what it probably
    is. score: the probability that it is wrong. reason: in words."""

    node: Hashable
    number: int
    label: Hashable
    instead: Hashable
    score: float
    reason: str


def check_count(count: object, problems: Problems, argument: str = "k", low: int = 1) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < low:
        problems.add(argument, repr(count), f"a whole number of at least {low}")


def choose(situation: Situation, k: int, strategy: str | Strategy = "default") -> list[Suggestion]:
    """At most k candidates, the most useful first; fewer only where there are not as many. strategy: a name, or a
    function of your own."""
    k = min(k, len(situation.candidates))
    if k == 0:
        return []
    found = (STRATEGIES[strategy] if isinstance(strategy, str) else strategy)(situation, k)
    places = _spread(situation, found, k) if found.order is None else found.order[:k].tolist()
    return [_suggestion(situation, place, found) for place in places]


def _spread(situation: Situation, scores: Scores, k: int) -> list[int]:
    """Places of the candidates with the highest scores, where what is left of a score shrinks with every choice."""
    places: list[int] = []
    left = np.ones(len(situation.candidates))
    while len(places) < k:
        place = int(np.where(left >= 0, scores.values * left, -np.inf).argmax())
        places.append(place)
        if scores.spread_out and len(places) < k:
            node = situation.candidates[[place]]
            beside = np.asarray(situation.adjacency[node].toarray())[0, situation.candidates] > 0
            alike = situation.likeness.between(node, situation.candidates)[0]
            left = np.where(left < 0, left, left * (1 - alike) * np.where(beside, _BESIDE, 1.0))
        left[place] = -1.0  # It is not to be chosen again.
    return places


def first_nodes(
    features: Matrix | None,
    edges: np.ndarray,
    k: int,
    *,
    num_nodes: int | None = None,
    candidates: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> list[Suggestion]:
    """Where no node has a label yet: the k nodes that cover most of the graph, by features and edges alone.

    features: (n, d) or None; then num_nodes says how many nodes there are. edges: (2, E) node numbers.
    """
    n = features.shape[0] if features is not None else num_nodes
    with Problems() as problems:
        check_count(k, problems)
        if n is None:
            problems.add("num_nodes", "nothing, and no features", "how many nodes the graph has")
    assert n is not None
    nodes = np.arange(n) if candidates is None else candidates
    return choose(Situation(edges, features, np.zeros(0, np.int64), nodes, int(n), weights), k, "coverage")


def _suggestion(situation: Situation, place: int, scores: Scores) -> Suggestion:
    """The reason includes the two likeliest classes, where classes have names."""
    node, names = int(situation.candidates[place]), situation.names
    words = scores.words if isinstance(scores.words, str) else scores.words[place]
    if situation.beliefs is not None and names:
        p = situation.beliefs[node]
        first, second = np.argsort(-p, kind="stable")[:2]
        words += f"; now believed to be {names[first]} ({p[first]:.0%}) or {names[second]} ({p[second]:.0%})"
    return Suggestion(node, node, float(scores.values[place]), words)
