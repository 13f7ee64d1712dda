from __future__ import annotations

import numpy as np
import pytest
import torch

import g3nn
from g3nn.calibrate import Scaling
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.inputs import Inputs
from g3nn.model import BOTH, POSTERIOR, PRIOR
from g3nn.outcomes import Classes
from g3nn.parse import NO_EDGES

CPU = torch.device("cpu")
NONE = Calibrations(Calibration(), Calibration())


@pytest.fixture(scope="module")
def trained(learnable):
    return g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=30, device="cpu")


@pytest.fixture(scope="module")
def parted(learnable):
    """The same task, but nodes 3 and 4 have no edges."""
    return learnable.without_edges_of(np.array([3, 4]))


def test_answers_are_the_mean_of_the_replicas(learnable, trained):
    answers = Answerer(trained.model, CPU, NONE)(learnable)
    mean, linked = trained.probabilities.mean(0), ~answers.isolated
    np.testing.assert_allclose(np.exp(answers.answer)[linked], mean[linked], rtol=1e-4)


@pytest.mark.parametrize("who", [PRIOR, POSTERIOR, BOTH])
def test_isolated_nodes_are_answered_as_on_a_graph_without_edges(parted, trained, who):
    answerer = Answerer(trained.model, CPU, NONE, who)
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
        answerer = Answerer(trained.model, CPU, NONE, who)
        answer = answerer(learnable.without_edges_of(learnable.val)).answer[learnable.val]
        scaling = Calibration.fit(Classes(3), answer, labels, learnable.val).scaling
        losses[who] = -scaling(answer)[np.arange(labels.size), labels].mean()
    assert len(set(losses.values())) == 3
    answerer = Answerer.choose(trained.model, learnable, CPU)
    assert answerer.isolated_answer == min(losses, key=losses.get)
    calibrations = answerer.calibrations
    assert calibrations.isolated.scaling.temperature != calibrations.linked.scaling.temperature


def test_a_discriminative_model_answers_itself(learnable):
    model = g3nn.fit(learnable, "gcn", epochs=5, device="cpu").model
    assert Answerer.choose(model, learnable, CPU).isolated_answer == POSTERIOR


def test_without_a_linked_validation_node_there_is_one_calibration(learnable, trained):
    calibrations = Answerer.choose(trained.model, learnable.without_edges_of(learnable.val), CPU).calibrations
    assert calibrations.linked is calibrations.isolated


def test_each_node_has_the_calibration_of_its_kind(trained):
    log_prob = np.log([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]])
    answers = Answers(log_prob, np.array([False, True]))
    linked, isolated = Scaling(1.0, np.log([1.0, 2.0, 1.0])), Scaling(4.0)
    scores = np.linspace(0, 0.5, 99), np.linspace(0, 0.9, 99)
    calibrations = Calibrations(Calibration(linked, scores[0]), Calibration(isolated, scores[1]))
    answerer = Answerer(trained.model, CPU, calibrations)
    p = np.exp(answerer.calibrated(answers))
    np.testing.assert_allclose(p[0], np.array([8, 2, 1]) / 11)
    np.testing.assert_allclose(p[1], np.exp(Scaling(4.0)(log_prob[1:]))[0])
    np.testing.assert_array_equal(answerer.conformal(answers, 0.1), [[True, False, False], [True, True, True]])
    assert answers.at(np.array([1])).isolated.tolist() == [True]
