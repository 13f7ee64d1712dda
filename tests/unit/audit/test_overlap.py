"""Edges judged by all of their features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.audit import GraphAudit
from g3nn.audit.learning import AuditOptions, Parts, fit_scores
from g3nn.training.progress import Course


@pytest.fixture(scope="module")
def rare_words():
    """A graph where both ends of an edge share a word that nobody else has, and as many edges again without one."""
    rng, n, pairs = np.random.default_rng(0), 120, 180
    edges = np.unique(np.sort(rng.integers(n, size=(2, 500)), axis=0), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    edges = edges[:, rng.permutation(edges.shape[1])[: 2 * pairs]]
    genuine = np.arange(2 * pairs) < pairs
    words = (np.repeat(np.arange(pairs), 2), edges[:, genuine].T.ravel())
    x = sp.csr_array((np.ones(2 * pairs, dtype=np.float32), (words[1], words[0])), shape=(n, pairs))
    task = g3nn.NodeTask.build(x, edges, np.arange(n) % 2, np.arange(40), np.arange(40, 60), np.arange(60, n))
    shared = x.toarray() @ x.toarray().T
    return task, shared[task.edges[0], task.edges[1]] > 0


def test_a_shared_word_outside_the_leading_directions_counts(rare_words):
    task, genuine = rare_words
    q, options = np.full((task.num_nodes, 2), 0.5), {"epochs": 20, "coordinates": 8, "replicas": 1}
    audit = GraphAudit.fit(task, q, device="cpu", **options)
    assert roc_auc_score(genuine, audit.edge_proba(task.edges)) > 0.95
    parts = Parts.drawn(task.num_edges, np.array([[0], [1]]), 1, np.random.default_rng(0))
    plain, _ = fit_scores(task, q, parts, AuditOptions(**options), 0, "cpu", Course())
    assert roc_auc_score(genuine, plain.edges) < 0.9
    for name in ("left", "right", "table"):
        np.testing.assert_array_equal(getattr(audit.scores, name), getattr(plain, name))


def test_edges_that_do_not_count_teach_nothing(rare_words):
    """Where only edges without a shared word are believed, a shared word is no reason for an edge."""
    task, genuine = rare_words
    misled = replace(task, weights=np.where(genuine, 1e-3, 1.0))
    q, options = np.full((task.num_nodes, 2), 0.5), {"epochs": 20, "coordinates": 8, "replicas": 1}
    believing, doubting = (GraphAudit.fit(one, q, device="cpu", **options) for one in (task, misled))

    def favoured(audit):
        probability = audit.edge_proba(task.edges)
        return probability[genuine].mean() - probability[~genuine].mean()

    assert favoured(doubting) < favoured(believing) - 0.2
