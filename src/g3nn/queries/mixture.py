"""How likely an edge is genuine, from its score: edges are a mixture of genuine ones and of pairs by chance."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

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
    observed = IsotonicRegression(y_min=0, y_max=1).fit_transform(score, kind, sample_weight=counts)
    # Between the centres of two levels the probability rises linearly.
    level, place = np.unique(observed, return_inverse=True)
    centre = np.bincount(place, counts * score) / np.bincount(place, counts)
    by_chance = (1 - level) / np.maximum(level, np.finfo(np.float64).tiny)
    return np.stack([centre, np.clip(1 - false_share(edges, chance, weights) * by_chance, 0, 1)])
