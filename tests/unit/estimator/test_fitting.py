from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.errors import InputError
from g3nn.estimator import G3NNClassifier
from g3nn.estimator.fitting import build_tasks
from g3nn.estimator.request import read_request


def request(graph, **parameters):
    return read_request(G3NNClassifier(**parameters).get_params(), graph.X, graph.y, graph.edges, graph.val)


def test_one_task_unless_the_fit_is_inductive(graph, assert_same_task):
    tasks = build_tasks(request(graph), inductive=False, missing="error")
    assert tasks.whole is tasks.training
    assert tasks.means is None
    np.testing.assert_array_equal(tasks.whole.val, graph.val)


def test_inductive_training_sees_labelled_nodes_alone(graph):
    tasks = build_tasks(request(graph), inductive=True, missing="error")
    known = np.flatnonzero(graph.y >= 0)
    assert tasks.training.num_nodes == known.size
    np.testing.assert_array_equal(tasks.training.features, graph.X[known])
    np.testing.assert_array_equal(known[tasks.training.val], graph.val)
    inside = np.isin(graph.edges, known).all(axis=0)
    assert tasks.training.num_edges == inside.sum()
    assert np.isin(known[tasks.training.edges], graph.edges[:, inside]).all()
    assert tasks.whole.num_nodes == 150


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_inductive_filling_never_looks_at_nodes_left_out(graph, kind):
    X = graph.X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    other = X.copy()
    other[graph.y < 0] = 5.0
    seen = []
    for features in (X, other):
        given = request(graph._replace(X=kind(features)), missing="impute")
        tasks = build_tasks(given, inductive=True, missing="impute")
        matrix = tasks.training.features
        seen.append(matrix.toarray() if sp.issparse(matrix) else matrix)
        whole = tasks.whole.features
        whole = whole.toarray() if sp.issparse(whole) else whole
        assert np.isfinite(whole).all()
        np.testing.assert_array_equal(whole[graph.y >= 0], seen[-1])
    np.testing.assert_array_equal(*seen)


def test_a_column_without_values_cannot_be_filled(graph):
    X = graph.X.copy()
    X[:, 2] = np.nan
    with pytest.raises(InputError, match="no value at all in column 2"):
        build_tasks(request(graph._replace(X=X), missing="impute"), inductive=False, missing="impute")


def test_an_inductive_fit_is_a_fit_without_the_other_nodes(graph, quick):
    known, rest = np.flatnonzero(graph.y >= 0), np.flatnonzero(graph.y < 0)
    number = np.empty(150, dtype=int)
    number[np.concatenate([known, rest])] = np.arange(150)
    inside = np.isin(graph.edges, known).all(axis=0)
    inductive = quick(inductive=True).fit(graph.X, graph.y, graph.edges, val=graph.val)
    without = quick().fit(graph.X[known], graph.y[known], number[graph.edges[:, inside]], val=number[graph.val])
    assert inductive.temperature_ == pytest.approx(without.temperature_)
    later = without.predict_proba(graph.X[rest], number[graph.edges[:, ~inside]])
    np.testing.assert_allclose(inductive.predict_proba()[rest], later, atol=1e-5)


def test_a_refit_learns_from_all_labels_and_keeps_the_calibration(fitted, graph, quick):
    again = quick(refit=True).fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert again.temperature_ == fitted.temperature_
    assert again.n_iter_ <= fitted.n_iter_
    np.testing.assert_array_equal(again.fitted_.calibrations.linked.scores, fitted.fitted_.calibrations.linked.scores)
    assert not np.allclose(again.predict_proba(), fitted.predict_proba())
    nll = [one.evaluate(graph.val, graph.truth[graph.val])["nll"] for one in (again, fitted)]
    assert nll[0] < nll[1], "the labels it validated on were learned now"


def test_label_propagation_is_refitted_with_the_validation_labels(graph, quick):
    plain, again = (
        quick(model="label-propagation", refit=refit).fit(graph.X, graph.y, graph.edges, val=graph.val)
        for refit in (False, True)
    )
    assert not np.allclose(plain.predict_proba(), again.predict_proba())


def test_an_ensemble_is_the_mean_of_its_replicas(graph, quick):
    first, both = (quick(ensemble=R).fit(graph.X, graph.y, graph.edges, val=graph.val).fitted_ for R in (1, 2))
    assert first.seeds == both.seeds[:1]
    state = both.model.state_dict()["posterior.weight1"]
    np.testing.assert_allclose(state[:1].numpy(), first.model.state_dict()["posterior.weight1"].numpy(), atol=1e-5)
    assert replace(first, epochs=1).task is first.task


def test_cold_nodes_have_their_own_calibration(lonely, quick):
    classifier = quick().fit(lonely.X, lonely.y, lonely.edges, val=lonely.val)
    answers = classifier.fitted_.known.answers
    assert not answers.has_edges[:10].any()
    offsets = classifier.fitted_.calibrations.alone.scaling.offsets
    shift = np.zeros(3) if offsets is None else offsets
    p = np.exp(answers.log_prob[:10] / classifier.isolated_temperature_ + shift)
    np.testing.assert_allclose(classifier.predict_proba()[:10], p / p.sum(1, keepdims=True))
