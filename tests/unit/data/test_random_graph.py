from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, logit

from g3nn.graph.datasets import random_graph
from g3nn.graph.datasets.random_graph import (
    Latent,
    block_probabilities,
    decode,
    draw_edges,
    draw_near,
    rewire,
    uniform_pairs,
)

LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2])
DRAWS = 4000


def frequencies(draw: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
    """(n, n): how often each pair was linked."""
    rng = np.random.default_rng(0)
    n = LABELS.size
    linked = np.zeros((n, n))
    for _ in range(DRAWS):
        i, j = decode(draw(rng), n)
        linked[i, j] += 1
    return linked / DRAWS


def by_rows(
    labels: np.ndarray, p_same: float, p_other: float, latent: Latent | None, rng: np.random.Generator
) -> np.ndarray:
    """The codes of a graph in which every node draws its own edges."""
    i, j = random_graph._draw_rows(labels, p_same, p_other, latent, rng)
    return random_graph.encode(i, j, labels.size)


WAYS = pytest.mark.parametrize("draw", [draw_edges, by_rows], ids=["together", "node by node"])


def assert_drawn(frequency: np.ndarray, expected: np.ndarray) -> None:
    """Every pair above the diagonal within five standard errors; nothing below it."""
    upper = np.triu_indices(LABELS.size, 1)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(frequency - expected)[upper] <= 5 * error[upper]).all()
    assert np.tril(frequency).sum() == 0


SAME = LABELS[:, None] == LABELS


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize(("p_same", "p_other"), [(0.6, 0.2), (0.05, 0.4), (0.9, 0.0), (0.0, 0.97)])
def test_planted_partition_links_each_pair_with_its_probability(draw, p_same, p_other):
    drawn = frequencies(lambda rng: draw(LABELS, p_same, p_other, None, rng))
    assert_drawn(drawn, np.where(SAME, p_same, p_other))


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("weight", [1.5, -3.0])
def test_latent_space_links_each_pair_with_its_probability(monkeypatch, draw, weight):
    # Given intercepts: solving for them is tested below, and depends on a sample of pairs.
    monkeypatch.setattr(random_graph, "intercept", lambda _sample, p, _latent: float(logit(p)))
    positions = np.random.default_rng(1).standard_normal((LABELS.size, 3))
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    drawn = frequencies(lambda rng: draw(LABELS, 0.5, 0.2, Latent(positions, weight), rng))
    assert_drawn(drawn, expit(np.where(SAME, logit(0.5), logit(0.2)) + weight * positions @ positions.T))


def test_close_values_are_linked_with_the_probability_of_their_distance(monkeypatch):
    monkeypatch.setattr(random_graph, "intercept", lambda _sample, p, _term: float(logit(p)) + 2)
    values = np.random.default_rng(1).standard_normal((LABELS.size, 2))
    drawn = frequencies(lambda rng: random_graph.encode(*draw_near(values, 1.5, 3.0, rng), LABELS.size))
    squares = ((values[:, None] - values) ** 2).sum(2)
    assert_drawn(drawn, expit(logit(3 / 7) + 2 - 1.5 * squares))


@pytest.mark.parametrize(("p", "weight"), [(1e-6, 2.0), (0.01, -5.0), (0.5, 0.0), (0.99, 2.0), (0.99, -5.0)])
def test_intercept_gives_the_wanted_mean(p, weight):
    rng = np.random.default_rng(2)
    positions = rng.standard_normal((500, 4))
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    latent = Latent(positions, weight)
    solved = random_graph.intercept(lambda m: uniform_pairs(500, m, rng), p, latent)
    i, j = np.triu_indices(500, 1)
    assert expit(solved + latent(i, j)).mean() == pytest.approx(p, rel=0.05)


def test_block_probabilities_give_degree_and_homophily():
    sizes = np.array([30, 50, 20])
    p_same, p_other = block_probabilities(sizes, degree=6, homophily=0.7)
    same = (sizes * (sizes - 1)).sum() / 2
    other = 100 * 99 / 2 - same
    assert p_same * same + p_other * other == pytest.approx(300)
    assert p_same * same / 300 == pytest.approx(0.7)


def test_many_small_chunks_draw_the_same_kind_of_graph(monkeypatch):
    monkeypatch.setattr(random_graph, "_CHUNK", 7)
    labels = np.arange(400) % 4
    codes = draw_edges(labels, 0.1, 0.02, None, np.random.default_rng(3))
    expected = 0.1 * 4 * 100 * 99 / 2 + 0.02 * 6 * 100 * 100
    assert abs(codes.size - expected) < 5 * np.sqrt(expected)
    assert (np.diff(codes) > 0).all()


def test_uniform_pairs_are_uniform_over_different_numbers():
    i, j = uniform_pairs(4, 60_000, np.random.default_rng(4))
    counts = np.zeros((4, 4))
    np.add.at(counts, (i, j), 1)
    assert np.diag(counts).sum() == 0
    off = counts[~np.eye(4, dtype=bool)]
    assert np.abs(off - 5000).max() < 5 * np.sqrt(5000)


def test_rewire_keeps_the_number_of_edges():
    for fraction in [0.0, 0.3, 1.0]:
        for density in [0.05, 0.95]:
            n = 60
            rng = np.random.default_rng(5)
            i, j = np.triu_indices(n, 1)
            codes = np.sort(rng.permutation(i * n + j)[: int(density * i.size)])
            source, target = rewire(decode(codes, n), n, fraction, rng)
            changed = source * n + target
            assert changed.size == codes.size
            assert (np.diff(changed) > 0).all()
            assert (source < target).all()
            assert np.isin(codes, changed).sum() >= codes.size - round(fraction * codes.size)


def test_rewire_draws_uniform_pairs():
    n = 500
    rng = np.random.default_rng(6)
    half = decode(draw_edges(np.arange(n) % 2, 0.1, 0.0, None, rng), n)
    changed = rewire(half, n, 1.0, rng)
    same = (changed[0] % 2 == changed[1] % 2).mean()
    assert abs(same - 0.5) < 5 * np.sqrt(0.25 / changed.shape[1])


@pytest.mark.slow
def test_many_edges_are_drawn_node_by_node(monkeypatch):
    labels = np.random.default_rng(7).permutation(np.arange(5000) % 4)
    few = random_graph.draw_graph(labels, 0.02, 0.002, None, np.random.default_rng(8))
    np.testing.assert_array_equal(few, decode(draw_edges(labels, 0.02, 0.002, None, np.random.default_rng(8)), 5000))
    monkeypatch.setattr(random_graph, "_MANY", 1000)
    many, again = (random_graph.draw_graph(labels, 0.02, 0.002, None, np.random.default_rng(8)) for _ in range(2))
    np.testing.assert_array_equal(many, again)
    assert (np.diff(random_graph.encode(*many, 5000)) > 0).all()
    assert (many[0] < many[1]).all()
    assert abs(many.shape[1] - few.shape[1]) < 5 * np.sqrt(2 * few.shape[1])
    same = [(labels[i] == labels[j]).mean() for i, j in (few, many)]
    assert abs(same[0] - same[1]) < 5 * np.sqrt(2 * 0.25 / few.shape[1])


@pytest.mark.slow
def test_a_graph_does_not_depend_on_the_number_of_threads():
    """Rows in both halves of the nodes, and more of them than a thread takes at once."""
    code = """if True:
        import numba
        import numpy as np
        from g3nn.graph.datasets import random_graph
        labels = np.arange(3000) % 3
        for threads in (1, 2):
            numba.set_num_threads(threads)
            edges = random_graph._draw_rows(labels, 0.01, 0.002, None, np.random.default_rng(0))
            print(edges.shape[1], edges.sum(), (edges[0] * edges[1]).sum())
    """
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    one, two = said.stdout.splitlines()
    assert one == two
