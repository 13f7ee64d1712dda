from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from g3nn.queries import survey as tiled
from g3nn.queries.scores import ObservedEdges
from g3nn.queries.survey import Cells, Tiles, two_steps_away

LEAST_PVALUE = 1e-4


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def directed(request) -> bool:
    return request.param


@pytest.fixture
def ends() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 4)), rng.standard_normal((30, 4))


def candidates(n: int, directed: bool) -> set[tuple[int, int]]:
    return set((itertools.permutations if directed else itertools.combinations)(range(n), 2))


def unordered(i: int, j: int, directed: bool) -> tuple[int, int]:
    return (i, j) if directed else (min(i, j), max(i, j))


def test_tiles_hold_every_pair_once(ends, directed):
    tiles = Tiles.of(*ends, directed)
    assert tiles.pairs.size > 5
    found = []
    for tile in range(tiles.pairs.size):
        i, j, scores = tiles.scores(tile, *ends)
        assert np.isfinite(scores).sum() <= tiles.pairs[tile]
        for row, column in np.argwhere(np.isfinite(scores)).tolist():
            found.append(unordered(int(i[row]), int(j[column]), directed))
            assert scores[row, column] == pytest.approx(ends[0][i[row]] @ ends[1][j[column]])
    assert len(found) == len(set(found))
    assert set(found) == candidates(30, directed)


def test_draws_are_uniform_within_a_tile(ends, directed):
    tiles = Tiles.of(*ends, directed)
    tile = int(np.argmax(tiles.pairs * (tiles.source == tiles.target)))
    pairs = tiles.draw(np.full(20_000, tile), np.random.default_rng(1))
    codes = [unordered(i, j, directed) for i, j in pairs.T.tolist()]
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    assert counts.size == tiles.pairs[tile]
    assert stats.chisquare(counts).pvalue > LEAST_PVALUE


def test_no_cell_is_very_large():
    cells = Cells.near(np.zeros((100, 3), dtype=np.float32), 10)
    assert cells.size.tolist() == [20] * 5
    assert sorted(cells.order.tolist()) == list(range(100))
    assert cells.members(2).tolist() == cells.order[40:60].tolist()


def test_observed_pairs_are_found(make_task, directed):
    task = make_task(directed=directed)
    # In no particular order.
    observed = ObservedEdges(task.edges[:, ::-1], task.num_nodes, directed)
    assert observed.find(observed.edges).tolist() == list(range(task.num_edges))
    reverse = observed.find(observed.edges[::-1])
    edges = set(map(tuple, task.edges.T.tolist()))
    if directed:
        assert ((reverse >= 0) == [(j, i) in edges for i, j in observed.edges.T.tolist()]).all()
    else:
        assert reverse.tolist() == list(range(task.num_edges))
    others = np.array(sorted(candidates(task.num_nodes, directed) - edges)).T
    assert (observed.find(others) == -1).all()


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_two_steps_away(make_task, directed, at_once, monkeypatch):
    monkeypatch.setattr(tiled, "_REACHED_AT_ONCE", at_once)
    task = make_task(edges=15, directed=directed)
    near = [set() for _ in range(task.num_nodes)]
    for i, j in task.edges.T.tolist():
        near[i].add(j)
        near[j].add(i)
    expected = {(i, j) for i, j in candidates(task.num_nodes, directed) if near[i] & near[j]}
    parts = list(two_steps_away(ObservedEdges(task.edges, task.num_nodes, task.directed)))
    assert (len(parts) > 1) == (at_once < 10**6)
    assert sorted(map(tuple, np.hstack(parts).T.tolist())) == sorted(expected)


def test_a_hub_introduces_nobody(monkeypatch):
    star = ObservedEdges(np.array([[0] * 6 + [1], [1, 2, 3, 4, 5, 6, 7]]), 8, False)
    assert np.hstack(list(two_steps_away(star))).shape[1] == 15 + 1
    monkeypatch.setattr(tiled, "_HUB", 5)
    assert np.hstack(list(two_steps_away(star))).T.tolist() == [[0, 7]]
