from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.base.errors import DataError, InputError
from g3nn.graph.datasets.noise import random_edges
from g3nn.graph.task import NodeTask
from g3nn.queries import GraphAudit

QUICK = {"epochs": 20, "latent": 4, "device": "cpu"}


def all_pairs(task: NodeTask) -> np.ndarray:
    choose = itertools.permutations if task.directed else itertools.combinations
    return np.array(list(choose(range(task.num_nodes), 2))).T


def as_set(pairs) -> set[tuple[int, int]]:
    return set(zip(*np.asarray(pairs).tolist(), strict=True))


def ends(table: np.ndarray) -> np.ndarray:
    return np.stack([table["source"], table["target"]])


class TestEdgeProba:
    @pytest.mark.parametrize("density", ["balanced", "observed"])
    def test_equals_brute_force(self, small_audit, density):
        audit, task = small_audit, small_audit.task
        shift = audit._survey.shift if density == "observed" else 0.0
        state, place = audit.state(), {pair: e for e, pair in enumerate(zip(*task.edges.tolist(), strict=True))}
        pairs = all_pairs(task)
        expected = []
        for i, j in pairs.T.tolist():
            if (i, j) in place:
                expected.append(expit(state["odds"][place[i, j]] + shift))
                continue
            base, total = state["left"][i] @ state["right"][j], 0.0
            for k, m in itertools.product(range(task.num_classes), repeat=2):
                total += audit.q[i, k] * audit.q[j, m] * expit(base + state["table"][k, m] + shift)
            expected.append(total)
        np.testing.assert_allclose(audit.edge_proba(pairs, density), expected, rtol=1e-5)

    @pytest.mark.slow
    def test_neither_end_of_an_undirected_pair_comes_first(self, audit):
        pairs = np.random.default_rng(0).permutation(audit.task.num_nodes)[:200].reshape(2, -1)
        pairs = np.concatenate([pairs, audit.task.edges], axis=1)
        np.testing.assert_allclose(audit.edge_proba(pairs), audit.edge_proba(pairs[::-1]), rtol=1e-4)

    def test_a_pair_without_arcs_has_two_probabilities(self, make_task, beliefs):
        task = make_task(nodes=30, edges=90, directed=True)
        found, arcs = GraphAudit.fit(task, beliefs(task), **QUICK), as_set(task.edges)
        free = np.array([pair for pair in all_pairs(task).T.tolist() if not {tuple(pair), tuple(pair[::-1])} & arcs]).T
        assert not np.allclose(found.edge_proba(free), found.edge_proba(free[::-1]), atol=1e-3)

    @pytest.mark.slow
    def test_expects_as_many_edges_as_were_observed(self, audit):
        found = audit.edge_proba(all_pairs(audit.task), "observed").sum()
        assert found == pytest.approx(audit.task.num_edges, rel=0.05)

    def test_balanced_probabilities_tell_edges_from_non_edges(self, audit):
        pairs = all_pairs(audit.task)
        edges = as_set(audit.task.edges)
        linked = np.array([pair in edges for pair in zip(*pairs.tolist(), strict=True)])
        found = audit.edge_proba(pairs)
        assert found[linked].mean() > 0.6
        assert found[~linked].mean() < 0.4

    @pytest.mark.slow
    def test_false_edges_look_like_pairs_by_chance(self, community, beliefs):
        noisy = random_edges(community, 0.5, seed=1)
        audit = GraphAudit.fit(noisy.task, beliefs(community), epochs=60, device="cpu")
        found = audit.edge_proba(noisy.task.edges, "genuine")
        assert found.mean() == pytest.approx((~noisy.injected).mean(), abs=0.05)
        level = np.minimum((found * 5).astype(int), 4)
        assert abs(np.bincount(level, found - ~noisy.injected)).sum() / found.size < 0.07

    def test_who_seems_likelier_is_likelier_to_be_genuine(self, audit):
        edges = audit.task.edges[:, np.argsort(audit.edge_proba(audit.task.edges), kind="stable")]
        assert (np.diff(audit.edge_proba(edges, "genuine")) >= 0).all()

    def test_no_pairs(self, audit):
        assert audit.edge_proba(np.zeros((2, 0), dtype=int)).shape == (0,)

    @pytest.mark.parametrize(
        ("pairs", "words"),
        [
            ([[0, -1, 2], [3, 4, 400]], "-1..400"),
            ([[0.5], [1.0]], "float64"),
            ([[0, 1], [0, 2], [3, 3], [4, 5]], "1 pairs of a node with itself"),
            ([1, 2, 3], "shape"),
        ],
    )
    def test_wrong_pairs(self, audit, pairs, words):
        with pytest.raises(InputError, match=words):
            audit.edge_proba(pairs)

    def test_pairs_in_any_form(self, audit):
        sources, targets = np.array([0, 2]), np.array([1, 3])
        expected = audit.edge_proba(np.array([[0, 2, 4], [1, 3, 5]]))
        np.testing.assert_array_equal(audit.edge_proba([(0, 1), (2, 3), (4, 5)]), expected)
        np.testing.assert_array_equal(audit.edge_proba((sources, targets)), expected[:2])
        np.testing.assert_array_equal(audit.edge_proba([(0, 1), (2, 3)]), expected[:2])
        np.testing.assert_array_equal(audit.edge_proba(np.array([[0, 2], [1, 3]])), expected[:2])
        np.testing.assert_array_equal(audit.edge_proba(pa.table({"source": sources, "target": targets})), expected[:2])

    def test_wrong_density(self, audit):
        with pytest.raises(InputError, match="Did you mean 'balanced'"):
            audit.edge_proba([[0], [1]], "balance")


class TestSuspicious:
    def test_lists_every_edge_once_from_the_least_likely_on(self, small_audit):
        table = small_audit.suspicious()
        assert sorted(as_set(ends(table))) == sorted(as_set(small_audit.task.edges))
        assert table["rank"].tolist() == list(range(1, small_audit.task.num_edges + 1))
        assert (np.diff(table["probability"]) >= 0).all()
        np.testing.assert_allclose(small_audit.edge_proba(ends(table)), table["probability"])

    @pytest.mark.slow
    def test_finds_spurious_edges(self, community, beliefs):
        rng = np.random.default_rng(1)
        true = as_set(community.edges)
        planted = {tuple(sorted(rng.choice(400, 2, replace=False).tolist())) for _ in range(150)} - true
        edges = np.array(sorted(true | planted)).T
        audit = GraphAudit.fit(community.with_edges(edges), beliefs(community), epochs=120, device="cpu")
        table = audit.suspicious()
        spurious = [pair in planted for pair in zip(*ends(table).tolist(), strict=True)]
        assert roc_auc_score(spurious, -table["probability"]) > 0.85


class TestMissing:
    def test_never_an_edge_or_a_self_pair(self, small_audit):
        table = small_audit.missing(1000)
        found = as_set(ends(table))
        wanted = as_set(all_pairs(small_audit.task)) - as_set(small_audit.task.edges)
        assert len(table) == len(found) == len(wanted)
        assert found == wanted

    def test_from_the_likeliest_on(self, audit):
        table = audit.missing(50)
        assert table["rank"].tolist() == list(range(1, 51))
        assert (np.diff(table["probability"]) <= 0).all()
        np.testing.assert_allclose(audit.edge_proba(ends(table)), table["probability"])

    def test_finds_the_likeliest_of_all_non_edges(self, audit):
        pairs = np.array(sorted(as_set(all_pairs(audit.task)) - as_set(audit.task.edges))).T
        best = np.sort(audit.edge_proba(pairs))[::-1][:50]
        np.testing.assert_allclose(audit.missing(50)["probability"], best)

    @pytest.mark.slow
    def test_finds_removed_edges(self, community, beliefs):
        rng = np.random.default_rng(2)
        removed = rng.random(community.num_edges) < 0.1
        kept = community.with_edges(community.edges[:, ~removed])
        audit = GraphAudit.fit(kept, beliefs(community), epochs=120, device="cpu")
        total = 400 * 399 / 2 - kept.num_edges
        found = as_set(ends(audit.missing(2000))) & as_set(community.edges[:, removed])
        by_chance = removed.sum() * 2000 / total
        assert len(found) > 5 * by_chance

    def test_none_asked_for(self, audit):
        assert audit.missing(0).size == 0

    @pytest.mark.parametrize("count", [-1, True])
    def test_wrong_count(self, audit, count):
        with pytest.raises(InputError, match="count"):
            audit.missing(count)

    def test_both_tables_at_once(self, audit):
        tables = audit.tables(missing=7)
        np.testing.assert_array_equal(tables.edges, audit.suspicious())
        np.testing.assert_array_equal(tables.missing, audit.missing(7))


class TestFit:
    def test_same_seed_same_audit(self, make_task, beliefs):
        one, other = (GraphAudit.fit(make_task(), beliefs(make_task()), **QUICK) for _ in range(2))
        for name, values in one.state().items():
            np.testing.assert_array_equal(other.state()[name], values)
        assert one.missing(20).tolist() == other.missing(20).tolist()

    def test_another_seed_starts_anew(self, make_task, beliefs):
        one, other = (GraphAudit.fit(make_task(), beliefs(make_task()), seed=seed, **QUICK) for seed in (1, 2**62))
        assert not np.allclose(one.scores.left, other.scores.left)

    def test_nodes_without_edges(self, make_task, beliefs):
        task = make_task(nodes=20, edges=12)
        isolated = np.setdiff1d(np.arange(20), task.edges)
        assert isolated.size > 2
        audit = GraphAudit.fit(task, beliefs(task), **QUICK)
        found = audit.edge_proba(np.array(list(itertools.combinations(isolated, 2))).T)
        assert ((found > 0) & (found < 1)).all()

    @pytest.mark.parametrize("sparse", [True, False])
    def test_features_that_say_nothing(self, make_task, beliefs, sparse):
        task = make_task()
        empty = sp.csr_array((14, 200), dtype=np.float32) if sparse else np.ones((14, 200), dtype=np.float32)
        audit = GraphAudit.fit(replace(task, features=empty), beliefs(task), **QUICK)
        assert np.isfinite(audit.edge_proba(task.edges)).all()

    def test_neighbours_may_be_left_out(self, make_task, beliefs):
        task = make_task()
        audit = GraphAudit.fit(task, beliefs(task), hops=0, **QUICK)
        assert np.isfinite(audit.edge_proba(task.edges)).all()

    def test_the_mean_of_all_replicas_counts(self, make_task, beliefs):
        task = make_task()
        audit = GraphAudit.fit(task, beliefs(task), replicas=5, **QUICK)
        assert audit.scores.left.shape == (14, 5 * (4 + 2))
        # The degree of the source and a constant, the last two columns of each replica.
        np.testing.assert_allclose(audit.scores.left[:, 5::6].sum(1), 1, rtol=1e-6)

    def test_three_edges_are_enough(self, make_task, beliefs):
        task = make_task(edges=3)
        audit = GraphAudit.fit(task, beliefs(task), **QUICK)
        assert np.isfinite(audit.edge_proba(all_pairs(task))).all()

    @pytest.mark.slow
    def test_unlike_nodes_may_be_the_ones_that_are_linked(self, beliefs):
        task = g3nn.synthetic(nodes=300, classes=2, degree=12, homophily=0.05, seed=4)
        audit = GraphAudit.fit(task, beliefs(task, 0.99), epochs=120, device="cpu")
        unlike = np.array([np.flatnonzero(task.labels == k)[:60] for k in (0, 1)])
        alike = np.array([unlike[0, :30], unlike[0, 30:]])
        assert audit.edge_proba(unlike).mean() > 0.55 > 0.35 > audit.edge_proba(alike).mean()

    def test_a_graph_without_edges(self, edgeless, beliefs):
        with pytest.raises(InputError, match="a graph with no edges; expected at least 3 edges to audit"):
            GraphAudit.fit(edgeless, beliefs(edgeless))

    def test_a_complete_graph(self, make_task, beliefs):
        task = make_task(nodes=8, edges=28)
        with pytest.raises(InputError, match="every pair is linked"):
            GraphAudit.fit(task, beliefs(task))

    def test_every_problem_in_one_error(self, edgeless):
        with pytest.raises(InputError) as caught:
            GraphAudit.fit(edgeless, np.ones((3, 2)), seed=0.5, device="gpu", fold=4, epochs=0)
        assert {problem.argument for problem in caught.value.problems} == {
            "q", "seed", "device", "fold", "epochs", "edges",
        }  # fmt: skip

    @pytest.mark.parametrize("wrong", [np.nan, -0.5])
    def test_beliefs_that_are_no_probabilities(self, make_task, beliefs, wrong):
        q = beliefs(make_task())
        q[5, 0] = wrong
        with pytest.raises(InputError, match="q: got"):
            GraphAudit.fit(make_task(), q)


class TestState:
    def test_comes_back(self, audit):
        again = GraphAudit.from_state(audit.task, audit.q, audit.state())
        np.testing.assert_array_equal(again.suspicious(), audit.suspicious())
        np.testing.assert_array_equal(again.sample(1).edges, audit.sample(1).edges)
        edges = audit.task.edges
        np.testing.assert_array_equal(again.edge_proba(edges, "genuine"), audit.edge_proba(edges, "genuine"))

    def test_of_a_release_that_did_not_store_what_is_genuine(self, audit):
        """Edges with log-odds t are then taken to be e^t times as frequent as pairs by chance."""
        state = {name: values for name, values in audit.state().items() if name != "genuine"}
        found = GraphAudit.from_state(audit.task, audit.q, state).edge_proba(audit.task.edges, "genuine")
        assert ((found >= 0) & (found <= 1)).all()
        assert np.ptp(found) > 0.5
        order = np.argsort(audit.edge_proba(audit.task.edges), kind="stable")
        assert (np.diff(found[order]) >= 0).all()

    def test_of_a_release_that_stored_edges_without_their_labels(self, audit):
        (i, j), state = audit.task.edges, audit.state()
        bases = np.linspace(-2, 2, len(i))
        old = {**{name: values for name, values in state.items() if name != "odds"}, "edges": bases}
        found = GraphAudit.from_state(audit.task, audit.q, old).edge_proba(audit.task.edges)
        expected = np.einsum("ek,ekl,el->e", audit.q[i], expit(bases[:, None, None] + state["table"]), audit.q[j])
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    @pytest.mark.parametrize("name", ["left", "odds"])
    def test_of_another_graph(self, audit, name):
        state = audit.state()
        with pytest.raises(DataError, match="should have shape"):
            GraphAudit.from_state(audit.task, audit.q, {**state, name: state[name][:-1]})
        with pytest.raises(DataError, match="should have shape"):
            GraphAudit.from_state(audit.task, audit.q, {key: value for key, value in state.items() if key != name})

    def test_of_a_graph_without_edges(self, edgeless, beliefs):
        state = {"left": np.zeros((60, 2)), "right": np.zeros((60, 2)), "table": np.zeros((3, 3)), "odds": np.zeros(0)}
        with pytest.raises(InputError, match="no edges"):
            GraphAudit.from_state(edgeless, beliefs(edgeless), state)

    @pytest.mark.parametrize(
        ("name", "change", "words"),
        [
            ("odds", lambda odds: odds + np.inf, "odds holds values that are not finite"),
            ("left", lambda left: left[0], "left should have shape"),
            ("genuine", lambda genuine: genuine[0], "genuine should have shape"),
            ("genuine", lambda genuine: genuine[:, :0], "genuine should have shape"),
        ],
    )
    def test_damaged(self, audit, name, change, words):
        state = audit.state()
        with pytest.raises(DataError, match=words):
            GraphAudit.from_state(audit.task, audit.q, {**state, name: change(state[name])})
