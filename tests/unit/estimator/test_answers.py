"""How members answer together, who answers for isolated nodes, and which calibration holds where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.parse import NO_EDGES
from g3nn.estimator.answers import Answerer, Calibration, _stopping_cost, member_weights
from g3nn.estimator.members import Answers, Network, Tabular
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Classes
from g3nn.graph.transforms import FeatureTransform
from g3nn.model.generative import BOTH, POSTERIOR, PRIOR, SIMILAR, ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.tabular import CrossFitted, FoldModel, Linear
from g3nn.training.options import LAST

CPU = torch.device("cpu")
THREE = Classes(3)
NONE = {"linked": Calibration(), "isolated": Calibration()}


@pytest.fixture(scope="module")
def trained(learnable):
    return g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=30, device="cpu")


@pytest.fixture(scope="module")
def parted(learnable):
    """The same task, but nodes 3 and 4 have no edges."""
    return learnable.without_edges_of(np.array([3, 4]))


def network(result, isolated_answer=POSTERIOR, spec="sbm-gcn"):
    """A member that is sure of itself and sees the features as they came."""
    return Network(
        view=FeatureTransform.fit("given", np.zeros((1, 8)), np.zeros(8, dtype=bool)),
        spec=ModelSpec.parse(spec),
        objective="elbo",
        hyperparameters={},
        seeds=result.seeds,
        epochs=30,
        history=result.history,
        model=result.model,
        isolated_answer=isolated_answer,
    )


def linear(coef):
    """A member that looks at the features of a node alone. coef: (8, 3)."""
    fold = FoldModel(Linear(coef, np.zeros(3), "softmax"), np.arange(3), np.zeros(0))
    view = FeatureTransform.fit("given", np.zeros((1, 8)), np.zeros(8, dtype=bool))
    fitted = CrossFitted(THREE, ((fold,),), np.zeros(0))
    return Tabular(view=view, name="linear", fitted=fitted, neighbourhood=None)


def alone(member, calibrations=NONE):
    return Answerer((member,), THREE, CPU, calibrations)


def choose(*members, task):
    return Answerer.choose(members, task, THREE, CPU).calibrated_by(task.val, task)


def test_answers_are_the_mean_of_the_replicas(learnable, trained):
    answers = alone(network(trained))(learnable)
    mean, linked = trained.probabilities.mean(0), ~answers.isolated
    np.testing.assert_allclose(np.exp(answers.answer)[linked], mean[linked], rtol=1e-4)


@pytest.mark.parametrize("who", [PRIOR, POSTERIOR, BOTH])
def test_isolated_nodes_are_answered_as_on_a_graph_without_edges(parted, trained, who):
    answerer = alone(network(trained, who))
    answers, edgeless = answerer(parted), answerer(parted.with_edges(NO_EDGES))
    assert answers.isolated[[3, 4]].all()
    assert edgeless.isolated.all()
    np.testing.assert_allclose(answers.answer[[3, 4]], edgeless.answer[[3, 4]], rtol=1e-5)
    parts = {PRIOR: [trained.model.prior], POSTERIOR: [trained.model.posterior]}
    parts[BOTH] = parts[PRIOR] + parts[POSTERIOR]
    inputs = Inputs.of(parted.with_edges(NO_EDGES))
    with torch.no_grad():
        expected = torch.stack([part.log_prob(inputs, None).exp().mean(0) for part in parts[who]]).mean(0)
    np.testing.assert_allclose(np.exp(edgeless.answer), expected.numpy(), rtol=1e-4)


def test_the_best_of_prior_posterior_and_both_answers_for_isolated_nodes(learnable, trained):
    losses, labels = {}, learnable.labels[learnable.val]
    for who in (PRIOR, POSTERIOR, BOTH):
        answerer = alone(network(trained, who))
        answer = answerer(learnable.without_edges_of(learnable.val)).answer[learnable.val]
        scaling = THREE.fit_scaling(answer, labels, learnable.val)
        losses[who] = -scaling(answer)[np.arange(labels.size), labels].mean()
    assert len(set(losses.values())) == 3
    answerer = choose(network(trained), task=learnable)
    assert answerer.networks[0].isolated_answer == min(losses, key=losses.get)
    calibrations = answerer.calibrations
    assert calibrations["isolated"].scaling.temperature != calibrations["linked"].scaling.temperature


def test_a_discriminative_model_answers_itself(learnable):
    member = network(g3nn.fit(learnable, "gcn", epochs=5, device="cpu"), spec="gcn")
    assert choose(member, task=learnable).networks[0].isolated_answer in (POSTERIOR, SIMILAR)


def test_without_a_linked_validation_node_there_is_one_calibration(learnable, trained):
    calibrations = choose(network(trained), task=learnable.without_edges_of(learnable.val)).calibrations
    assert calibrations["linked"] is calibrations["isolated"]


def test_each_node_has_the_calibration_of_its_kind(trained):
    log_prob = np.log([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]])
    answers = Answers(log_prob, np.array([False, True]))
    linked, isolated = Scaling(1.0, np.log([1.0, 2.0, 1.0])), Scaling(4.0)
    scores = np.linspace(0, 0.5, 99), np.linspace(0, 0.9, 99)
    calibrations = {"linked": Calibration(linked, scores[0]), "isolated": Calibration(isolated, scores[1])}
    answerer = alone(network(trained), calibrations)
    p = np.exp(answerer.calibrated(answers))
    np.testing.assert_allclose(p[0], np.array([8, 2, 1]) / 11)
    np.testing.assert_allclose(p[1], np.exp(Scaling(4.0)(log_prob[1:]))[0])
    np.testing.assert_array_equal(answerer.conformal(answers, 0.1), [[True, False, False], [True, True, True]])
    assert answers.at(np.array([1])).isolated.tolist() == [True]


class TestMixture:
    @pytest.fixture
    def members(self, learnable, trained):
        x, y = learnable.features[learnable.train], learnable.labels[learnable.train]
        coef = np.stack([x[y == k].mean(0) for k in range(3)], axis=1)
        first = replace(network(trained), weight=0.7, isolated_weight=0.2, temperature=0.5)
        return first, replace(linear(coef), weight=0.3, isolated_weight=0.8, temperature=2.0)

    def test_it_is_the_weighted_mean_of_what_members_say_at_their_temperatures(self, parted, members):
        """Isolated nodes have weights of their own."""
        said = []
        for member in members:
            power = np.exp(alone(replace(member, temperature=1.0))(parted).answer) ** (1 / member.temperature)
            said.append(power / power.sum(1, keepdims=True))
        answers = Answerer(members, THREE, CPU, NONE)(parted)
        first = np.where(parted.isolated, 0.2, 0.7)[:, None]
        assert parted.isolated[[3, 4]].all()
        assert not parted.isolated.all()
        np.testing.assert_allclose(np.exp(answers.answer), first * said[0] + (1 - first) * said[1], rtol=1e-5)
        np.testing.assert_array_equal(answers.isolated, parted.isolated)

    def test_a_member_without_a_weight_is_not_heard(self, parted, members):
        deaf = replace(members[0], weight=1.0), replace(members[1], weight=0.0)
        linked = ~parted.isolated
        both, first = Answerer(deaf, THREE, CPU, NONE)(parted), alone(deaf[0])(parted)
        np.testing.assert_allclose(both.answer[linked], first.answer[linked], rtol=1e-6)
        assert not np.allclose(both.answer[~linked], first.answer[~linked])

    def test_weights_are_chosen_by_the_validation_nodes_with_and_without_their_edges(self, learnable, members):
        labels, val = learnable.labels[learnable.val], learnable.val
        fresh = [replace(member, temperature=1.0, weight=1.0, isolated_weight=1.0) for member in members]
        answerer = choose(*fresh, task=learnable)
        chosen = {member.name: member for member in answerer.members}
        who = answerer.networks[0].isolated_answer
        fresh[0] = replace(fresh[0], isolated_answer=who)
        temperatures = [THREE.temperature(alone(one)(learnable).answer[val], labels) for one in fresh]
        assert [chosen[one.name].temperature for one in fresh] == pytest.approx(temperatures)
        weights = []
        for task, kind in ((learnable, "weight"), (learnable.without_edges_of(val), "isolated_weight")):
            heard = [
                Scaling(temperature)(alone(one)(task).answer[val])[np.arange(labels.size), labels]
                - _stopping_cost(one, labels.size)
                for one, temperature in zip(fresh, temperatures, strict=True)
            ]
            found = [getattr(chosen[one.name], kind) for one in fresh]
            assert found == pytest.approx(member_weights(np.stack(heard)))
            assert sum(found) == pytest.approx(1)
            weights.append(found)
        assert weights[0] != weights[1]

    def test_who_has_no_weight_anywhere_is_left_out(self, learnable):
        """One who reads the label off the features beats one who never knows at every node."""
        task = replace(learnable, features=np.eye(8, dtype=np.float32)[learnable.labels])
        ignorant, knowing = linear(np.zeros((8, 3))), linear(5 * np.eye(8, 3))
        (left,) = choose(ignorant, knowing, task=task).members
        assert left.fitted is knowing.fitted
        assert (left.weight, left.isolated_weight) == (1, 1)


def test_every_model_that_was_tried_is_a_reason_for_doubt(graph, small_panel, monkeypatch):
    counted = []

    def listening(self, scaling, known, tried):
        counted.append(tried)
        return scaling

    monkeypatch.setattr(Classes, "with_doubt", listening)
    found = small_panel(epochs=2).fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert len(found.panel_) > 1
    assert set(counted) == {len(found.panel_)}


def test_a_network_is_judged_by_less_than_its_loss_since_validation_nodes_ended_its_training():
    """By half the logarithm of the nodes of each replica, as in the criterion of Schwarz; others are not."""
    network, trees = object.__new__(Network), object.__new__(Tabular)
    object.__setattr__(network, "spec", ModelSpec("gcn"))
    object.__setattr__(network, "hyperparameters", {"keep": "best"})
    object.__setattr__(network, "held_out", np.zeros((2, 5), dtype=bool))
    assert _stopping_cost(network, 80) == pytest.approx(0.5 * np.log(40) / 40)
    assert _stopping_cost(trees, 80) == 0
    object.__setattr__(network, "hyperparameters", {"keep": LAST})
    assert _stopping_cost(network, 80) == 0
