"""Edges that are doubted: who decides, what becomes of them, and what no label of a validation node may touch."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import quick_judging
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, G3NNRegressor, load_model
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.fitting import _judging
from g3nn.estimator.members import Propagation
from g3nn.estimator.search import Search
from g3nn.model.generative import ModelSpec
from g3nn.queries.edge_trust import SHARES, EdgeTrust, edge_trust

pytestmark = [
    pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning"),
    pytest.mark.usefixtures("few_models"),
]


@pytest.fixture(scope="class")
def _short_judging():
    """Edges are judged by models of a few epochs, where it is not the judgement that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in quick_judging.EDGES:
            patch.setattr(*limit)
        yield


@pytest.fixture(scope="module")
def noisy():
    """Somebody put edges between classes into a graph that joins like with like: two for five."""
    clean = g3nn.synthetic(nodes=300, classes=3, degree=8, features=12, signal=2.0, val=60, seed=5)
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(300, size=(2, 6000)), axis=0)
    pairs = pairs[:, clean.labels[pairs[0]] != clean.labels[pairs[1]]][:, : 2 * clean.num_edges // 5]
    return g3nn.NodeTask.build(
        clean.features, np.hstack([clean.edges, pairs]), clean.labels, clean.train, clean.val, clean.test
    )


@pytest.fixture(scope="module")
def by_chance():
    """Features tell the classes; edges join any two nodes."""
    clean = g3nn.synthetic(nodes=300, classes=3, degree=6, features=12, signal=1.5, labels_per_class=25, val=60, seed=5)
    pairs = np.stack(np.triu_indices(300, 1))
    return clean.with_edges(pairs[:, np.random.default_rng(0).choice(pairs.shape[1], 900, replace=False)])


def known(task):
    y = np.full(task.num_nodes, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return y


def fitted(task, **changes):
    how = {"effort": "quick", "epochs": 12, "ensemble": 1, "device": "cpu", "label_noise": False, **changes}
    return G3NNClassifier(**how).fit(task.features, known(task), task.edges, val=task.val)


@pytest.fixture(scope="module")
def doubting(noisy):
    """Not to be changed."""
    return fitted(noisy, denoise=True)


class TestTrust:
    @pytest.mark.slow
    def test_edges_inside_classes_are_believed_more(self, noisy):
        trusts = edge_trust(noisy, SHARES, featureless=False, seed=0, device="cpu")
        inside = noisy.labels[noisy.edges[0]] == noisy.labels[noisy.edges[1]]
        for share in SHARES:
            found = trusts[share].probability
            assert found.shape == (noisy.num_edges,)
            assert roc_auc_score(inside, found) > 0.8
            assert found[inside].mean() - found[~inside].mean() > 0.5 * min(share, 1 - share)
            assert ((found > 0) & (found <= 1)).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("featureless", [False, True])
    def test_labels_that_are_not_for_training_have_no_say(self, noisy, featureless):
        other = replace(noisy, labels=noisy.labels.copy())
        rest = np.setdiff1d(np.arange(noisy.num_nodes), noisy.train)
        other.labels[rest] = (other.labels[rest] + 1) % 3
        first, second = (edge_trust(task, (0.5,), featureless, 0, "cpu")[0.5] for task in (noisy, other))
        np.testing.assert_array_equal(first.probability, second.probability)

    @pytest.mark.slow
    @pytest.mark.parametrize("featureless", [False, True])
    def test_no_edge_is_weighed_by_a_label_of_its_own_ends(self, noisy, featureless):
        """Networks train on these labels, and hear the edges."""
        other = replace(noisy, labels=noisy.labels.copy())
        node = noisy.train[0]
        other.labels[node] = (other.labels[node] + 1) % 3
        first, second = (edge_trust(task, (0.5,), featureless, 0, "cpu")[0.5].probability for task in (noisy, other))
        own = (noisy.edges == node).any(0)
        np.testing.assert_array_equal(first[own], second[own])
        assert (first != second).any()

    def test_a_single_label_teaches_only_others(self, noisy):
        found = edge_trust(replace(noisy, train=noisy.train[:1]), (0.5,), featureless=False, seed=0, device="cpu")[0.5]
        assert np.isfinite(found.probability).all()

    def test_edges_that_were_not_judged_are_believed(self):
        task = g3nn.NodeTask.build(np.eye(4), np.array([[0, 1, 2], [1, 2, 3]]), [0, 1, 0, 1], [0, 1], None)
        trust = EdgeTrust(0.5, np.array([[0, 1], [1, 2]]), np.array([0.25, 0.75]))
        np.testing.assert_allclose(trust.weigh(task).weights, [0.25, 0.75, 1])
        heavy = trust.weigh(replace(task, weights=np.array([2.0, 2.0, 4.0])))
        np.testing.assert_allclose(heavy.weights, [0.5, 1.5, 4])
        nobody_known = trust.weigh(task, np.array([False, True, False, False]))
        np.testing.assert_allclose(nobody_known.weights, [1, 1, 1])
        moved = trust.within(np.array([0, 2, 3]))
        np.testing.assert_array_equal(moved.edges, [[0, 2], [2, 3]])

    def test_values_are_taken_in_groups(self):
        task = g3nn.synthetic_values(nodes=200, labelled=0.3, val=30, degree=6, seed=1)
        found = edge_trust(task, (0.5,), featureless=False, seed=0, device="cpu")[0.5]
        assert np.isfinite(found.probability).all()


@pytest.mark.usefixtures("_short_judging")
class TestEstimator:
    @pytest.mark.slow
    def test_validation_decides_whether_edges_are_doubted(self, noisy):
        found, plain = fitted(noisy), fitted(noisy, denoise=False)
        assert any("genuine" in entry.view for entry in found.panel_)
        assert not any("genuine" in entry.view for entry in plain.panel_)
        assert found.fitted_.val_loss <= plain.fitted_.val_loss + 0.02
        assert any(member.trust is not None for member in found.fitted_.answerer.members)

    @pytest.mark.slow
    def test_where_it_is_asked_for_every_network_doubts(self, noisy, doubting):
        assert all("genuine" in entry.view for entry in doubting.panel_ if not entry.simple)
        assert any(entry.view.endswith(", 0% genuine") for entry in doubting.panel_)
        one = fitted(noisy, denoise=True, model="gcn")
        assert one.fitted_.answerer.members[0].trust.share in SHARES
        assert fitted(noisy, model="gcn").fitted_.answerer.members[0].trust is None

    @pytest.mark.slow
    @pytest.mark.parametrize("changes", [{}, {"inductive": True}, {"refit": True}])
    def test_what_is_believed_about_edges_is_saved(self, noisy, doubting, tmp_path, changes):
        found = fitted(noisy, denoise=True, model="gcn", **changes) if changes else doubting
        found.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        for left, right in zip(again.fitted_.answerer.members, found.fitted_.answerer.members, strict=True):
            trusts = [None if one.trust is None else one.trust.probability for one in (left, right)]
            np.testing.assert_array_equal(*trusts)
        np.testing.assert_array_equal(again.predict_proba(), found.predict_proba())
        X, edges = noisy.features[:2] + 1, (np.array([300, 301]), np.array([0, 1]))
        np.testing.assert_allclose(again.predict_proba(X, edges), found.predict_proba(X, edges), atol=1e-6)

    @pytest.mark.slow
    def test_without_features_beliefs_are_propagated_too(self, noisy, tmp_path):
        how = {"effort": "quick", "epochs": 5, "ensemble": 1, "device": "cpu", "label_noise": False}
        found = G3NNClassifier(**how).fit(None, known(noisy), noisy.edges, val=noisy.val)
        tried = {entry.view: entry for entry in found.panel_ if entry.model == "propagation"}
        assert set(tried) == {f"given, {share:.0%} genuine" for share in SHARES}
        assert "propagation" in found.model_  # With so few epochs no network is much better.
        assert (found.predict() == noisy.labels)[noisy.test].mean() > 0.6
        found.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(), found.predict_proba())
        plain = G3NNClassifier(**how, denoise=False)
        plain.fit(None, known(noisy), noisy.edges, val=noisy.val)
        assert "propagation" not in {entry.model for entry in plain.panel_}

    def test_no_label_counts_for_its_own_node(self, noisy):
        other = replace(noisy, labels=noisy.labels.copy())
        other.labels[noisy.train[0]] = (noisy.labels[noisy.train[0]] + 1) % 3
        first, second = (
            Propagation(view=None, share=0.8, seed=0).fitted_answers(task).answer for task in (noisy, other)
        )
        own = np.exp(first[noisy.train[0]])
        assert own.max() < 0.999
        assert abs(own - np.exp(second[noisy.train[0]])).max() < 0.2

    def test_without_networks_nobody_holds_labels_back_and_all_folds_validate(self, noisy):
        folds = noisy.train[:4], noisy.train[4:8]
        search = Search(noisy, {}, {}, "cpu", (0,), EFFORTS["quick"], folds=folds)
        task = _judging(search, [Propagation(view=None, share=0.8, seed=0)]).task
        np.testing.assert_array_equal(task.val, noisy.train[:8])
        np.testing.assert_array_equal(np.intersect1d(task.train, task.val), [])

    @pytest.mark.slow
    def test_a_regressor_has_it_too(self):
        task = g3nn.synthetic_values(nodes=200, labelled=0.3, val=30, degree=6, seed=1)
        y = task.labels[:, 0].copy()
        y[task.test] = np.nan
        how = {"effort": "quick", "epochs": 5, "ensemble": 1, "device": "cpu", "denoise": True}
        how["label_noise"] = False
        found = G3NNRegressor(**how).fit(task.features, y, task.edges, val=task.val)
        assert np.isfinite(found.predict()).all()
        assert any("genuine" in entry.view for entry in found.panel_)

    @pytest.mark.slow
    @pytest.mark.parametrize("how", [{"model": "gcn"}, {"model": "sbm-gcn", "refit": True}])
    def test_where_edges_join_nodes_by_chance_features_alone_answer(self, by_chance, tmp_path, how):
        with pytest.warns(G3NNWarning) as noted:
            found = fitted(by_chance, denoise=True, **how)
        assert len([one for one in noted if "prefers a model without edges" in str(one.message)]) == 1
        assert not [one for one in noted if "no edges" in str(one.message)]
        assert {entry.view.split(", ")[1] for entry in found.panel_ if entry.weight} == {"0% genuine"}
        others = replace(found.task_, train=found.fitted_.seen).with_edges(found.task_.edges[:, ::3])
        np.testing.assert_allclose(found.fitted_.answerer(others).answer, found.fitted_.answers.answer, atol=1e-5)
        assert found.to_frame()["has_edges"].mean() > 0.9
        found.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        X = by_chance.features[:2] + 1
        alone, linked = again.predict_proba(X), again.predict_proba(X, (np.array([300, 301]), np.array([0, 1])))
        np.testing.assert_allclose(alone, linked, atol=1e-6)
        assert len(again.audit_edges(1).edges) == by_chance.num_edges

    @pytest.mark.parametrize(
        ("pairs", "why"),
        [
            (np.stack([np.arange(15), np.arange(15) + 1]), "fewer than 20 edges"),
            (np.stack(np.triu_indices(40, 1)), "an edge between more than 50% of all pairs"),
        ],
    )
    def test_where_nothing_tells_edges_apart_all_are_believed(self, pairs, why):
        X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
        how = {"model": "gcn", "epochs": 3, "ensemble": 1, "device": "cpu"}
        for denoise in (True, np.True_):
            with pytest.warns(G3NNWarning, match=f"denoise: the graph that is trained on has {why}"):
                found = G3NNClassifier(**how, denoise=denoise).fit(X, y, tuple(pairs))
            assert found.fitted_.answerer.members[0].trust is None
        with warnings.catch_warnings(record=True) as noted:
            how = {"effort": "quick", "epochs": 2, "ensemble": 1, "device": "cpu", "label_noise": False}
            G3NNClassifier(**how).fit(X, y, tuple(pairs))
        assert not [one for one in noted if "denoise" in str(one.message)]

    @pytest.mark.slow
    def test_models_that_look_at_no_edge_are_refused(self, noisy):
        for model in ("mlp", "MLP", ModelSpec(posterior="mlp")):
            for denoise in (True, np.True_):
                with pytest.raises(
                    InputError, match=r"denoise: got True with model 'mlp'; expected a model that looks"
                ):
                    fitted(noisy, denoise=denoise, model=model)
        assert fitted(noisy, denoise=True, model="sbm-mlp", epochs=2).fitted_.answerer.members[0].trust is not None

    def test_what_cannot_be_done_is_said_together(self, noisy):
        with pytest.raises(InputError, match="denoise: got 'perhaps'; expected \"auto\", true or false"):
            fitted(noisy, denoise="perhaps")
        with pytest.raises(InputError, match=r"(?s)effort.*denoise: got True with model 'mlp'"):
            fitted(noisy, denoise=True, model="mlp", effort="much")
