"""`fit` on tasks whose labels are numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import g3nn
from g3nn.graph.datasets import synthetic_values
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs

MODELS = {"tags": "tags-gcn", "real": "near-gcn", "counts": "near-gcn"}


def task_of(outcome: str, **changes: Any) -> NodeTask:
    return synthetic_values(outcome, **{"nodes": 120, "columns": 2, "labelled": 0.3, "val": 30, **changes})


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest) -> tuple[NodeTask, g3nn.FitResult]:
    task = task_of(request.param)
    return task, g3nn.fit(task, MODELS[request.param], trials=2, epochs=4, device="cpu")


class TestResult:
    def test_predictions_are_in_the_unit_of_the_labels(self, fitted):
        task, result = fitted
        assert result.outcome.name == task.outcome
        assert result.predictions.shape == result.deviations.shape == (2, 120, 2)
        assert abs(result.predictions.mean() - task.labels[task.train].mean()) < task.labels.std()
        assert (result.deviations > 0).all()

    def test_the_loss_is_minus_the_log_probability(self, fitted):
        task, result = fitted
        inputs = Inputs.of(task)
        answer = result.model.predict_log_prob(inputs).detach()
        for nodes, expected in ((task.val, result.val_loss), (task.test, -result.test_log_prob)):
            loss, _ = inputs.outcome.validation(answer, inputs.targets, torch.from_numpy(nodes))
            np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-4)

    def test_json(self, fitted):
        task, result = fitted
        found = json.loads(json.dumps(result.to_json()))
        assert found["outcome"] == task.outcome
        assert len(found["test_log_prob"]) == 2
        assert found["hyperparameters"]["refine"] is False

    def test_classes_say_nothing_of_outcomes(self, learnable):
        found = g3nn.fit(learnable, "sbm-gcn", epochs=2).to_json()
        assert {"outcome", "test_log_prob"} & set(found) == set()
        assert "refine" not in found["hyperparameters"]


class TestTraining:
    def test_a_trial_depends_on_its_seed_alone(self, fitted):
        task, result = fitted
        alone = g3nn.fit(task, MODELS[task.outcome], seed=1, epochs=4, device="cpu")
        np.testing.assert_allclose(alone.predictions[0], result.predictions[1], rtol=1e-5)

    def test_test_labels_are_not_looked_at(self, fitted):
        task, result = fitted
        blind = g3nn.fit(task.without_test(), MODELS[task.outcome], trials=2, epochs=4, device="cpu")
        np.testing.assert_array_equal(blind.predictions, result.predictions)
        assert np.isnan(blind.test_log_prob).all()

    def test_another_unit_is_another_unit(self):
        task = task_of("real")
        scaled = NodeTask.build(
            task.features, task.edges, 1000 * task.labels - 7, task.train, task.val, task.test, outcome="real"
        )
        plain, other = (g3nn.fit(one, "near-gcn", epochs=4, device="cpu") for one in (task, scaled))
        np.testing.assert_allclose(other.predictions, 1000 * plain.predictions - 7, rtol=1e-4)
        np.testing.assert_allclose(other.deviations, 1000 * plain.deviations, rtol=1e-4)
        np.testing.assert_allclose(other.val_loss, plain.val_loss + np.log(1000), rtol=1e-4)
        np.testing.assert_allclose(other.test_score, plain.test_score, rtol=1e-3)

    def test_every_node_can_move_on_its_own(self):
        task = task_of("real")
        result = g3nn.fit(task, "near-gcn", epochs=4, refine=True, device="cpu")
        own = result.model.posterior.nodes.own
        assert own.shape == (1, 120, 2)
        assert (own.flatten(1) != 0).all(1).all(), "the graph term reaches every node"

    def test_new_nodes_have_no_score_of_their_own(self):
        task = task_of("real")
        posterior = g3nn.fit(task, "near-gcn", epochs=4, refine=True, device="cpu").model.posterior
        scores = torch.zeros(1, 125, 2)
        moved = posterior.nodes(scores)
        assert not moved[:, 120:].any()
        assert moved[:, :120].any()

    @pytest.mark.slow
    def test_the_graph_helps_where_labels_follow_it(self):
        task = synthetic_values("real", nodes=400, labelled=0.1, val=100, seed=1)
        alone = g3nn.fit(task, "gcn", device="cpu", epochs=150)
        weight = task.num_edges / len(task.unlabelled)
        joint = g3nn.fit(task, "near-gcn", device="cpu", epochs=150, refine=True, graph_weight=weight)
        assert joint.test_score[0] > alone.test_score[0] + 0.02
        assert joint.test_log_prob[0] > alone.test_log_prob[0]


REFUSED = {
    "classes as real values": ("real", {"model": "sbm-gcn"}, "likelihood", "near"),
    "real values as tags": ("tags", {"model": "near-gcn"}, "likelihood", "sbm or tags"),
    "label propagation of counts": ("counts", {"model": "label-propagation"}, "posterior", "gcn, gat"),
    "the authors' objective": ("tags", {"model": "sbm-gcn", "objective": "released"}, "objective", "elbo"),
    "noise of tags": ("tags", {"model": "sbm-gcn", "noise": "node"}, "noise", "outcome real"),
    "nodes on their own without a graph": ("real", {"model": "gcn", "refine": True}, "refine", "a likelihood"),
}


@pytest.mark.parametrize(("outcome", "request_", "argument", "allowed"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_what_does(outcome, request_, argument, allowed):
    with pytest.raises(g3nn.InputError) as caught:
        g3nn.fit(task_of(outcome), **request_, epochs=2, device="cpu")
    (problem,) = caught.value.problems
    assert problem.argument == argument
    assert allowed in problem.allowed


def test_an_option_of_another_outcome_is_refused_for_classes(learnable):
    with pytest.raises(g3nn.InputError, match=r"refine: got True for outcome 'classes'.*tags"):
        g3nn.fit(learnable, "sbm-gcn", refine=True)


def test_only_classes_can_be_kept_even():
    with pytest.raises(g3nn.InputError, match="evenness_weight"):
        g3nn.fit(task_of("real"), "gcn", epochs=1, device="cpu", evenness_weight=1.0)
