"""Scores of their own for new nodes, found from their edges to fitted ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from number_graph import number_model
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import log_expit
from scipy.stats import norm

import g3nn
from g3nn.estimator.answers import Answerer
from g3nn.graph.task import NodeTask
from g3nn.model import inferring
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective

pytestmark = pytest.mark.filterwarnings("ignore:.*new nodes have no edge")

QUICK = {"epochs": 60, "ensemble": 2, "device": "cpu", "options": {"refine": True, "graph_weight": 3.0}}


def enlarged(seed=0, nodes=300):
    """A graph, and the last thirty nodes of it, which are to come later."""
    task = g3nn.synthetic_values("real", nodes=nodes, degree=8, features=4, labelled=0.2, val=60, seed=seed)
    order = np.concatenate([task.train, task.val, task.test])
    number = np.empty(nodes, dtype=np.int64)
    number[order] = np.arange(nodes)
    known = len(task.train) + len(task.val)
    labels = np.where(np.arange(nodes) < known, task.labels[order, 0], np.nan)
    return task.features[order], labels, number[task.edges], np.arange(len(task.train), known), task.labels[order, 0]


@pytest.fixture(scope="module")
def fitted():
    X, y, edges, val, _ = enlarged()
    inside = (edges < 270).all(axis=0)
    regressor = g3nn.G3NNRegressor("near-gcn", **QUICK).fit(X[:270], y[:270], edges[:, inside], val=val)
    return regressor, X[270:], edges[:, ~inside]


def inferring_or_not(answerer, infers):
    """The same members, whether or not new nodes get scores of their own."""
    members = [replace(one, infers=infers) for one in answerer.members]
    return replace(answerer, members=tuple(members))


def expectation(mean, variance, value, b, weight, present):
    """E log p of a pair whose one end is N(mean, variance) and whose other end is known."""

    def integrand(g):
        odds = b - weight * (g - value) ** 2
        return norm.pdf(g, mean, variance**0.5) * log_expit(odds if present else -odds)

    width = 9 * variance**0.5
    return quad(integrand, mean - width, mean + width, limit=200)[0]


@pytest.mark.slow
def test_a_score_maximises_its_part_of_the_bound(monkeypatch):
    """One new node with an edge to the first of four fitted ones, whose values are known and of which two are linked:
    with many points the score is where the bound by numerical integration is highest."""
    monkeypatch.setattr(inferring, "_POINTS", 1000)
    monkeypatch.setattr(inferring, "_STRANGERS", 3000)
    monkeypatch.setattr(inferring, "_STEPS", 300)
    values, edges = np.array([1.0, 3.0, 4.0, 8.0, 5.0]), np.array([[0, 2], [4, 3]])
    features = np.random.default_rng(1).normal(size=(5, 3))
    task = NodeTask.build(features, edges, values, [0, 1, 2, 3], [4], outcome="real")
    model = number_model("near", task, {"refine": True})
    inputs = Inputs.of(task, dtype=torch.float64)
    before = model.posterior.log_prob(inputs, None)[0, 4].detach().numpy()
    found = inferring.infer_scores(model, model.posterior, inputs, np.arange(5) == 4)
    after = model.posterior.log_prob(inputs, None)[0].detach().numpy()
    assert found.tolist() == [False] * 4 + [True]
    p_mean, p_log_variance = model.prior.log_prob(inputs, None)[0, 4].tolist()
    b, weight = model.likelihood.b.item(), model.likelihood._weights().item()
    known, variance = inputs.targets.values[:, 0].numpy(), np.exp(before[1])

    def cost(mean):
        edge = expectation(mean, variance, known[0], b, weight, True)
        strangers = [expectation(mean, variance, known[j], b, weight, False) for j in (1, 2, 3)]
        # Four fitted nodes share one edge: in training a node has half a non-edge in each step.
        return -edge - 0.5 * np.mean(strangers) + (mean - p_mean) ** 2 / (2 * np.exp(p_log_variance))

    best = minimize_scalar(cost, bounds=(-6, 6), method="bounded", options={"xatol": 1e-8}).x
    assert abs(best - before[0]) > 0.1
    assert after[4, 0] == pytest.approx(best, abs=2e-3)
    assert after[4, 1] == before[1]


@pytest.mark.slow
def test_what_was_fitted_stays(fitted):
    regressor, _, _ = fitted
    parts = regressor.fitted_
    assert parts.answerer.networks[0].infers
    before = {name: tensor.clone() for name, tensor in parts.answerer.networks[0].model.state_dict().items()}
    network = inferring_or_not(parts.answerer, False)
    np.testing.assert_array_equal(parts.answerer(parts.task).answer, network(parts.task).answer)
    parts.answerer(parts.task, np.arange(parts.task.num_nodes) % 3 == 0)
    for name, tensor in parts.answerer.networks[0].model.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


@pytest.mark.slow
def test_the_same_question_has_the_same_answer(fitted, tmp_path):
    regressor, X, edges = fitted
    first = regressor.predict_interval(0.9, X, edges)
    np.testing.assert_array_equal(first, regressor.predict_interval(0.9, X, edges))
    regressor.save(tmp_path / "model")
    loaded = g3nn.load_model(tmp_path / "model")
    np.testing.assert_array_equal(first, loaded.predict_interval(0.9, X, edges))


@pytest.mark.slow
def test_a_new_node_does_not_depend_on_others():
    """With a network that does not look at the graph, only scores of one's own could."""
    X, y, edges, val, _ = enlarged(seed=1)
    inside = (edges < 270).all(axis=0)
    regressor = g3nn.G3NNRegressor("near-mlp", **QUICK).fit(X[:270], y[:270], edges[:, inside], val=val)
    together = regressor.predict(X[270:], edges[:, ~inside])
    for node in range(270, 273):
        own = edges[:, (edges == node).any(axis=0) & ((edges < 270) | (edges == node)).all(axis=0)]
        alone = regressor.predict(X[[node]], np.where(own == node, 270, own))
        assert alone[0] == pytest.approx(together[node - 270], rel=1e-4)


def test_nodes_among_themselves_have_the_network_alone(fitted):
    """They are calibrated as such: what is known of nodes with fitted neighbours does not hold for them."""
    regressor, X, _ = fitted
    pair = np.array([270, 272]), np.array([271, 0])
    answers = regressor.fitted_.ask(X[:3], pair)
    assert answers.inferred.tolist() == [False, False, True]
    answerer = regressor.fitted_.answerer
    masks = [(mask.tolist(), part) for mask, part in answerer.shared_out(answers) if mask.any()]
    inferred, new = answerer.calibrations["inferred"], answerer.calibrations["new"]
    assert masks == [([False, False, True], inferred), ([True, True, False], new)]


@pytest.mark.slow
def test_edges_tell_more_than_the_network():
    X, y, edges, val, truth = enlarged(seed=2, nodes=600)
    inside = (edges < 500).all(axis=0)
    options = {"refine": True, "graph_weight": inside.sum() / np.isnan(y[:500]).sum()}
    settings = {"epochs": 300, "ensemble": 1, "device": "cpu", "options": options}
    regressor = g3nn.G3NNRegressor("near-gcn", **settings).fit(X[:500], y[:500], edges[:, inside], val=val)
    parts = regressor.fitted_
    errors = {}
    for infers in (False, True):
        answering = replace(parts, answerer=inferring_or_not(parts.answerer, infers))
        mean = parts.outcome.moments(answering.ask(X[500:], edges[:, ~inside]).answer)[0][:, 0]
        errors[infers] = np.sqrt(np.mean((mean - truth[500:]) ** 2))
    assert errors[True] < 0.7 * errors[False]


@pytest.mark.parametrize("weight", ["graph_weight", "kl_weight", "prior_weight"])
def test_what_was_not_trained_is_not_asked(weight):
    task = NodeTask.build(np.eye(3), np.array([[0], [1]]), [1.0, 2.0, 3.0], [0, 1], [2], outcome="real")
    model = number_model("near", task, {"refine": True})
    assert inferring.can_infer(model, Objective())
    assert not inferring.can_infer(model, Objective(**{weight: 0.0}))
    assert not inferring.can_infer(model, Objective(**{weight: (1.0, 0.0)}))
    assert not inferring.can_infer(model, Objective(reduction="sum"))


def test_without_scores_of_their_own_there_is_nothing_to_infer():
    X, y, edges, val, _ = enlarged()
    settings = {**QUICK, "epochs": 2, "options": {"refine": False, "graph_weight": 3.0}}
    answerer = g3nn.G3NNRegressor("near-gcn", **settings).fit(X, y, edges, val=val).fitted_.answerer
    assert not answerer.refined
    assert not answerer.networks[0].infers
    assert set(answerer.calibrations) == {"linked", "isolated"}


def test_without_a_calibration_of_their_own_they_are_not_inferred(fitted):
    """Validation nodes without edges, or with edges among themselves alone, teach none."""
    regressor, X, edges = fitted
    parts, task = regressor.fitted_, regressor.task_
    one, two = task.edges
    among = task.with_edges(task.edges[:, np.isin(one, task.val) == np.isin(two, task.val)])
    for less in (task.without_edges_of(task.val), among):
        plain = Answerer.choose(parts.answerer.members, less, parts.outcome, torch.device("cpu"))
        plain = plain.calibrated_by(less.val, less)
        assert not plain.networks[0].infers
        assert "inferred" not in plain.calibrations
        assert replace(parts, answerer=plain).ask(X, edges).inferred is None
    assert parts.answerer.networks[0].infers
