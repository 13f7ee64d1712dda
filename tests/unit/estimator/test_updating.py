"""Labels that come in one after the other, and questions about the next ones."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest
import torch

from g3nn.base.errors import InputError
from g3nn.estimator import G3NNClassifier, G3NNRegressor, load_model
from g3nn.training.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")


@pytest.fixture
def fresh(graph, quick):
    return quick(epochs=20).fit(graph.X, graph.y, graph.edges)


def unlabelled(graph):
    return np.flatnonzero(graph.y < 0)


def test_an_update_takes_in_new_and_corrected_labels(graph, fresh):
    new, old = unlabelled(graph)[:6], np.flatnonzero(graph.y >= 0)[:1]
    wrong = (graph.truth[old] + 1) % 3
    before = fresh.predict_proba()
    assert fresh.update(np.concatenate([new, old]), np.concatenate([graph.truth[new], wrong])) is fresh
    assert (fresh.task_.labels[new] == graph.truth[new]).all()
    assert (fresh.task_.labels[old] == wrong).all()
    assert np.isin(np.concatenate([new, old]), fresh.task_.train).all()
    assert fresh.n_validation_ == 0, "nodes that were trained on must not pass for unseen ones"
    assert (fresh.predict_proba()[new, graph.truth[new]] - before[new, graph.truth[new]]).mean() > 0
    # The more of the labels are new, the longer it trains.
    first = 15 + round(15 * 4 * 6 / len(fresh.task_.train))
    assert fresh.n_iter_ == 20 + first
    assert fresh.update(old, graph.truth[old]).n_iter_ == 20 + first + 15


def test_models_go_on_with_the_parameters_of_their_fit(graph, quick):
    node, answers = unlabelled(graph)[:1], []
    for change in ({}, {"hidden": 9, "lr": 0.5, "epochs": 2}):
        model = quick(epochs=5).fit(graph.X, graph.y, graph.edges).set_params(**change)
        answers.append(model.update(node, graph.truth[node]).predict_proba())
        answers.append(model.fit(graph.X, graph.y, graph.edges, warm_start=True).predict_proba())
    np.testing.assert_array_equal(answers[:2], answers[2:])


@pytest.mark.slow
def test_updates_are_as_good_as_a_new_fit(graph, quick):
    y = np.full(len(graph.truth), -1)
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(np.flatnonzero(graph.truth == k))[:12] for k in range(3)])
    order = order.reshape(3, 12).T.ravel()
    y[order[:12]] = graph.truth[order[:12]]
    model = quick(epochs=60).fit(graph.X, y, graph.edges)
    for start in (12, 24):
        part = order[start : start + 12]
        model.update(part, graph.truth[part])
    y[order] = graph.truth[order]
    again = quick(epochs=60, refit=True).fit(graph.X, y, graph.edges)
    rest = np.setdiff1d(np.arange(len(y)), order)
    right = [(one.predict() == graph.truth)[rest].mean() for one in (model, again)]
    assert right[0] > right[1] - 0.06


@pytest.mark.slow
def test_a_warm_start_does_the_same(graph, quick, fresh):
    y, new = graph.y.copy(), unlabelled(graph)[:5]
    y[new] = graph.truth[new]
    other = quick(epochs=20).fit(graph.X, graph.y, graph.edges).fit(graph.X, y, graph.edges, warm_start=True)
    np.testing.assert_allclose(other.predict_proba(), fresh.update(new, graph.truth[new]).predict_proba(), atol=1e-6)
    with pytest.raises(InputError, match="other features or edges"):
        other.fit(graph.X, y, graph.edges[:, 1:], warm_start=True)
    with pytest.raises(InputError, match="the classes 0, 1, 2, 3"):
        other.fit(graph.X, np.where(np.arange(len(y)) == new[0], 3, y), graph.edges, warm_start=True)


@pytest.mark.parametrize(
    ("nodes", "labels", "message"),
    [
        ([100], [7], "labels: got 7; expected the classes 0, 1, 2"),
        ([100, 101, 100], [0, 1, 2], "node 100 with different labels"),
        ([1000], [0], "node numbers 1000..1000"),
        (["Ada"], [0], "nodes"),
        ([100, 101], [0], "1 labels"),
        ([], [], "none"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(fitted, nodes, labels, message):
    before = fitted.fitted_
    with pytest.raises(InputError, match=message):
        fitted.update(nodes, labels)
    assert fitted.fitted_ is before


def test_the_same_label_twice_is_one_label(graph, fresh):
    node = unlabelled(graph)[0]
    fresh.update([node, node], graph.truth[[node, node]])
    assert (fresh.task_.train == node).sum() == 1


def test_a_loaded_model_says_that_it_cannot_go_on(graph, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    with pytest.raises(InputError, match="a model that was loaded"):
        model.update([100], [0])
    assert len(model.suggest(2)) == 2


@pytest.mark.slow
def test_an_updated_model_can_be_saved_and_searched_further(graph, quick, tmp_path):
    model = quick(model="auto", effort="quick", epochs=5, denoise=False).fit(graph.X, graph.y, graph.edges)
    new = unlabelled(graph)[:3]
    model.update(new, graph.truth[new]).save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(), model.predict_proba(), atol=1e-6)
    model.set_params(hidden=7).continue_fit(effort="quick")
    assert (model.task_.labels[new] == graph.truth[new]).all()


def test_ids_of_tables_are_understood_and_given_back(graph, quick):
    ids = [f"n{node}" for node in range(len(graph.truth))]
    nodes = pd.DataFrame(graph.X, columns=[f"x{d}" for d in range(graph.X.shape[1])])
    nodes["id"], nodes["label"] = ids, [None if k < 0 else f"c{k}" for k in graph.y]
    edges = pd.DataFrame({"source": [ids[i] for i in graph.edges[0]], "target": [ids[i] for i in graph.edges[1]]})
    model = quick(epochs=5).fit(nodes, "label", edges, id="id")
    free = [ids[node] for node in unlabelled(graph)[:10]]
    found = model.suggest(4, candidates=free, exclude=free[:3])
    assert {one.node for one in found} <= set(free[3:])
    assert all(ids[one.number] == one.node for one in found)
    model.update([found[0].node], ["c1"])
    assert found[0].node not in {one.node for one in model.suggest(20, candidates=free)}
    with pytest.raises(InputError, match="'nobody'"):
        model.update(["nobody"], ["c1"])


def test_suggestions_are_unlabelled_and_checked(graph, fitted):
    assert (graph.y[[one.number for one in fitted.suggest(30)]] < 0).all()
    assert len(fitted.suggest(500)) == (graph.y < 0).sum()
    with pytest.raises(InputError, match="2 problems") as caught:
        fitted.suggest(0, "entropie")
    assert "Did you mean 'entropy'?" in str(caught.value)


@pytest.mark.slow
def test_edges_to_check_are_ranked_by_doubt_and_by_what_they_change(fitted):
    fitted = copy(fitted)  # It remembers what it learns about edges.
    found = fitted.suggest_edges(400)
    pairs = np.array([edge.numbers for edge in found]).T
    assert len(found) == fitted.task_.num_edges
    doubt = np.array([edge.probability for edge in found])
    np.testing.assert_allclose(doubt, 1 - fitted.edge_proba(tuple(pairs), "genuine"), atol=1e-6)
    scores = np.array([edge.score for edge in found])
    assert (np.diff(scores) <= 0).all()
    sure = fitted.predict_proba().max(1)[pairs].min(0)
    assert np.corrcoef(scores, doubt)[0, 1] > 0
    assert np.corrcoef(scores, sure)[0, 1] < 0, "ends that are certain anyway matter less"


@pytest.mark.slow
def test_labels_that_others_contradict_are_to_be_checked(graph):
    known = np.flatnonzero(graph.y >= 0)
    wrong = graph.y.copy()
    wrong[known[:6]] = (graph.truth[known[:6]] + 1) % 3
    model = G3NNClassifier("gcn", epochs=5, effort="quick", ensemble=1, device="cpu").fit(graph.X, wrong, graph.edges)
    found = model.suggest_labels(12)
    assert np.isin(known[:6], [one.number for one in found]).sum() >= 4, f"of {len(known)} labels"
    first = next(one for one in found if one.number in known[:6])
    assert (first.node, first.label, first.instead) == (first.number, wrong[first.number], graph.truth[first.number])
    assert first.reason.startswith(f"labelled {first.label}, but without this label it would be {first.instead}: ")
    assert (np.diff([one.score for one in found]) <= 0).all()
    with pytest.raises(InputError, match="k: "):
        model.suggest_labels(0)


@pytest.mark.slow
def test_numbers_and_tags_can_be_asked_for_and_updated(graph):
    y = graph.X[:, 0] * 100 + 1000
    known = np.where(np.arange(len(y)) < 60, y, np.nan)
    model = G3NNRegressor("gcn", epochs=20, ensemble=2, device="cpu").fit(graph.X, known, graph.edges)
    assert all(one.score > 0.5 for one in model.suggest_labels())
    found = [one.number for one in model.suggest(5)]
    assert min(found) >= 60
    unit = model.fitted_.outcome
    model.update(found, y[found] + 1000)
    assert model.fitted_.outcome == unit, "parameters keep the unit that they were learned in"
    assert abs(model.predict()[:60] - y[:60]).mean() < y.std() * 3
    tags = np.stack([graph.truth == 0, graph.truth > 0], axis=1).astype(float)
    tags[60:] = np.nan
    several = G3NNClassifier("gcn", epochs=5, ensemble=1, device="cpu").fit(graph.X, tags, graph.edges)
    several.update([100], [[1, 0]])
    assert several.task_.labels[100].tolist() == [1, 0]
    assert all(one.number >= 60 for one in several.suggest(3))


@pytest.mark.slow
def test_a_quick_fit_to_a_handful_of_labels_learns_from_all_of_them(graph, quick):
    y = np.full(len(graph.truth), -1)
    for k in range(3):
        y[np.flatnonzero(graph.truth == k)[:2]] = k
    model = quick(model="auto", effort="quick", epochs=1000).fit(graph.X, y, graph.edges)
    assert "sbm-appnp" in model.model_
    assert [entry.model for entry in model.panel_ if not entry.simple] == ["sbm-appnp"]
    assert model.n_validation_ == 0
    assert model.fitted_.seen.tolist() == np.flatnonzero(y >= 0).tolist()
    assert model.temperature_ != 1.0
    assert model.score(None, graph.truth) > 0.7


def test_going_on_begins_where_training_ended(graph, fitted):
    network = fitted.fitted_.answerer.networks[0]
    plan = Plan.check("sbm-gcn", "elbo", 2, network.seeds, "mlp", "cpu", {"lr": 1e-9, "weight_decay": 0.0})
    result = plan.going_on(network.model, 2).fit(fitted.task_, progress=False)
    for name, tensor in network.model.state_dict().items():
        torch.testing.assert_close(result.model.state_dict()[name], tensor.cpu(), atol=1e-6, rtol=0)
    assert result.epochs.tolist() == [2, 2]


def test_an_update_keeps_the_doubt_in_labels_that_mean_nothing(quick):
    rng = np.random.default_rng(0)
    X, edges, truth = rng.normal(size=(80, 3)), rng.integers(80, size=(2, 160)), rng.integers(2, size=80)
    y = np.where(np.arange(80) < 30, truth, -1)
    model = quick(model="gcn", epochs=5).fit(X, y, edges[:, edges[0] != edges[1]])
    model.update(np.arange(30, 45), truth[30:45])
    base = model.fitted_.answerer.calibrations["linked"].scaling.base
    assert base is not None
    assert base.sum() > 0.5
