"""Published strategies for active learning on graphs, written anew, to compare with."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from g3nn.kernels.sparse import neighbour_mean
from g3nn.queries.strategies import Scores, Situation

_DAMPING, _STEPS = 0.85, 50
_BASE = 0.995
_MOST_ROUNDS = 20


def age(situation: Situation, k: int) -> Scores:
    """AGE (Cai, Zheng and Chang, 2017): percentile ranks of entropy, of density around the centres of K clusters and
    of PageRank, the last with a weight from Beta(1, 1.005 - 0.995^t) that shrinks with the number t of labels.

    Clusters are those of the log-probabilities of the classes, in place of the output of its GCN.
    """
    m, rng = len(situation.candidates), situation.rng()
    centrality = _percentile(pagerank(situation)[situation.candidates])
    if situation.beliefs is None:
        return Scores("chosen by AGE", centrality, spread_out=False)
    outputs = np.log(np.maximum(situation.beliefs, 1e-6))
    fitted = _clusters(outputs, situation.beliefs.shape[1], 0)
    distance = np.linalg.norm(outputs - fitted.cluster_centers_[fitted.labels_], axis=1)
    density = _percentile(1.0 / (1.0 + distance[situation.candidates]))
    assert situation.uncertainty is not None
    uncertain = _percentile(situation.uncertainty[situation.candidates])
    gamma = rng.beta(1.0, 1.005 - _BASE ** len(situation.labelled))
    values = (1 - gamma) / 2 * (uncertain + density) + gamma * centrality + 1e-9 * rng.random(m)
    return Scores("chosen by AGE", values, spread_out=False)


def featprop(situation: Situation, k: int) -> Scores:
    """FeatProp (Wu et al., 2019): clusters of the features smoothed over two steps, and the candidate nearest to the
    centre of each. Clusters that have a label already come last, the others by size."""
    vectors, candidates = situation.likeness.vectors, situation.candidates
    count = min(len(situation.labelled) + k, situation.num_nodes)
    fitted = _clusters(vectors, count, situation.seed % 2**31)
    sizes = np.bincount(fitted.labels_, minlength=count)
    taken = np.bincount(fitted.labels_[situation.labelled], minlength=count)
    distance = np.linalg.norm(vectors[candidates] - fitted.cluster_centers_[fitted.labels_[candidates]], axis=1)
    values = 1.0 / (1.0 + distance)
    order = []
    for cluster in np.lexsort((-sizes, taken)):
        own = np.flatnonzero(fitted.labels_[candidates] == cluster)
        if len(own):
            order.append(own[distance[own].argmin()])
    first = np.array(order, dtype=np.int64)
    rest = np.setdiff1d(np.argsort(distance, kind="stable"), first, assume_unique=True)
    return Scores("chosen by FeatProp", values, spread_out=False, order=np.concatenate([first, rest]))


def pagerank(situation: Situation) -> np.ndarray:
    """(n,)"""
    step = neighbour_mean(situation.edges, situation.num_nodes, situation.weights).T.tocsr()
    rank = np.full(situation.num_nodes, 1.0 / situation.num_nodes)
    for _ in range(_STEPS):
        rank = _DAMPING * (step @ rank) + (1 - _DAMPING) / situation.num_nodes
    return rank


def _clusters(rows: np.ndarray, count: int, seed: int) -> KMeans:
    """Fewer than asked for where rows are the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(count, n_init=1, max_iter=_MOST_ROUNDS, random_state=seed).fit(rows)


def _percentile(values: np.ndarray) -> np.ndarray:
    return np.asarray(rankdata(values) / max(len(values), 1))


PEERS = {"age": age, "featprop": featprop}
