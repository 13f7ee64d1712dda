"""Which edges are genuine: what is injected is found, and no edge has a say about itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.base.errors import Problems
from g3nn.base.parse import encode
from g3nn.graph.relations import read_relations
from g3nn.kernels.sparse import row_dots
from g3nn.queries.genuine import Evidence


def injected(task, count, seed=0):
    """The task with so many edges between nodes of different classes more, and which of its edges they are."""
    rng, n = np.random.default_rng(seed), task.num_nodes
    pairs = np.sort(rng.integers(n, size=(2, 10 * count)), axis=0)
    codes = task.edges[0] * n + task.edges[1]
    free = (task.labels[pairs[0]] != task.labels[pairs[1]]) & ~np.isin(pairs[0] * n + pairs[1], codes)
    pairs = np.unique(pairs[:, free], axis=1)
    pairs = pairs[:, rng.permutation(pairs.shape[1])[:count]]
    edges = np.concatenate([task.edges, pairs], axis=1)
    return replace(task, edges=edges), np.arange(edges.shape[1]) >= task.num_edges


def prior(task):
    """Labels of training nodes, and nothing about others."""
    known = np.full((task.num_nodes, task.num_classes), 1 / task.num_classes)
    known[task.train] = np.eye(task.num_classes)[task.labels[task.train]]
    return known


@pytest.fixture(scope="module")
def noisy():
    return injected(g3nn.synthetic(nodes=400, classes=3, degree=8, features=20, signal=2.0, seed=1), 400)


def test_injected_edges_are_found(noisy):
    task, false = noisy
    mild, strong = Evidence(task).judge(prior(task), (0.5, 0.35))
    for found in (mild, strong):
        assert roc_auc_score(~false, found.log_odds) > 0.85
        assert found.probability[false].mean() < found.probability[~false].mean() - 0.25
    assert (strong.probability < mild.probability).mean() > 0.9
    right = strong.beliefs.argmax(1) == task.labels
    assert right.mean() > 0.8


def test_without_features_edges_and_labels_still_tell(noisy):
    task, false = noisy
    (found,) = Evidence(task, True).judge(prior(task), (0.5,))
    assert roc_auc_score(~false, found.log_odds) > 0.7


def test_false_edges_at_the_labelled_nodes_do_not_turn_the_graph_around():
    """All that is known says that edges join different labels; the rest of the graph knows better."""
    misled, false = injected(g3nn.synthetic(nodes=400, classes=2, degree=12, signal=0.0, seed=2), 60)
    train = np.unique(misled.edges[:, false])
    misled = replace(misled, train=train[:40])
    (found,) = Evidence(misled, True).judge(prior(misled), (0.8,))
    rest = np.setdiff1d(np.arange(400), misled.train)
    assert (found.beliefs.argmax(1) == misled.labels)[rest].mean() > 0.7


def test_where_edges_join_different_labels_they_are_believed():
    task = g3nn.synthetic(nodes=400, classes=2, degree=10, features=20, signal=3.0, homophily=0.1, seed=3)
    (found,) = Evidence(task).judge(prior(task), (0.8,))
    apart = task.labels[task.edges[0]] != task.labels[task.edges[1]]
    assert found.probability[apart].mean() > found.probability[~apart].mean()


@pytest.fixture(scope="module")
def rare_words():
    """A graph where both ends of an edge share a word that no other node has, and as many edges again without one."""
    rng, n, pairs = np.random.default_rng(0), 120, 180
    edges = np.unique(np.sort(rng.integers(n, size=(2, 500)), axis=0), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    edges = edges[:, rng.permutation(edges.shape[1])[: 2 * pairs]]
    words, places = np.repeat(np.arange(pairs), 2), edges[:, :pairs].T.ravel()
    x = sp.csr_array((np.ones(2 * pairs, dtype=np.float32), (places, words)), shape=(n, pairs))
    task = g3nn.NodeTask.build(x, edges, np.arange(n) % 2, np.arange(40), np.arange(40, 60), np.arange(60, n))
    shared = x.toarray() @ x.toarray().T
    return task, shared[task.edges[0], task.edges[1]] > 0


def test_a_shared_word_outside_the_leading_directions_counts(rare_words):
    task, genuine = rare_words
    (found,) = Evidence(task).judge(np.full((task.num_nodes, 2), 0.5), (0.5,))
    assert roc_auc_score(genuine, found.log_odds) > 0.95


def test_edges_that_do_not_count_teach_nothing(rare_words):
    """Where only edges without a shared word have a weight, a shared word is no reason for an edge."""
    task, genuine = rare_words
    misled = replace(task, weights=np.where(genuine, 1e-3, 1.0))
    nothing = np.full((task.num_nodes, 2), 0.5)
    (believing,), (doubting,) = (Evidence(one).judge(nothing, (0.5,)) for one in (task, misled))
    gaps = [one.probability[genuine].mean() - one.probability[~genuine].mean() for one in (believing, doubting)]
    assert gaps[1] < gaps[0] - 0.2


def test_nothing_to_compare_edges_with():
    """No edge, and all pairs linked: every edge is as probable as any other."""
    pairs = np.array(np.triu_indices(12, 1))
    task = g3nn.NodeTask.build(np.eye(12), pairs, np.arange(12) % 2, np.arange(6), np.arange(6, 9), np.arange(9, 12))
    for one in (task, task.with_edges(pairs[:, :0])):
        mild, strong = Evidence(one, True).judge(np.full((12, 2), 0.5), (0.8, 0.5))
        assert (mild.probability == 0.8).all()
        assert (strong.log_odds == 0).all()
        assert not len(mild.by_chance)


def test_one_group_says_nothing_about_edges(noisy):
    task, false = noisy
    (found,) = Evidence(task).judge(np.ones((task.num_nodes, 1)), (0.5,))
    assert np.isfinite(found.log_odds).all()
    assert roc_auc_score(~false, found.log_odds) > 0.6


def test_the_same_seed_gives_the_same_answer(noisy):
    task, _ = noisy
    first, second = (Evidence(task, seed=7).judge(prior(task), (0.5,))[0] for _ in range(2))
    np.testing.assert_array_equal(first.probability, second.probability)


class TestWhatIsAroundPairs:
    EDGES = np.array([[0, 0, 1, 2], [1, 2, 2, 3]])

    @staticmethod
    def around(edges, n, x):
        features = np.ones((n, 1)) if x is None else x
        task = g3nn.NodeTask.build(features, edges, np.arange(n) % 2, np.arange(n), None)
        return Evidence(task, featureless=x is None).around

    def test_an_edge_is_left_out_of_what_is_around_its_ends(self):
        x = np.random.default_rng(0).normal(size=(5, 3))
        ones = np.ones(4)
        full = self.around(self.EDGES, 5, x)
        without = self.around(self.EDGES[:, 1:], 5, x)
        seen = full(self.EDGES[:, :1], ones[:1], ones)
        np.testing.assert_allclose(seen[:, 1], without(self.EDGES[:, :1], np.zeros(1), ones[1:])[:, 1], rtol=1e-5)

    def test_who_has_no_other_neighbour_is_like_nobody(self):
        """Nodes 0 to 7 have one edge each, of a weight that single precision cannot hold."""
        x = np.random.default_rng(0).normal(size=(16, 3))
        edges, weights = np.stack([np.arange(8), np.arange(8, 16)]), np.full(8, 0.7)
        seen = self.around(edges, 16, x)(edges, weights, weights)
        np.testing.assert_array_equal(seen[:, 1], 0)

    def test_common_neighbours_count_the_more_the_rarer(self):
        shared = self.around(self.EDGES, 5, None)(np.array([[0, 0, 0], [1, 3, 4]]), np.zeros(3), np.ones(4))
        # 0 and 1 share node 2, which has three edges; 0 and 3 too; nobody shares anything with 4.
        np.testing.assert_allclose(shared[:, 0], np.log1p([1 / np.log(5), 1 / np.log(5), 0]))

    def test_without_features_degrees_count_without_the_edge_itself(self):
        around = self.around(self.EDGES, 5, None)
        seen = around(self.EDGES[:, 2:], np.ones(2), np.ones(4))
        # Without the edge between them 1 has one neighbour and 2 has two; without theirs 2 has two and 3 none.
        np.testing.assert_allclose(seen[:, 1], [np.log(2) + np.log(3), np.log(3)])
        np.testing.assert_allclose(seen[:, 2], [np.log(2), 0], atol=1e-12)

    def test_row_dots_are_those_of_dense_rows(self):
        rng = np.random.default_rng(0)
        dense = rng.normal(size=(20, 8)) * (rng.random((20, 8)) < 0.4)
        pairs, scale = rng.integers(20, size=(2, 50)), rng.random(8)
        expected = (dense[pairs[0]] * dense[pairs[1]] * scale).sum(1)
        np.testing.assert_allclose(row_dots(sp.csr_array(dense), pairs, scale), expected, atol=1e-12)
        np.testing.assert_allclose(row_dots(dense, pairs, scale), expected, atol=1e-12)
        np.testing.assert_allclose(row_dots(sp.csr_array(dense), pairs), (dense[pairs[0]] * dense[pairs[1]]).sum(1))


class TestByType:
    """Edges of one type join the same classes, those of another the next class; a fifth of either joins anything."""

    N = 400

    @classmethod
    def drawn(cls, **how):
        rng = np.random.default_rng(0)
        classes = rng.integers(0, 3, cls.N)
        x = np.concatenate([np.eye(3)[classes] + rng.normal(size=(cls.N, 3)), rng.normal(size=(cls.N, 3))], axis=1)
        first = rng.integers(0, cls.N, 2000)
        wanted = (classes[first] + (np.arange(2000) >= 1000)) % 3
        second = np.array([rng.choice(np.flatnonzero(classes == one)) for one in wanted])
        false = rng.random(2000) < 0.2
        second[false] = rng.integers(0, cls.N, int(false.sum()))
        edges, types = np.stack([first, second]), np.repeat(["like", "next"], 1000)
        task = cls.task(x, edges, classes, types=types, **how)
        codes = encode(*edges, cls.N)
        kind = {name: np.isin(encode(*task.edges, cls.N), codes[types == name]) for name in ("like", "next")}
        return task, np.isin(encode(*task.edges, cls.N), codes[false]), kind

    @staticmethod
    def task(x, edges, y, **how):
        problems = Problems()
        relations = read_relations(edges, len(y), False, problems, weights=False, **how)
        problems.raise_if_any()
        split = np.split(np.arange(len(y)), [len(y) // 3, len(y) // 2])
        edges = np.unique(np.sort(relations.pairs, axis=0), axis=1)
        return g3nn.NodeTask.build(x, edges, y, *split, relations=relations, weights=False)

    def test_an_edge_is_judged_as_one_of_its_type(self):
        task, false, types = self.drawn()
        (one,), (typed,) = (Evidence(task, by_type=how).judge(prior(task), (0.5,)) for how in (False, True))
        for kind in types.values():
            before, after = (roc_auc_score(~false[kind], found.log_odds[kind]) for found in (one, typed))
            assert after > before + 0.1
            assert after > 0.65
        assert np.isfinite(typed.log_odds).all()
        assert len(typed.log_odds) == task.num_edges

    def test_of_two_types_the_one_that_doubts_an_edge_counts(self):
        task, _, types = self.drawn()
        both = types["like"] & types["next"]
        assert both.any()
        place, (like, following), _ = Evidence(task, by_type=True)._stated
        assert np.isin(np.flatnonzero(both), place[like]).all()
        assert np.isin(np.flatnonzero(both), place[following]).all()
        assert len(place) == task.num_edges + both.sum()

    def test_pairs_by_chance_are_of_kinds_that_a_type_joins(self):
        rng = np.random.default_rng(0)
        kinds = np.repeat(["film", "person", "word"], [60, 30, 30])
        edges = np.stack(
            [np.tile(np.arange(60), 5), np.concatenate([rng.integers(60, 90, 240), np.arange(90, 120).repeat(2)])]
        )
        types = np.repeat(["by", "about"], [240, 60])
        task = self.task(rng.normal(size=(120, 2)), edges, np.arange(120) % 2, types=types, kinds=kinds)
        _, parts, chances = Evidence(task, by_type=True)._stated
        assert len(parts) == 2
        assert [set(kinds[pairs[1]]) for pairs in chances] == [{"word"}, {"person"}]
        assert all(set(kinds[pairs[0]]) == {"film"} for pairs in chances)

    def test_types_with_few_edges_are_one(self):
        task, _, _ = self.drawn()
        types = np.where(np.arange(len(task.relations.types)) < 900, np.arange(len(task.relations.types)) // 30, 30)
        relations = replace(task.relations, types=types, names=tuple(map(str, range(31))), directed=np.zeros(31, bool))
        many = replace(task, relations=relations)
        place, parts, _ = Evidence(many, by_type=True)._stated
        assert [len(part) for part in parts] == [len(place) - 900, 900]
        (found,) = Evidence(many, by_type=True).judge(prior(task), (0.5,))
        assert np.isfinite(found.log_odds).all()

    def test_edges_of_no_type_are_judged_too(self):
        task, _, _ = self.drawn()
        relations = replace(task.relations, pairs=task.relations.pairs[:, 300:], types=task.relations.types[300:])
        (found,) = Evidence(replace(task, relations=relations), by_type=True).judge(prior(task), (0.5,))
        assert np.isfinite(found.log_odds).all()
        assert len(found.log_odds) == task.num_edges

    def test_one_type_is_no_type(self):
        task, _, _ = self.drawn()
        alone = replace(task, relations=None)
        (plain,), (typed,) = (Evidence(alone, by_type=how).judge(prior(task), (0.5,)) for how in (False, True))
        np.testing.assert_array_equal(plain.log_odds, typed.log_odds)
