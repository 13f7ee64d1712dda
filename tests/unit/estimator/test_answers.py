from __future__ import annotations

import numpy as np
import pytest
import torch

from g3nn.calibrate import Scaling, tempered
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.estimator.reading import NO_EDGES
from g3nn.inputs import Inputs
from g3nn.model import BOTH, POSTERIOR, PRIOR

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(learnable):
    import g3nn

    return g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=30, device="cpu")


@pytest.fixture(scope="module")
def parted(learnable):
    """The same task, but nodes 3 and 4 have no edges."""
    return learnable.without_edges_of(np.array([3, 4]))


def test_answers_are_the_mean_of_the_replicas(learnable, trained):
    answers = Answerer(trained.model, CPU)(learnable)
    mean = trained.probabilities.mean(0)
    linked = answers.has_edges
    np.testing.assert_allclose(np.exp(answers.log_prob)[linked], mean[linked], rtol=1e-4)


@pytest.mark.parametrize("who", [PRIOR, POSTERIOR, BOTH])
def test_nodes_without_edges_are_answered_as_on_a_graph_without_edges(parted, trained, who):
    answerer = Answerer(trained.model, CPU, who)
    answers, edgeless = answerer(parted), answerer(parted.with_edges(NO_EDGES))
    assert not answers.has_edges[[3, 4]].any()
    assert not edgeless.has_edges.any()
    np.testing.assert_allclose(answers.log_prob[[3, 4]], edgeless.log_prob[[3, 4]], rtol=1e-5)
    parts = {PRIOR: [trained.model.prior], POSTERIOR: [trained.model.posterior]}
    parts[BOTH] = parts[PRIOR] + parts[POSTERIOR]
    inputs = Inputs.of(parted.with_edges(NO_EDGES))
    with torch.no_grad():
        expected = torch.stack([part.log_prob(inputs, None).exp().mean(0) for part in parts[who]]).mean(0)
    np.testing.assert_allclose(np.exp(edgeless.log_prob), expected.numpy(), rtol=1e-4)


def test_prior_and_posterior_differ_and_the_best_of_them_and_both_answers(learnable, trained):
    losses = {}
    for who in (PRIOR, POSTERIOR, BOTH):
        log_prob = Answerer(trained.model, CPU, who)(learnable.with_edges(NO_EDGES)).log_prob[learnable.val]
        labels = learnable.labels[learnable.val]
        scaling = Calibration.fit(log_prob, labels).scaling
        losses[who] = -scaling(log_prob)[np.arange(labels.size), labels].mean()
    assert len(set(losses.values())) == 3
    answerer, calibrations = Answerer.choose(trained.model, learnable, CPU)
    assert answerer.isolated_answer == min(losses, key=losses.get)
    assert calibrations.alone.scaling.temperature != calibrations.linked.scaling.temperature


def test_a_discriminative_model_answers_itself(learnable):
    import g3nn

    model = g3nn.fit(learnable, "gcn", epochs=5, device="cpu").model
    assert Answerer.choose(model, learnable, CPU)[0].isolated_answer == POSTERIOR


def test_without_a_linked_validation_node_there_is_one_calibration(learnable, trained):
    away = ~np.isin(learnable.edges, learnable.val).any(axis=0)
    _, calibrations = Answerer.choose(trained.model, learnable.with_edges(learnable.edges[:, away]), CPU)
    assert calibrations.linked is calibrations.alone


def test_each_node_has_the_calibration_of_its_kind():
    log_prob = np.log([[0.8, 0.2], [0.8, 0.2]])
    answers = Answers(log_prob, np.array([True, False]))
    linked, alone = Scaling(1.0, np.log([1.0, 2.0])), Scaling(4.0)
    scores = np.linspace(0, 0.5, 99), np.linspace(0, 0.9, 99)
    calibrations = Calibrations(Calibration(linked, scores[0]), Calibration(alone, scores[1]))
    p = calibrations.probabilities(answers)
    np.testing.assert_allclose(p[0], [2 / 3, 1 / 3])
    np.testing.assert_allclose(p[1], np.exp(tempered(log_prob[1:], 4.0))[0])
    np.testing.assert_array_equal(calibrations.sets(answers, 0.1), [[True, False], [True, True]])
    assert answers.at(np.array([1])).has_edges.tolist() == [False]
