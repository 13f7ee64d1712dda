from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from g3nn.pages import layout
from g3nn.pages.layout import communities, laid_out

CLIQUES, SIZE = 4, 12


@pytest.fixture(scope="module")
def cliques():
    """Four cliques in a chain, two nodes of their own, and three without an edge."""
    edges = [(SIZE * c + i, SIZE * c + j) for c in range(CLIQUES) for i, j in combinations(range(SIZE), 2)]
    edges += [(SIZE * c, SIZE * c + SIZE) for c in range(CLIQUES - 1)]
    last = CLIQUES * SIZE
    return np.array([*edges, (last, last + 1)]).T, last + 5


@pytest.mark.parametrize("many", [0, 10**6])
def test_communities_are_what_is_closely_linked(cliques, many, monkeypatch):
    monkeypatch.setattr(layout, "_MANY", many)
    edges, n = cliques
    group = communities(edges, n)
    assert [len(set(group[SIZE * c : SIZE * (c + 1)])) for c in range(CLIQUES)] == [1] * CLIQUES
    assert len(set(group)) == CLIQUES + 1 + 3
    assert group[-5] == group[-4]


def test_of_many_pairs_those_join_that_gain_most_among_the_rest(monkeypatch):
    """A chain 0 - 1 - 2 - 3 - 4, the gains rising: 3 and 4 join, then 1 and 2, since 3 is taken."""
    ends, gain = np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), np.array([0.1, 0.2, 0.3, 0.4])
    assert layout._partners(ends, gain, 5).tolist() == [-1, -1, -1, 4, 3]
    monkeypatch.setattr(layout, "_MANY", 0)
    assert layout._partners(ends, gain, 5).tolist() == [-1, 2, 1, 4, 3]
    assert layout._partners(ends, -gain, 5).tolist() == [-1] * 5


def test_a_small_map_puts_linked_nodes_together(cliques):
    edges, n = cliques
    made = laid_out(edges, n, np.zeros(n))
    assert len(made.bubbles) == 0
    assert made.points.min() >= -1e-9
    assert made.points.max() <= 1 + 1e-9
    apart = np.sqrt(np.square(made.points[:, None] - made.points[None]).sum(2))
    linked = np.zeros((n, n), dtype=bool)
    linked[edges[0], edges[1]] = linked[edges[1], edges[0]] = True
    np.fill_diagonal(linked, False)
    assert 2 * apart[linked].mean() < apart[~linked].mean()


def test_a_large_map_has_a_bubble_for_each_group(cliques, monkeypatch):
    monkeypatch.setattr(layout, "MOST_FREE", 10)
    edges, n = cliques
    key = np.arange(n) % 3
    made = laid_out(edges, n, key)
    assert made.sizes.tolist() == [SIZE] * CLIQUES + [3, 2]
    assert made.points.min() >= 0
    assert made.points.max() <= 1
    for clique, (x, y, radius) in enumerate(made.bubbles[:CLIQUES]):
        inside = np.hypot(*(made.points - [x, y]).T) <= radius
        members = np.flatnonzero(inside)
        assert members.size == SIZE
        assert len(set(members // SIZE)) == 1, clique
    centres, radii = made.bubbles[:, :2], made.bubbles[:, 2]
    apart = np.sqrt(np.square(centres[:, None] - centres[None]).sum(2))
    np.fill_diagonal(apart, np.inf)
    assert (apart > 0.95 * (radii[:, None] + radii[None])).all()
    assert made.links[2].tolist() == [1] * (CLIQUES - 1)
    assert np.array_equal(made.points, laid_out(edges, n, key).points)


def test_small_groups_share_a_bubble(cliques, monkeypatch):
    monkeypatch.setattr(layout, "MOST_FREE", 10)
    monkeypatch.setattr(layout, "MOST_GROUPS", 3)
    edges, n = cliques
    assert laid_out(edges, n, np.zeros(n)).sizes.tolist() == [SIZE, SIZE, n - 2 * SIZE]


@pytest.mark.parametrize("most", [1000, 0])
def test_graphs_without_edges_and_single_nodes(most, monkeypatch):
    monkeypatch.setattr(layout, "MOST_FREE", most)
    for n in (1, 2, 5):
        points = laid_out(np.zeros((2, 0), dtype=np.int64), n, np.zeros(n)).points
        assert points.shape == (n, 2)
        assert np.isfinite(points).all()
