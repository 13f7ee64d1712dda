"""Edges judged by all that their ends share, and by beliefs about both ends that do not come from the edge itself."""

from __future__ import annotations

import numpy as np

from g3nn.audit.genuine import density_ratio
from g3nn.audit.learning import Parts
from g3nn.audit.likeness import Likeness
from g3nn.audit.scores import PairScores, log_odds
from g3nn.sparse import is_identity
from g3nn.task import NodeTask


def by_overlap(
    task: NodeTask,
    q: np.ndarray,
    scores: PairScores,
    chance: np.ndarray,
    parts: Parts,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of edges and of pairs by chance, (E,) and (P,).

    A logistic regression on the log-odds so far, on how alike the features of both ends are and on what is around them
    tells edges, counted by their weights, from pairs by chance. No pair has taught the regression that judges it.

    The beliefs q (n, K) have heard of every edge: a network makes the ends of a false edge look alike. So an end whose
    label is unknown counts as what the other neighbours of it are believed to be. chance: (P,), the base of pairs.
    """
    weights = np.ones(task.num_edges) if task.weights is None else task.weights
    likeness = Likeness(task.edges, task.num_nodes, None if is_identity(task.features) else task.features)
    adjacency, known = likeness.adjacency(weights), q.max(1) == 1
    around, degree = adjacency @ q + q.mean(0), np.asarray(adjacency.sum(1)).ravel() + 1

    def heard(node: np.ndarray, other: np.ndarray, own: np.ndarray) -> np.ndarray:
        left = np.maximum(around[node] - own[:, None] * q[other], 0) / (degree[node] - own)[:, None]
        return np.where(known[node, None], q[node], left)

    def attributes(base: np.ndarray, pairs: np.ndarray, own: np.ndarray) -> np.ndarray:
        i, j = pairs
        odds = log_odds(scores.linked(heard(i, j, own), heard(j, i, own), base))
        return np.column_stack([odds, likeness.fixed(pairs), likeness.around(pairs, own, weights)])

    rows = attributes(scores.edges, task.edges, weights)
    others = attributes(chance, parts.pairs, np.zeros(len(chance)))
    found = np.empty(len(rows)), np.empty(len(others))
    for own in range(parts.count):
        kept, left = parts.others(parts.edges, own), parts.others(parts.chance, own)
        ratio = density_ratio(rows[kept], others[left], weights[kept], rng)
        for odds, some, part in zip(found, (rows, others), (parts.edges, parts.chance), strict=True):
            odds[part == own] = ratio(some[part == own])
    return found
