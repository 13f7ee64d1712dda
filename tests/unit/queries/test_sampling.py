from __future__ import annotations

import numpy as np
import pytest

from g3nn.queries import GraphAudit, survey
from g3nn.queries.survey import draw_labels, thresholds

DRAWS = 8


def edges_of(graphs) -> list[int]:
    return [graph.edges.shape[1] for graph in graphs]


def homophily(edges: np.ndarray, labels: np.ndarray) -> float:
    return float((labels[edges[0]] == labels[edges[1]]).mean())


@pytest.fixture(scope="module")
def graphs(audit):
    return [audit.sample(seed) for seed in range(DRAWS)]


@pytest.mark.slow
def test_as_many_edges_as_observed(audit, graphs):
    assert np.mean(edges_of(graphs)) == pytest.approx(audit.task.num_edges, rel=0.07)


@pytest.mark.slow
def test_as_homophilous_as_observed(audit, graphs):
    i, j = audit.task.edges
    # The labels behind the beliefs are drawn anew for every graph.
    expected = (audit.q[i] * audit.q[j]).sum(1).mean()
    assert np.mean([homophily(graph.edges, graph.labels) for graph in graphs]) == pytest.approx(expected, abs=0.08)


def test_degrees_are_like_the_observed_ones(audit, graphs):
    n = audit.task.num_nodes
    observed = np.bincount(audit.task.edges.ravel(), minlength=n)
    drawn = np.mean([np.bincount(graph.edges.ravel(), minlength=n) for graph in graphs], axis=0)
    assert np.corrcoef(observed, drawn)[0, 1] > 0.3
    assert drawn.max() < 2 * observed.max()


def test_a_new_graph_not_the_old_one(audit, graphs):
    shared = np.isin(audit._observed.codes(graphs[0].edges), audit._observed.codes(audit.task.edges))
    assert shared.mean() < 0.5


def test_same_seed_same_graph(audit, graphs):
    again = audit.sample(0)
    np.testing.assert_array_equal(again.edges, graphs[0].edges)
    np.testing.assert_array_equal(again.labels, graphs[0].labels)
    assert not np.array_equal(graphs[0].labels, graphs[1].labels)
    assert edges_of(graphs)[0] != edges_of(graphs)[1] or not np.array_equal(graphs[0].edges, graphs[1].edges)


def test_edges_are_those_of_a_task(small_audit):
    task = small_audit.task
    for seed in range(5):
        edges = small_audit.sample(seed).edges
        assert (edges[0] != edges[1] if task.directed else edges[0] < edges[1]).all()
        assert len(set(zip(*edges.tolist(), strict=True))) == edges.shape[1]
        assert edges.dtype == np.int64


@pytest.mark.slow
def test_every_pair_has_its_probability(small_audit):
    n, draws = small_audit.task.num_nodes, 1200
    counts = np.zeros((n, n))
    for seed in range(draws):
        i, j = small_audit.sample(seed).edges
        counts[i, j] += 1
    i, j = np.nonzero(~np.eye(n, dtype=bool) if small_audit.task.directed else np.triu(np.ones((n, n)), 1))
    p = small_audit.edge_proba(np.stack([i, j]), "observed")
    deviations = (counts[i, j] / draws - p) / np.sqrt(p * (1 - p) / draws)
    assert np.abs(deviations).max() < 4.5
    assert deviations.std() == pytest.approx(1, abs=0.25)


def test_tiles_that_are_not_looked_at_pair_by_pair(audit, monkeypatch):
    """As in a graph too large for it: almost every tile is drawn from by rate."""
    monkeypatch.setattr(survey, "_NEAR_PAIRS", 5)
    large = GraphAudit.from_state(audit.task, audit.q, audit.state())
    assert large._survey.far.size > 0.9 * large._survey.peaks.size
    graphs = [large.sample(seed) for seed in range(DRAWS)]
    assert np.mean(edges_of(graphs)) == pytest.approx(audit.task.num_edges, rel=0.1)
    assert large.missing(10).size == 10


def test_labels_are_drawn_from_beliefs():
    q = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    shares = np.bincount(draw_labels(thresholds(q), np.arange(20_000), np.random.default_rng(0))) / 20_000
    np.testing.assert_allclose(shares, q[0], atol=0.015)
    assert draw_labels(thresholds(np.eye(3)), np.array([2, 0, 1, 2]), np.random.default_rng(0)).tolist() == [2, 0, 1, 2]
