"""Scores drawn from a known mixture of genuine edges and of pairs by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from g3nn.queries.scores import false_share, genuine_by_score


def drawn(share, seed, count=3000, apart=3.0):
    """Scores of edges, of which this share is genuine, and of pairs by chance."""
    rng = np.random.default_rng(seed)
    genuine = rng.random(count) < share
    return rng.normal(np.where(genuine, apart, 0.0)), rng.normal(size=20_000), genuine


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_the_share_of_false_edges_is_found_without_bias(share):
    found = [false_share(*drawn(share, seed)[:2], np.ones(20_000)) for seed in range(20)]
    assert np.mean(found) == pytest.approx(1 - share, abs=0.035)
    assert np.std(found) < 0.04


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_probabilities_are_those_of_bayes(share):
    edges, chance, genuine = drawn(share, 0)
    knots = genuine_by_score(edges, chance)
    assert (np.diff(knots) >= 0).all()
    found = np.interp(edges, *knots)
    assert found.mean() == pytest.approx(genuine.mean(), abs=0.03)
    exact = share * norm.pdf(edges, 3) / (share * norm.pdf(edges, 3) + (1 - share) * norm.pdf(edges))
    assert abs(found - exact).mean() < 0.03


def test_edges_with_weights_may_stand_for_pairs_by_chance():
    """Where the score is the log of the density ratio, edges with the weight e^-t are distributed as chance has it."""
    edges, _, genuine = drawn(0.7, 1)
    odds = np.log(0.7 * norm.pdf(edges, 3) + 0.3 * norm.pdf(edges)) - norm.logpdf(edges)
    found = np.interp(odds, *genuine_by_score(odds, odds, np.exp(-odds)))
    assert found.mean() == pytest.approx(genuine.mean(), abs=0.04)


def test_where_genuine_edges_look_like_chance_too_the_share_is_a_lower_bound():
    """One in ten genuine edges has no mark, and nine of ten pairs by chance: the share cannot be known."""
    marked = np.arange(3000) < 0.66 * 3000
    edges, chance = np.where(marked, 1.0, 0.0), (np.arange(20_000) < 2000).astype(float)
    assert 1 - false_share(edges, chance, np.ones(20_000)) == pytest.approx(1 - 0.34 / 0.9, abs=0.02)


def test_no_edge_looks_like_chance():
    knots = genuine_by_score(np.full(50, 3.0), np.linspace(-1, 1, 1000))
    assert np.interp(3.0, *knots) == pytest.approx(1)
    assert np.interp(-1.0, *knots) == 0
