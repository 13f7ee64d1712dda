from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

import g3nn
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import Pairs
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise

SEEDS = torch.tensor([0, 1, 2])
LEAST_PVALUE = 1e-4
"""A uniform sampler fails one such test in ten thousand; the seeds are fixed."""


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def directed(request) -> bool:
    return request.param


@pytest.fixture
def source(make_task, directed) -> PairSource:
    return PairSource(Inputs.of(make_task(nodes=9, edges=14, directed=directed)))


def as_set(pairs: Pairs, directed: bool) -> list[tuple[int, int]]:
    """The pairs in order; on an undirected graph with the lower end first."""
    found = zip(pairs.i.flatten().tolist(), pairs.j.flatten().tolist(), strict=True)
    return sorted(pair if directed else tuple(sorted(pair)) for pair in found)


def candidates(n: int, directed: bool) -> set[tuple[int, int]]:
    return set((itertools.permutations if directed else itertools.combinations)(range(n), 2))


def non_edges(source: PairSource) -> set[tuple[int, int]]:
    return candidates(source.n, source.directed) - set(as_set(source.edges, source.directed))


def with_edges(task, pairs: set[tuple[int, int]]):
    return PairSource(Inputs.of(replace(task, edges=np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T)))


def test_edges_are_those_of_the_task(make_task, directed):
    task = make_task(directed=directed)
    source = PairSource(Inputs.of(task))
    assert source.edges.present
    assert as_set(source.edges, directed) == sorted(map(tuple, task.edges.T.tolist()))


def test_counts(source, directed):
    assert source.num_edges == 14
    assert source.num_non_edges == (9 * 8 if directed else 9 * 8 // 2) - 14


def test_all_non_edges_is_each_of_them_once(source, directed):
    found = source.all_non_edges
    assert not found.present
    assert as_set(found, directed) == sorted(non_edges(source))
    assert found.i.numel() == source.num_non_edges


def test_samples_are_non_edges(source, directed):
    pairs = source.sample_non_edges(Noise(SEEDS, 0), 500)
    assert pairs.i.shape == pairs.j.shape == (3, 500)
    assert not pairs.present
    assert set(as_set(pairs, directed)) <= non_edges(source)


def test_samples_are_uniform_and_cover_all(source, directed):
    pairs = source.sample_non_edges(Noise(SEEDS, 0), 20_000)
    wanted = sorted(non_edges(source))
    for r in range(3):
        found = as_set(Pairs(pairs.i[r], pairs.j[r], present=False), directed)
        counts = [found.count(pair) for pair in wanted]
        assert min(counts) > 0
        assert stats.chisquare(counts).pvalue > LEAST_PVALUE


def test_sampled_edges_are_uniform_and_cover_all(source, directed):
    pairs = source.sample_edges(Noise(SEEDS, 0), 20_000)
    assert pairs.present
    wanted = as_set(source.edges, directed)
    for r in range(3):
        found = as_set(Pairs(pairs.i[r], pairs.j[r], present=True), directed)
        assert set(found) == set(wanted)
        assert stats.chisquare([found.count(pair) for pair in wanted]).pvalue > LEAST_PVALUE


def test_neither_end_of_an_undirected_pair_is_preferred(make_task):
    source = PairSource(Inputs.of(make_task(nodes=9, edges=14)))
    pairs = source.sample_non_edges(Noise(SEEDS, 0), 20_000)
    first_lower = int((pairs.i < pairs.j).sum())
    assert stats.binomtest(first_lower, 60_000).pvalue > LEAST_PVALUE


def test_replicas_and_steps_draw_independently(source):
    one, other = (source.sample_non_edges(Noise(SEEDS, step), 200) for step in range(2))
    rows = [row for pairs in (one, other) for row in (pairs.i * source.n + pairs.j)]
    for left, right in itertools.combinations(rows, 2):
        assert not torch.equal(left, right)


def test_uniform_pairs_may_be_edges_or_self_pairs(source):
    pairs = source.sample_uniform(Noise(SEEDS, 0), 20_000)
    assert not pairs.present
    counts = torch.bincount((pairs.i * 9 + pairs.j).flatten(), minlength=81)
    assert counts.numel() == 81
    assert stats.chisquare(counts.numpy()).pvalue > LEAST_PVALUE


def test_pairs_by_degree_are_those_of_hubs_and_only_non_edges_count(source, directed):
    pairs = source.sample_by_degree(Noise(SEEDS, 0), 20_000)
    assert not pairs.present
    free = non_edges(source)
    i, j = pairs.i[0].tolist(), pairs.j[0].tolist()
    counted = [(a, b) if directed else (min(a, b), max(a, b)) for a, b in zip(i, j, strict=True)]
    np.testing.assert_array_equal(pairs.weight[0].numpy() > 0, [pair in free for pair in counted])
    arcs = np.array(as_set(source.edges, directed))
    out = np.bincount(arcs[:, 0] if directed else arcs.ravel(), minlength=9) + 1
    found = np.bincount(pairs.i.flatten().numpy(), minlength=9)
    assert stats.chisquare(found, out / out.sum() * found.sum()).pvalue > LEAST_PVALUE


def test_weights_of_pairs_by_degree_make_up_for_the_choice(source, directed):
    """Every non-edge counts as much as any other, on average."""
    pairs = source.sample_by_degree(Noise(SEEDS, 0), 50_000)
    for r in range(3):
        i, j, weight = (part[r].numpy() for part in (pairs.i, pairs.j, pairs.weight.double()))
        if not directed:
            i, j = np.minimum(i, j), np.maximum(i, j)
        for a, b in sorted(non_edges(source)):
            shares = weight * ((i == a) & (j == b))
            error = shares.std() / len(shares) ** 0.5
            assert abs(shares.mean() - 1 / source.num_non_edges) < 5 * error


def test_a_graph_without_edges(make_task, directed):
    source = with_edges(make_task(nodes=7, directed=directed), set())
    assert source.num_edges == 0
    assert as_set(source.all_non_edges, directed) == sorted(candidates(7, directed))
    assert set(as_set(source.sample_non_edges(Noise(SEEDS, 0), 2000), directed)) == candidates(7, directed)


def test_a_single_non_edge_is_always_drawn(make_task, directed):
    for missing in ((0, 1), (2, 5), (5, 6)):
        source = with_edges(make_task(nodes=7, directed=directed), candidates(7, directed) - {missing})
        assert source.num_non_edges == 1
        assert set(as_set(source.sample_non_edges(Noise(SEEDS, 0), 100), directed)) == {missing}


class TestCompleteGraph:
    @pytest.fixture
    def task(self, make_task, directed):
        task = make_task(nodes=9, directed=directed)
        return replace(task, edges=np.array(sorted(candidates(9, directed))).T)

    def test_has_no_non_edge(self, task):
        source = PairSource(Inputs.of(task))
        assert source.num_non_edges == 0
        assert source.all_non_edges.i.numel() == 0

    @pytest.mark.parametrize(("pairs", "reduction"), [("sampled", "mean"), ("all", "sum")])
    def test_can_be_trained_on(self, task, pairs, reduction):
        result = g3nn.fit(task, "sbm-mlp", epochs=2, pairs=pairs, reduction=reduction, device="cpu")
        assert np.isfinite(result.history).all()


class TestLoneNodes:
    """Nodes 1, 4 and 7 have no edges, since these are missing."""

    linked = (0, 2, 3, 5, 6, 8)

    @pytest.fixture
    def task(self, make_task, directed):
        edges = np.array([[0, 0, 2, 3, 5, 6], [2, 8, 3, 5, 6, 8]])
        return replace(make_task(nodes=9, directed=directed), edges=edges)

    @pytest.fixture
    def source(self, task) -> PairSource:
        return PairSource(Inputs.of(task), "missing")

    @pytest.fixture
    def wanted(self, source, directed) -> set[tuple[int, int]]:
        pairs = (itertools.permutations if directed else itertools.combinations)(self.linked, 2)
        return set(pairs) - set(as_set(source.edges, directed))

    def test_their_pairs_are_no_non_edges(self, source, wanted, directed):
        assert as_set(source.all_non_edges, directed) == sorted(wanted)
        assert source.num_non_edges == len(wanted)
        assert source.num_edges == 6

    def test_they_are_where_nodes_are_known_to_have_no_edges(self, task, directed):
        source = PairSource(Inputs.of(task))
        assert source.num_non_edges == (72 if directed else 36) - 6

    def test_draws_are_uniform_over_the_rest(self, source, wanted, directed):
        pairs = source.sample_non_edges(Noise(SEEDS, 0), 20_000)
        found = as_set(pairs, directed)
        assert set(found) == wanted
        assert stats.chisquare([found.count(pair) for pair in sorted(wanted)]).pvalue > LEAST_PVALUE

    def test_any_pair_is_one_of_linked_nodes(self, source):
        pairs = source.sample_uniform(Noise(SEEDS, 0), 5000)
        assert set(pairs.i.flatten().tolist()) == set(pairs.j.flatten().tolist()) == set(self.linked)

    def test_pairs_by_degree_still_make_up_for_the_choice(self, source, wanted, directed):
        pairs = source.sample_by_degree(Noise(SEEDS, 0), 50_000)
        assert set(pairs.i.flatten().tolist()) == set(self.linked)
        i, j, weight = (part.flatten().numpy() for part in (pairs.i, pairs.j, pairs.weight.double()))
        if not directed:
            i, j = np.minimum(i, j), np.maximum(i, j)
        for a, b in sorted(wanted):
            shares = weight * ((i == a) & (j == b))
            assert abs(shares.mean() - 1 / len(wanted)) < 5 * shares.std() / len(shares) ** 0.5

    def test_without_lone_nodes_nothing_changes(self, make_task, directed):
        ring = np.stack([np.arange(9), (np.arange(9) + 1) % 9])
        task = replace(make_task(nodes=9, directed=directed), edges=ring if directed else np.sort(ring, axis=0))
        draws = [
            PairSource(Inputs.of(task), how).sample_non_edges(Noise(SEEDS, 0), 50) for how in ("observed", "missing")
        ]
        assert torch.equal(draws[0].i, draws[1].i)
        assert torch.equal(draws[0].j, draws[1].j)

    def test_a_graph_without_edges_says_nothing(self, make_task, directed):
        task = replace(make_task(nodes=7, directed=directed), edges=np.zeros((2, 0), dtype=np.int64))
        source = PairSource(Inputs.of(task), "missing")
        assert (source.num_edges, source.num_non_edges) == (0, 0)

    @pytest.mark.parametrize("negatives", ["non-edges", "uniform", "degrees"])
    def test_a_model_can_be_trained_on_it(self, task, negatives):
        found = {
            how: g3nn.fit(
                task, "sbm-gcn", epochs=3, isolated_nodes=how, negatives=negatives, device="cpu", progress=False
            )
            for how in ("observed", "missing")
        }
        assert all(np.isfinite(one.history).all() for one in found.values())
        assert not np.allclose(found["observed"].history, found["missing"].history)
