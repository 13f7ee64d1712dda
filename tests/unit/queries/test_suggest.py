"""Strategies against values worked out by hand or by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.kernels.sparse import neighbourhoods
from g3nn.queries import STRATEGIES, Scores, Situation, choose, doubtful_edges, first_nodes
from g3nn.queries.covering import Likeness, greedy_cover
from g3nn.queries.strategies import chance_of_agreement, class_mixing, deviation, expected_reduction


def adjacency(edges, n):
    found = neighbourhoods(edges, n)
    found.setdiag(0.0)
    found.eliminate_zeros()
    return found


@pytest.fixture
def clusters():
    """Three cliques of different sizes, each with its own feature; the last node is by itself."""
    sizes = (9, 6, 4)
    group = np.repeat(np.arange(4), (*sizes, 1))
    pairs = [(i, j) for i in range(19) for j in range(i + 1, 19) if group[i] == group[j]]
    features = np.eye(4)[group] + 0.05 * np.random.default_rng(0).random((20, 4))
    beliefs = np.full((20, 3), 0.1)
    beliefs[np.arange(20), group % 3] = 0.8
    nobody = np.zeros(0, dtype=np.int64)
    edges = np.array(pairs).T
    return Situation(edges, features, nobody, np.arange(20), 20, beliefs=beliefs), group


def test_coverage_goes_to_the_largest_group_that_no_label_covers(clusters):
    situation, group = clusters
    found = choose(situation, 3, "coverage")
    assert [group[one.number] for one in found] == [0, 1, 2]
    assert "stands for about 9" in found[0].reason
    labelled = replace(situation, labelled=np.array([0]), candidates=np.arange(1, 20))
    assert group[choose(labelled, 1, "coverage")[0].number] == 1


def test_a_lazy_choice_is_the_greedy_choice():
    rng = np.random.default_rng(1)
    edges = np.unique(np.sort(rng.integers(0, 40, (2, 90)), axis=0), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    likeness = Likeness.of(rng.random((40, 5)), edges, 40)
    worth = rng.random(40)
    found, _ = greedy_cover(likeness, np.arange(5, 40), np.array([1, 2]), 12, worth)
    table = likeness.between(np.arange(40), np.arange(40)).astype(float)
    worth = worth * 40 / worth.sum()

    def whole(nodes):
        pairs = (table[np.ix_(nodes, nodes)].sum() - table[nodes, nodes].sum()) / 2
        return (table[nodes].max(0) + 0.3 * table[nodes].sum(0)) @ worth - 0.3 * 40 / 14 * pairs

    nodes, chosen = [1, 2], []
    for _ in range(12):
        added = [whole([*nodes, other]) - whole(nodes) if other not in nodes else -np.inf for other in range(5, 40)]
        chosen.append(int(np.argmax(added)))
        nodes.append(5 + chosen[-1])
    assert found == chosen


def test_mixing_of_known_classes_is_counted():
    edges = np.array([[0, 0, 2, 1], [1, 2, 3, 3]])
    beliefs = np.eye(2)[[0, 0, 1, 1]]
    found = class_mixing(beliefs, adjacency(edges, 4))
    # Two edges within classes and two between them.
    assert found == pytest.approx(np.ones((2, 2)))
    apart = class_mixing(beliefs, adjacency(edges[:, [0, 2]], 4))
    # Four arcs, all within, and twenty at random, of which five are in each cell.
    assert apart == pytest.approx(np.array([[7, 5], [5, 7]]) / 6)


def test_expected_reduction_of_two_linked_nodes():
    """The joint of the two labels by plain iteration, then what is expected once one of them is known."""
    edges, n = np.array([[0, 2, 4], [1, 3, 5]]), 6
    beliefs = np.array([[0.7, 0.3], [0.4, 0.6], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=float)
    around = adjacency(edges, n)
    joint = class_mixing(beliefs, around)
    for _ in range(500):
        joint = joint * (beliefs[0] / joint.sum(1))[:, None]
        joint = joint * (beliefs[1] / joint.sum(0))[None]
    before = 1 - (beliefs[1] ** 2).sum()
    after = sum(joint[k].sum() * (1 - ((joint[k] / joint[k].sum()) ** 2).sum()) for k in range(2))
    found = expected_reduction(beliefs, around, np.array([0, 2]))
    assert found[0] == pytest.approx(before - after, rel=1e-4)
    assert found[1] == pytest.approx(0.0, abs=1e-9)
    assert before - after > 0


def test_disagreement_is_the_mutual_information(clusters):
    situation, _ = clusters
    members = np.full((2, 20, 3), 1 / 3)
    members[0, 4], members[1, 4] = [1, 0, 0], [0, 1, 0]
    members[:, 5] = [0.5, 0.5, 0]
    situation = replace(situation, members=members, member_weights=np.full(2, 0.5))
    values = STRATEGIES["disagreement"](situation, 1).values
    assert values[4] == pytest.approx(np.log(2))
    assert np.delete(values, 4) == pytest.approx(np.zeros(19), abs=1e-12)


def test_margin_and_entropy(clusters):
    situation, _ = clusters
    beliefs = situation.beliefs.copy()
    beliefs[3], beliefs[7] = [0.5, 0.5, 0.0], [0.36, 0.32, 0.32]
    situation = replace(situation, beliefs=beliefs)
    assert choose(situation, 1, "margin")[0].number == 3
    assert choose(situation, 1, "entropy")[0].number == 7
    named = replace(situation, names=("cat", "dog", "eel"))
    assert choose(named, 1, "margin")[0].reason.endswith("now believed to be cat (50%) or dog (50%)")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_keeps_to_the_candidates(clusters, strategy):
    situation, _ = clusters
    situation = replace(situation, labelled=np.array([0, 9, 15]), candidates=np.array([2, 3, 10, 11, 16, 19]))
    found = choose(situation, 10, strategy)
    assert sorted(one.number for one in found) == [2, 3, 10, 11, 16, 19]
    assert all(one.reason and np.isfinite(one.score) for one in found)
    assert [one.number for one in choose(situation, 3, strategy)] == [
        one.number for one in choose(situation, 3, strategy)
    ]


@pytest.mark.parametrize("strategy", ["entropy", "expected-error", "default"])
def test_batches_are_spread_out(clusters, strategy):
    """All nodes are alike in their group, and those of the first group the least certain."""
    situation, group = clusters
    beliefs = situation.beliefs.copy()
    beliefs[group == 0] = [0.4, 0.3, 0.3]
    situation = replace(situation, beliefs=beliefs, candidates=np.arange(19))
    assert len({group[one.number] for one in choose(situation, 3, strategy)}) == 3


def test_the_default_asks_where_answers_are_open():
    """Two groups of four nodes, none of them labelled."""
    group = np.repeat([0, 1], 4)
    edges = np.array([(i, j) for i in range(8) for j in range(i + 1, 8) if group[i] == group[j]]).T
    for open_group in (0, 1):
        beliefs = np.where((group == open_group)[:, None], 0.5, np.eye(2)[group])
        situation = Situation(edges, np.eye(2)[group], np.zeros(0, int), np.arange(8), 8, beliefs=beliefs)
        assert group[choose(situation, 1)[0].number] == open_group


def test_shuffled_labels_have_the_moments_that_are_worked_out():
    rng = np.random.default_rng(3)
    vectors, labels = rng.standard_normal((15, 4)), np.eye(3)[rng.integers(0, 3, 15)]
    alike, same = vectors @ vectors.T, labels @ labels.T
    away = ~np.eye(15, dtype=bool)
    sums = np.array([(alike * same[np.ix_(order, order)])[away].sum() for order in map(rng.permutation, [15] * 20_000)])
    expected = ((alike * same)[away].sum() - sums.mean()) / sums.std()
    assert deviation(alike, same) == pytest.approx(expected, abs=0.05)
    assert deviation(alike, np.eye(15)) == 0, "no two nodes have the same label"
    assert deviation(alike[:3, :3], same[:3, :3]) == 0


def test_where_alike_nodes_disagree_nodes_are_drawn_at_random(clusters):
    situation, group = clusters
    labelled = np.arange(16)
    agreeing, rng = np.eye(3)[group[labelled]], np.random.default_rng(0)
    vectors = situation.likeness.vectors[labelled]
    assert chance_of_agreement(vectors, agreeing) > 0.999
    assert chance_of_agreement(vectors, np.eye(3)[np.arange(16) % 3]) < 0.01
    assert chance_of_agreement(vectors[:0], agreeing[:0]) == pytest.approx(5 / 6)
    many = np.tile(rng.standard_normal((1, 2)), (2500, 1))
    assert 0 <= chance_of_agreement(many, np.eye(2)[np.arange(2500) % 2]) <= 1
    for given, word in ((agreeing, "stands for"), (np.eye(3)[np.arange(16) % 3], "at random")):
        beliefs = situation.beliefs.copy()
        beliefs[labelled] = given
        asked = replace(situation, labelled=labelled, candidates=np.arange(16, 20), beliefs=beliefs)
        assert all(word in one.reason for one in choose(asked, 3))


def test_nothing_to_choose_from(clusters):
    situation, _ = clusters
    assert choose(replace(situation, candidates=np.zeros(0, dtype=np.int64)), 3) == []


def test_the_first_nodes_need_no_model(clusters):
    situation, group = clusters
    found = first_nodes(situation.features, situation.edges, 3)
    assert {group[one.number] for one in found} == {0, 1, 2}
    by_edges = first_nodes(None, situation.edges, 3, num_nodes=20)
    assert {group[one.number] for one in by_edges} == {0, 1, 2}
    with pytest.raises(InputError, match="num_nodes"):
        first_nodes(None, situation.edges, 3)


def test_an_edge_is_worth_checking_if_it_is_doubtful_and_matters(clusters):
    situation, _ = clusters
    edges = np.concatenate([situation.edges, [[0, 1], [10, 16]]], axis=1)
    beliefs = situation.beliefs.copy()
    beliefs[10] = [0.5, 0.5, 0.0]
    false = np.full(edges.shape[1], 0.1)
    false[-2:] = 0.9
    places, scores, changes = doubtful_edges(2, false, beliefs, edges, adjacency(edges, 20))
    assert places[0] == edges.shape[1] - 2
    assert scores[0] > scores[1]
    assert changes[0] > 0


def test_a_function_of_your_own_is_a_strategy(clusters):
    situation, _ = clusters

    def last(situation, k):
        return Scores("the highest number", situation.candidates.astype(float), spread_out=False)

    found = choose(situation, 2, last)
    assert [one.number for one in found] == [19, 18]
    assert found[0].reason.startswith("the highest number")


def test_no_node_is_its_own_neighbour():
    edges = np.array([[0, 1], [1, 2]])
    found = Situation(edges, np.eye(3), np.array([0]), np.array([1, 2]), 3).adjacency
    np.testing.assert_array_equal(found.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert found.nnz == 4
