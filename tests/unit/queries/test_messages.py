"""Belief propagation against the enumeration of all labels and of all subsets of genuine edges."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from g3nn.queries.messages import NoisyEdges, agreement, mixing

TREE = np.array([[0, 0, 2, 2, 4], [1, 2, 3, 4, 5]])
K = 3


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    prior, genuine = rng.dirichlet(np.ones(K), 6), rng.uniform(0.1, 0.9, 5)
    table = rng.uniform(0.2, 3, (K, K))
    return prior, table + table.T, genuine


def enumerated(prior, table, genuine):
    """Exact p(label of each node) and p(edge is genuine), summed over all labels and all sets of genuine edges."""
    beliefs, trusted, total = np.zeros_like(prior), np.zeros(len(genuine)), 0.0
    for labels in product(range(K), repeat=len(prior)):
        for kept in product((False, True), repeat=len(genuine)):
            p = np.prod([prior[node, label] for node, label in enumerate(labels)])
            for (i, j), is_genuine, g in zip(TREE.T, kept, genuine, strict=True):
                pair = labels[i], labels[j]
                p *= g * table[pair] if is_genuine else 1 - g
            total += p
            beliefs[np.arange(len(prior)), labels] += p
            trusted[np.array(kept)] += p
    return beliefs / total, trusted / total


@pytest.mark.slow
def test_on_a_tree_beliefs_about_labels_are_exact(parts):
    prior, table, genuine = parts
    found, _ = NoisyEdges(TREE, 6).propagate(prior, table, genuine, rounds=10, damping=0.0)
    np.testing.assert_allclose(found, enumerated(*parts)[0], rtol=1e-10)


@pytest.mark.slow
def test_on_a_tree_beliefs_about_edges_are_exact(parts):
    prior, table, genuine = parts
    noisy = NoisyEdges(TREE, 6)
    _, messages = noisy.propagate(prior, table, genuine, rounds=10, damping=0.0)
    odds = genuine / (1 - genuine) * agreement(messages, table)
    np.testing.assert_allclose(odds / (1 + odds), enumerated(*parts)[1], rtol=1e-10)


def test_damping_reaches_the_same_beliefs(parts):
    prior, table, genuine = parts
    noisy = NoisyEdges(TREE, 6)
    quick, _ = noisy.propagate(prior, table, genuine, rounds=10, damping=0.0)
    slow, messages = noisy.propagate(prior, table, genuine, rounds=40, damping=0.5)
    np.testing.assert_allclose(slow, quick, rtol=1e-6)
    again, _ = noisy.propagate(prior, table, genuine, messages, rounds=1, damping=0.5)
    np.testing.assert_allclose(again, quick, rtol=1e-6)


def test_an_edge_that_is_certainly_false_says_nothing(parts):
    prior, table, _ = parts
    found, _ = NoisyEdges(TREE, 6).propagate(prior, table, np.zeros(5), rounds=5)
    np.testing.assert_allclose(found, prior)


def test_no_end_of_an_edge_hears_of_that_edge(parts):
    """On a graph with a single edge the messages are the priors, however strong the edge is."""
    prior, table, _ = parts
    _, messages = NoisyEdges(np.array([[0], [1]]), 6).propagate(prior, 100 * table, np.array([0.9]), rounds=5)
    np.testing.assert_allclose(messages, prior[[0, 1]])


def test_labels_of_both_ends_are_counted_as_the_edge_has_them(parts):
    """On a tree the expected counts are exact: those of a genuine edge, summed over everything else."""
    prior, table, genuine = parts
    noisy, met = NoisyEdges(TREE, 6), np.zeros((K, K))
    for labels in product(range(K), repeat=6):
        p = np.prod(prior[np.arange(6), labels]) * np.prod(genuine * table[tuple(np.array(labels)[TREE])])
        for i, j in TREE.T:
            met[labels[i], labels[j]] += p
    _, sure = noisy.propagate(prior, table, np.ones(5), rounds=10, damping=0.0)
    found = mixing(sure, table, np.ones(5), pseudo_edges=0)
    share = sure.mean(0)
    np.testing.assert_allclose(found * np.outer(share, share), (met + met.T) / 2 / met.sum(), rtol=1e-8)


def test_on_a_tree_what_is_maximised_never_falls(parts):
    """Propagation and the table of genuine edges are EM on the evidence of the edges and of those at random."""
    prior, _, genuine = parts
    noisy, share, held_back = NoisyEdges(TREE, 6), np.full(K, 1 / K), 0.5
    table, found = np.ones((K, K)) + 0.1 * np.eye(K), []
    table /= table.mean()
    for _ in range(30):
        whole = 0.0
        for labels in product(range(K), repeat=6):
            pairs = tuple(np.array(labels)[TREE])
            edges = genuine * table[pairs] + 1 - genuine
            whole += np.prod(prior[np.arange(6), labels]) * np.prod(edges)
        found.append(np.log(whole) + held_back * np.log(table).mean())
        _, messages = noisy.propagate(prior, table, genuine, rounds=10, damping=0.0)
        odds = genuine / (1 - genuine) * agreement(messages, table)
        table = mixing(messages, table, odds / (1 + odds), share, held_back)
    assert (np.diff(found) > -1e-12).all()
    assert found[-1] > found[0] + 0.05


def test_how_labels_are_linked_is_learned_from_the_edges_that_count():
    labels = np.array([0, 0, 1, 1])
    edges = np.array([[0, 2, 0, 1], [1, 3, 2, 3]])
    messages = np.eye(2)[np.concatenate([labels[edges[0]], labels[edges[1]]])]
    weights, alike = np.array([1.0, 1.0, 0.0, 0.0]), np.ones((2, 2))
    table = mixing(messages, alike, weights, pseudo_edges=0)
    np.testing.assert_allclose(table, [[2, 0], [0, 2]])
    held_back = mixing(messages, alike, weights, pseudo_edges=10**9)
    np.testing.assert_allclose(held_back, np.ones((2, 2)), rtol=1e-6)
