"""Fits with so few labels that some classes, or all, have none to validate on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from g3nn.base.errors import DeviceMemoryError, G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, G3NNRegressor, load_model
from g3nn.estimator.search import Search

MIXED = ("dcsbm-grand", "dcsbm-grand", "blsm-gcn", "grand", "grand", "gcn", "sage")
"""The networks: joint models, those in them, and another."""


def labels(graph, *counts):
    """So many labels of each class."""
    y = np.full(len(graph.truth), -1)
    for k, count in enumerate(counts):
        y[np.flatnonzero(graph.truth == k)[:count]] = k
    return y


def test_a_single_label_stays_for_training(graph, quick):
    fitted = quick(epochs=3).fit(graph.X, labels(graph, 1, 5, 5), graph.edges)
    assert set(graph.truth[fitted.val_nodes_]) == {1, 2}
    assert set(graph.truth[fitted.task_.train]) == {0, 1, 2}


def test_one_label_per_class(graph, quick, tmp_path):
    with pytest.warns(G3NNWarning, match="validate on: sbm-appnp, which suits few labels, was trained for 40 epochs"):
        fitted = quick(model="auto", effort="quick").fit(graph.X, labels(graph, 1, 1, 1), graph.edges)
    assert (fitted.model_, fitted.n_iter_, fitted.temperature_, fitted.n_validation_) == ("sbm-appnp", 40, 1.0, 0)
    assert fitted.predict_set().all()
    # Nothing was validated: as probable as not, nothing was learned.
    assert 0.5 < fitted.predict_proba().max() <= 0.5 + 0.5 / 3 + 1e-6
    assert fitted.score(None, graph.truth) > 0.5
    fitted.save(tmp_path / "model")
    np.testing.assert_allclose(load_model(tmp_path / "model").predict_proba(), fitted.predict_proba(), atol=1e-6)


def test_no_validation_trains_on_every_label(graph, quick):
    with pytest.warns(G3NNWarning, match="validate on: sbm-gcn was trained for 3 epochs"):
        fitted = quick(validation=0, epochs=3, refit=True).fit(graph.X, graph.truth, graph.edges)
    assert len(fitted.task_.train) == 150
    numbers = G3NNRegressor("gcn", validation=0, epochs=3, ensemble=1, device="cpu")
    with pytest.warns(G3NNWarning, match="validate on: gcn was trained"):
        numbers.fit(graph.X, graph.X[:, 0], graph.edges)
    assert np.isinf(numbers.predict_interval()).all()


def test_the_model_asked_for_is_never_exchanged(graph, quick, monkeypatch):
    monkeypatch.setattr(Search, "panel", None)
    monkeypatch.setattr(Search, "alone", None)
    with pytest.warns(G3NNWarning, match="validate on: mlp was trained"):
        assert quick(model="mlp", validation=0.0, epochs=1).fit(graph.X, graph.y, graph.edges).model_ == "mlp"


@pytest.mark.parametrize("share", [False, -0.1, 1, "0"])
def test_other_shares_are_refused(graph, quick, share):
    with pytest.raises(InputError, match="validation"):
        quick(validation=share).fit(graph.X, graph.y, graph.edges)


def few(**changes):
    return G3NNClassifier(**{"epochs": 12, "ensemble": 3, "device": "cpu", "random_state": 1, **changes})


@pytest.fixture(scope="module")
def mixed(graph):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        return few().fit(graph.X, labels(graph, 3, 3, 3), graph.edges)


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
class TestNoSearch:
    """With three labels of a class every model of a list is trained alike, and mixed."""

    def test_every_network_is_trained_as_long_on_every_fold(self, mixed):
        networks = [one for one in mixed.panel_ if not one.simple]
        assert sorted(one.model for one in networks) == sorted(MIXED)
        assert {(one.epochs, one.replicas) for one in networks} == {(12, 3)}

    def test_without_joint_models_their_networks_take_their_place(self, graph):
        fitted = few(objective="none", epochs=3).fit(graph.X, labels(graph, 3, 3, 3), graph.edges)
        networks = [one.model for one in fitted.panel_ if not one.simple]
        assert sorted(networks) == sorted(name for name in MIXED if "-" not in name)

    def test_members_learn_from_all_labels_in_the_end(self, mixed):
        assert len(mixed.task_.val) == 0
        assert len(mixed.fitted_.seen) == 9
        networks = [one for one in mixed.fitted_.answerer.networks if one.name in MIXED]
        assert len(networks) > 1
        assert all(one.held_out is None and one.epochs == 12 and len(one.seeds) == 3 for one in networks)
        assert sum(one.weight for one in mixed.fitted_.answerer.members) == pytest.approx(1)

    def test_probabilities_are_calibrated_by_labels_that_were_left_out(self, mixed, graph):
        assert len(mixed.fitted_.answerer.calibrations["linked"].scores) == 9
        assert mixed.score(None, graph.truth) > 0.6

    def test_it_is_read_as_it_was_saved(self, mixed, tmp_path):
        mixed.save(tmp_path / "model")
        np.testing.assert_allclose(load_model(tmp_path / "model").predict_proba(), mixed.predict_proba(), atol=1e-6)

    def test_the_page_says_that_its_figures_are_estimates(self, mixed, tmp_path):
        mixed.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert loaded.fitted_.few
        loaded.report(tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "Few labels: these figures are estimates" in text
        assert f"{mixed.fitted_.val_score:.3f}" in text
        assert "too few labels to hold any back" not in text

    def test_word_counts_have_rows_of_length_one(self, graph):
        words = (np.random.default_rng(0).random((len(graph.truth), 80)) < 0.1) * 3.0
        fitted = few(epochs=2).fit(words, labels(graph, 3, 3, 3), graph.edges)
        assert {one.view for one in fitted.panel_ if not one.simple} == {"unit"}
        network = next(one for one in fitted.fitted_.answerer.networks if one.name in MIXED)
        seen = network.view.apply(fitted.task_.features)
        lengths = np.sqrt(np.square(seen[words.any(1)]).sum(1))
        np.testing.assert_allclose(np.asarray(lengths).ravel(), 1, rtol=1e-5)

    def test_enough_labels_are_searched_with(self, graph, monkeypatch):
        class SearchedError(Exception):
            pass

        def panel(search, *_):
            assert not search.fixed
            raise SearchedError

        monkeypatch.setattr(Search, "panel", panel)
        for changes, counts in (({}, (6, 6, 6)), ({"budget": 60.0}, (3, 3, 3)), ({"denoise": True}, (3, 3, 3))):
            with pytest.raises(SearchedError):
                few(**changes).fit(graph.X, labels(graph, *counts), graph.edges)

    def test_one_label_per_class_takes_all_of_them_alike(self, graph):
        with pytest.warns(G3NNWarning, match="a mixture of dcsbm-grand, .*, which suits few labels, was"):
            fitted = few(epochs=3).fit(graph.X, labels(graph, 1, 1, 1), graph.edges)
        members = fitted.fitted_.answerer.members
        assert sorted(one.name for one in members) == sorted(MIXED)
        assert [one.weight for one in members] == pytest.approx([1 / len(members)] * len(members))

    def test_classes_with_a_single_label_are_predicted_too(self, graph):
        """No fold has a label of them, so left-out labels alone would say that they never occur."""
        fitted = few(epochs=60).fit(graph.X, labels(graph, 3, 1, 1), graph.edges)
        assert fitted.score(None, graph.truth) > 0.6

    def test_labels_are_judged_where_that_is_asked_for(self, graph):
        fitted = few(epochs=3, label_noise=True).fit(graph.X, labels(graph, 3, 3, 3), graph.edges)
        assert len(fitted.audit().labels) == 9

    def test_networks_on_paths_are_among_them_where_edges_have_types(self, graph):
        types = np.array(["a", "b"])[np.arange(graph.edges.shape[1]) % 2]
        fitted = few(epochs=3).fit(graph.X, labels(graph, 3, 3, 3), graph.edges, edge_types=types)
        assert {one.model for one in fitted.panel_ if "paths" in one.view} >= {"mlp", "grand"}

    def test_it_goes_on_with_a_search(self, graph):
        fitted = few(epochs=3).fit(graph.X, labels(graph, 3, 3, 3), graph.edges)
        before = len(fitted.panel_)
        assert len(fitted.continue_fit(effort="quick").panel_) > before

    def test_numbers_and_few_edges_are_searched_as_ever(self, graph):
        """Columns of numbers are no classes, and joint models have nothing to learn from a handful of edges."""
        for y, edges, made in (
            (np.where(labels(graph, 3, 3, 3) < 0, np.nan, graph.X[:, 0]), graph.edges, G3NNRegressor),
            (labels(graph, 3, 3, 3), graph.edges[:, :15], G3NNClassifier),
        ):
            fitted = made(effort="quick", epochs=3, ensemble=2, device="cpu", random_state=0).fit(graph.X, y, edges)
            assert not fitted.fitted_.few

    def test_what_fits_into_memory_answers(self, graph, monkeypatch):
        sized = Search.sized

        def some(search, one):
            if one.name != "sage":
                raise DeviceMemoryError(one.name, 1, 0)
            return sized(search, one)

        monkeypatch.setattr(Search, "sized", some)
        assert few(epochs=3).fit(graph.X, labels(graph, 1, 1, 1), graph.edges).model_ == "sage"
