from __future__ import annotations

import inspect
import logging
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import rich.progress
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import get_tags

from g3nn.base.errors import DataError, G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, Nodes, load_model
from g3nn.estimator.fitting import EFFORTS
from g3nn.training.stack import HISTORY_NAMES


def test_init_stores_and_nothing_else():
    signature = inspect.signature(G3NNClassifier.__init__).parameters
    given = {name: object() for name in signature if name != "self"}
    classifier = G3NNClassifier(**given)
    assert vars(classifier) == given
    assert classifier.get_params(deep=False) == given


def test_scikit_learn_conventions(quick):
    classifier = quick(hidden=4)
    assert clone(classifier).get_params() == classifier.get_params()
    assert classifier.set_params(hidden=5).hidden == 5
    assert is_classifier(classifier)
    assert get_tags(classifier).input_tags.sparse
    assert get_tags(classifier).input_tags.allow_nan
    assert not get_tags(quick(missing="error")).input_tags.allow_nan

    assert "sbm-gcn" in repr(classifier)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.predict(),
        lambda one: one.predict_proba(),
        lambda one: one.predict_entropy(),
        lambda one: one.predict_set(),
        lambda one: one.evaluate([0], [0]),
        lambda one: one.save("nowhere"),
        lambda one: one.edge_proba([[0], [1]]),
        lambda one: one.audit(),
        lambda one: one.sample_graph(),
    ],
)
def test_an_unfitted_classifier_says_so(ask):
    with pytest.raises(NotFittedError):
        ask(G3NNClassifier())


def test_fitting_leaves_the_parameters_alone_and_returns_itself(graph, quick):
    classifier = quick(epochs=3)
    before = classifier.get_params()
    assert classifier.fit(graph.X, graph.y, graph.edges, val=graph.val) is classifier
    assert classifier.get_params() == before


def test_what_a_fit_leaves_behind(fitted, graph):
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.n_features_in_ == 6
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.model_ == "sbm-gcn"
    assert [entry.chosen for entry in fitted.panel_] == [True]
    assert fitted.task_.num_nodes == 150
    assert fitted.val_nodes_.tolist() == graph.val.tolist()
    assert fitted.n_validation_ == 33
    assert 1 <= fitted.n_iter_ <= 40
    assert fitted.history_.shape == (fitted.n_iter_, len(HISTORY_NAMES), 2)
    assert fitted.isolated_answer_ in ("prior", "posterior", "both", "similar")
    assert fitted.temperature_ > 0


def test_labels_of_other_nodes_are_never_seen(fitted, graph):
    assert (fitted.task_.labels[graph.y < 0] == -1).all()


@pytest.mark.slow
def test_the_same_state_gives_the_same_answers(fitted, graph, quick):
    again = quick().fit(graph.X, graph.y, graph.edges, val=graph.val)
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    other = quick(random_state=1).fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert not np.allclose(other.predict_proba(), fitted.predict_proba())


def test_answers_agree_with_each_other(fitted, graph):
    p = fitted.predict_proba()
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(fitted.predict(), fitted.classes_[p.argmax(1)])
    np.testing.assert_allclose(fitted.predict_entropy(), -(p * np.log(p)).sum(1))
    sets = fitted.predict_set(0.2)
    assert sets[np.arange(150), p.argmax(1)].all()
    assert (fitted.predict_set(0.01) >= sets).all()
    assert fitted.score(Nodes(graph.X, graph.edges), graph.truth) == (fitted.predict() == graph.truth).mean()


@pytest.mark.parametrize("alpha", [0, 1, -1, 1.5, "low"])
def test_alpha_is_a_share(fitted, alpha):
    with pytest.raises(InputError, match="alpha"):
        fitted.predict_set(alpha)


def test_evaluate(fitted, graph):
    rest = np.flatnonzero(graph.y < 0)
    found = fitted.evaluate(rest, graph.truth[rest])
    measures = ("accuracy", "balanced_accuracy", "f1_macro", "nll", "ece", "brier")
    assert found.keys() == {*measures, "classes", "rare", "nodes"}
    assert found["accuracy"] == (fitted.predict()[rest] == graph.truth[rest]).mean()
    assert found == fitted.evaluate(graph.y < 0, graph.truth[rest])
    turned = rest[::-1]
    assert fitted.evaluate(turned, graph.truth[turned])["accuracy"] == found["accuracy"]


@pytest.mark.parametrize(
    ("nodes", "y", "said"),
    [
        ([0, 1], [0], "1 labels"),
        ([0], [7], "the classes 0, 1, 2"),
        ([150], [0], "nodes: got"),
        ([], [], "at least one node"),
        ([0.5], [0], "nodes: got"),
    ],
)
def test_what_cannot_be_evaluated(fitted, nodes, y, said):
    with pytest.raises(InputError, match=said):
        fitted.evaluate(nodes, y)


def test_however_the_graph_comes_the_answers_are_the_same(fitted, graph, quick):
    """Which forms can be read is tested where they are read."""
    frame = pa.table(dict(zip("abcdef", graph.X.T, strict=True)))
    adjacency = sp.csr_array((np.ones(graph.edges.shape[1]), tuple(graph.edges)), shape=(150, 150))
    again = quick().fit(frame, graph.y, adjacency, val=graph.val)
    np.testing.assert_allclose(again.predict_proba(), fitted.predict_proba(), atol=1e-6)


def test_classes_keep_their_names(graph, quick):
    names = np.array(["red", "green", "blue"])
    y = [None if code < 0 else str(names[code]) for code in graph.y]
    classifier = quick().fit(graph.X, y, graph.edges, val=graph.val)
    assert classifier.classes_.tolist() == ["blue", "green", "red"]
    rest = np.flatnonzero(graph.y < 0)
    assert set(classifier.predict()) <= set(names)
    assert classifier.evaluate(rest, names[graph.truth[rest]])["accuracy"] > 0.6


@pytest.mark.slow
def test_folds_of_nodes(graph, quick):
    known = np.flatnonzero(graph.y >= 0)
    nodes, y = Nodes(graph.X, graph.edges)[known], graph.y[known]
    search = GridSearchCV(quick(epochs=20, ensemble=1), {"hidden": [4, 8], "model": ["sbm-gcn", "mlp"]}, cv=2)
    search.fit(nodes, y)
    assert search.best_params_["model"] == "sbm-gcn"
    assert search.predict(Nodes(graph.X, graph.edges)[graph.y < 0]).shape == ((graph.y < 0).sum(),)
    scores = cross_val_score(quick(epochs=20, ensemble=1), nodes, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.5
    assert cross_val_predict(quick(epochs=5, ensemble=1), nodes, y, cv=2, method="predict_proba").shape == (57, 3)


def test_a_search_over_masks_of_nodes(graph, quick):
    """The split of a benchmark as the only fold; whatever its masks leave out has no label."""
    known = np.flatnonzero(graph.y >= 0)
    held = np.isin(known, graph.val)
    nodes, y = Nodes(graph.X, graph.edges)[known], graph.y[known]
    fold = [(np.flatnonzero(~held), np.flatnonzero(held))]
    search = GridSearchCV(quick(epochs=20, ensemble=1), {"model": ["mlp", "gcn"]}, cv=fold).fit(nodes, y)
    by_hand = quick(epochs=20, ensemble=1, model="gcn").fit(nodes[~held], y[~held])
    expected = (by_hand.predict(nodes[held]) == y[held]).mean()
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(expected)
    assert not np.isin(graph.val, np.concatenate([by_hand.task_.train, by_hand.task_.val])).any()


@pytest.mark.slow
def test_few_validation_nodes_that_choose_and_calibrate_are_warned_of(graph):
    panel = G3NNClassifier(epochs=2, ensemble=1, device="cpu")
    with pytest.warns(G3NNWarning, match="12 validation nodes"):
        panel.fit(graph.X, graph.y, graph.edges)
    assert panel.n_validation_ == 12
    assert len(panel.panel_) > 5


def test_verbose_says_what_is_going_on_in_the_log(graph, quick, caplog):
    with caplog.at_level(logging.INFO, "g3nn"):
        quick(epochs=2, verbose=True).fit(graph.X, graph.y, graph.edges)
        quick(epochs=2).fit(graph.X, graph.y, graph.edges)
    first, second = (record.getMessage() for record in caplog.records if record.name == "g3nn")
    assert "45 training nodes and 12 validation nodes" in first
    assert "chose sbm-gcn" in second


@pytest.mark.slow
def test_verbose_shows_one_bar_on_a_terminal(graph, monkeypatch):
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(rich.progress.Progress, "update", lambda bar, job, **fields: calls.append(fields))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    few = replace(EFFORTS["default"], views=1, models=3, leading=2, varied=2, kept=2)
    monkeypatch.setitem(EFFORTS, "default", few)
    classifier = G3NNClassifier(epochs=2, ensemble=2, refit=True, verbose=True, device="cpu")
    with pytest.warns(G3NNWarning, match="24 validation nodes"):
        classifier.fit(graph.X, graph.y, graph.edges)
    words = [call["description"] for call in calls if call["description"]]
    first = ["trying simple models", "trying models", "doubting edges", "trying other sizes"]
    stages = [*first, "training the best models", "training on all labels"]
    assert list(dict.fromkeys(words)) == stages
    done = [call["completed"] for call in calls]
    assert done == sorted(done)
    assert 0.8 < done[-1] <= 1
    calls.clear()
    classifier.audit()
    assert calls[0]["description"] == "judging edges"
    assert calls[-1]["completed"] == 1


@pytest.mark.filterwarnings("ignore:33 validation nodes hardly tell")
def test_a_budget_that_is_too_short_trains_one_model_and_says_so(graph):
    classifier = G3NNClassifier(budget=1e-6, epochs=5, ensemble=1, device="cpu")
    with pytest.warns(G3NNWarning, match="budget was too short to try several networks: only hops was"):
        classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert [entry.model for entry in classifier.panel_] == ["base-rate", "hops"]


@pytest.mark.slow
def test_what_the_caller_sets_goes_before_the_panel(graph):
    classifier = G3NNClassifier(effort="quick", hidden=7, epochs=2, ensemble=1, device="cpu")
    classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert {entry.options["hidden"] for entry in classifier.panel_ if not entry.simple} == {7}


def test_a_graph_without_edges_is_answered_from_features(graph):
    with pytest.warns(G3NNWarning, match="no edges"):
        classifier = G3NNClassifier(epochs=30, ensemble=1, device="cpu").fit(graph.X, graph.y, val=graph.val)
    assert "mlp" in classifier.model_
    rest = np.flatnonzero(graph.y < 0)
    assert classifier.evaluate(rest, graph.truth[rest])["accuracy"] > 0.5
    np.testing.assert_allclose(classifier.predict_proba(graph.X[rest]), classifier.predict_proba()[rest], atol=1e-6)
    with pytest.raises(InputError, match="at least 3 edges to audit"):
        classifier.audit_edges()


def test_directed_graphs(graph, quick):
    classifier = quick(directed=True, epochs=3).fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert classifier.task_.directed
    assert classifier.predict_proba(graph.X[:1], [[150], [3]]).shape == (1, 3)


def test_a_second_fit_forgets_the_first(graph, quick):
    classifier = quick(epochs=2)
    classifier.fit(pa.table(dict(zip("abcdef", graph.X.T, strict=True))), graph.y, graph.edges, val=graph.val)
    classifier.notes_["kept"] = 1
    classifier.fit(graph.X[:, :4], graph.y, graph.edges, val=graph.val)
    assert not hasattr(classifier, "feature_names_in_")
    assert (classifier.n_features_in_, classifier.notes_) == (4, {})


@pytest.mark.slow
def test_edges_are_judged_with_the_labels_that_were_learned(graph, quick, tmp_path):
    classifier = quick().fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert classifier.graph_audit_ is None
    classifier.save(tmp_path / "before")
    p = classifier.edge_proba(graph.edges)
    assert p.shape == (graph.edges.shape[1],)
    assert (classifier.edge_proba(graph.edges, "observed") < p).all()
    within = graph.truth[graph.edges[0]] == graph.truth[graph.edges[1]]
    assert p[within].mean() > p[~within].mean()
    tables = classifier.audit(missing=7)
    assert (len(tables.edges), len(tables.missing)) == (len(p), 7)
    np.testing.assert_allclose(tables.edges["probability"], np.sort(p))
    drawn = classifier.sample_graph(3)
    known = np.concatenate([classifier.task_.train, classifier.task_.val])
    np.testing.assert_array_equal(drawn.labels[known], graph.truth[known])
    assert 0.5 < drawn.edges.shape[1] / len(p) < 2
    classifier.save(tmp_path / "after")
    before, after = (load_model(tmp_path / name) for name in ("before", "after"))
    assert before.graph_audit_ is None
    assert after.graph_audit_ is not None
    np.testing.assert_array_equal(after.edge_proba(graph.edges), p)


def test_audits_of_another_graph_are_refused(graph, quick, fitted):
    state = {name: np.zeros((1, 1, 1)) for name in ("left", "right", "table")}
    with pytest.raises(DataError, match="does not belong"):
        quick().restore(fitted.fitted_, audit={**state, "fold": np.zeros(1)})
