"""Edges judged by all of their features: what they share counts, also where it is in none of the leading directions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logit

from g3nn.audit.genuine import log_density_ratio, pairs_by_chance
from g3nn.audit.likeness import Likeness
from g3nn.audit.scores import ObservedEdges, PairScores
from g3nn.task import NodeTask

_ROUNDING = 1e-9


def with_overlap(scores: PairScores, task: NodeTask, q: np.ndarray, seed: int) -> PairScores:
    """The scores of edges moved by how alike the features of their ends are.

    A logistic regression on the log-odds so far and the cosine of the features tells edges, counted by their weights,
    from pairs by chance. It has seen the edges, but has three numbers to fit them with. Other pairs keep their scores.
    """
    rng, observed = np.random.default_rng(seed), ObservedEdges(task.edges, task.num_nodes, task.directed)
    chance, likeness = pairs_by_chance(observed, rng), Likeness(task.edges, task.num_nodes, task.features)
    if not chance.size:
        return scores

    def odds(pairs: np.ndarray) -> np.ndarray:
        probability = scores.probability(q, pairs, observed.find(pairs), 0.0)
        return logit(np.clip(probability, _ROUNDING, 1 - _ROUNDING))

    def attributes(pairs: np.ndarray) -> np.ndarray:
        return np.column_stack([odds(pairs), likeness.fixed(pairs)])

    weights = np.ones(task.num_edges) if task.weights is None else task.weights
    moved = log_density_ratio(attributes(task.edges), attributes(chance), weights, rng)
    return replace(scores, edges=scores.edges + moved - odds(task.edges))
