from __future__ import annotations

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.errors import InputError
from g3nn.graph.outcomes import OUTCOMES
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.training.options import TrainingOptions
from g3nn.training.result import member_seeds, trial_endings
from g3nn.training.stack import HISTORY_NAMES, Endings

QUICK = {"device": "cpu", "progress": False, "epochs": 30, "hidden": 8}


class TestMemberSeeds:
    def test_the_first_member_has_the_seed_of_the_trial_and_no_two_have_one(self):
        seeds = member_seeds(range(100), 5)
        assert len(set(seeds)) == 500
        assert seeds[::5] == tuple(range(100))

    def test_seeds_at_the_end_of_64_bits_go_on_at_the_beginning(self):
        found = member_seeds([2**63 - 1], 3)
        assert len(set(found)) == 3
        assert all(-(2**63) <= seed < 2**63 for seed in found)


@pytest.fixture(scope="module")
def trials(learnable: NodeTask) -> g3nn.FitResult:
    return g3nn.fit(learnable, "sbm-gcn", trials=2, seed=7, ensemble=3, lr=[0.01, 0.05], **QUICK)


@pytest.fixture(scope="module")
def members(learnable: NodeTask) -> g3nn.FitResult:
    """The same networks, each a trial of its own."""
    lr = [0.01, 0.01, 0.01, 0.05, 0.05, 0.05]
    return g3nn.fit(learnable, "sbm-gcn", trials=6, seed=member_seeds([7, 8], 3), lr=lr, **QUICK)


class TestAnswer:
    def test_is_the_mean_of_the_probabilities_of_its_members(self, trials, members):
        means = members.probabilities.reshape(2, 3, *members.probabilities.shape[1:]).mean(1)
        np.testing.assert_allclose(trials.probabilities, means, atol=1e-6)

    def test_is_judged_as_one_answer(self, learnable, trials):
        log_prob = torch.from_numpy(trials.probabilities).log()
        inputs = Inputs.of(learnable)
        loss, accuracy = TrainingOptions().validated(log_prob, inputs, inputs.outcome)
        np.testing.assert_allclose(trials.val_loss, loss.numpy(), rtol=1e-5)
        np.testing.assert_allclose(trials.val_accuracy, accuracy.numpy(), rtol=1e-6)
        right = trials.probabilities[:, learnable.test].argmax(2) == learnable.labels[learnable.test]
        np.testing.assert_allclose(trials.test_accuracy, right.mean(1), rtol=1e-6)

    def test_has_a_loss_below_the_mean_of_its_members(self, trials, members):
        assert (trials.val_loss < members.val_loss.reshape(2, 3).mean(1)).all()

    def test_takes_as_long_as_its_slowest_member(self, trials, members):
        np.testing.assert_array_equal(trials.epochs, members.epochs.reshape(2, 3).max(1))
        np.testing.assert_array_equal(trials.best_epoch, members.best_epoch.reshape(2, 3).max(1))

    def test_has_the_mean_history_of_its_members(self, trials, members):
        of_members = members.history.reshape(*members.history.shape[:2], 2, 3)
        np.testing.assert_allclose(trials.history, np.nanmean(of_members, axis=3), rtol=1e-5)

    def test_keeps_all_members_in_the_model(self, trials, members):
        assert trials.model.posterior.weight1.shape[0] == 6
        torch.testing.assert_close(trials.model.posterior.weight1, members.model.posterior.weight1)
        assert (trials.trials, trials.seeds, trials.hyperparameters["ensemble"]) == (2, (7, 8), 3)


def test_validation_nodes_without_edges_are_judged_so(learnable: NodeTask):
    options = {**QUICK, "ensemble": 2, "validation": "isolated", "calibrated": True}
    result = g3nn.fit(learnable, "sbm-gcn", **options)
    judged = TrainingOptions(validation="isolated").validation_inputs(Inputs.of(learnable))
    with torch.no_grad():
        answers = result.model.predict_log_prob(judged)
    together = OUTCOMES["classes"](learnable.num_classes).mixture(answers)
    inputs = Inputs.of(learnable)
    loss, _ = TrainingOptions(calibrated=True).validated(together, inputs, inputs.outcome)
    np.testing.assert_allclose(result.val_loss, loss.numpy(), rtol=1e-5)


def test_one_member_that_diverges_spoils_its_trial_alone(learnable: NodeTask):
    with pytest.warns(g3nn.base.errors.G3NNWarning, match="1 of 2 trials"):
        result = g3nn.fit(learnable, "sbm-gcn", trials=2, ensemble=2, lr=[0.01, 1e30], **QUICK)
    assert result.status[0] != "diverged"
    assert result.status[1] == "diverged"
    assert np.isfinite(result.val_loss[0])


def test_a_trial_has_no_numbers_if_one_member_never_had_a_finite_loss(learnable: NodeTask):
    """Of two trials with two members each, the second member of the first trial diverged at once."""
    endings = Endings(
        val_loss=torch.zeros(4),
        val_score=torch.zeros(4),
        epochs=torch.tensor([9, 1, 7, 8]),
        best_epoch=torch.tensor([5, 0, 3, 6]),
        diverged=torch.tensor([False, True, False, False]),
        history=torch.zeros(9, len(HISTORY_NAMES), 4),
    )
    even = torch.full((2, 60, 3), 1 / 3).log()
    inputs = Inputs.of(learnable)
    trials = trial_endings(endings, even, inputs, inputs.outcome, TrainingOptions(ensemble=2))
    np.testing.assert_allclose(trials["val_loss"], [np.nan, np.log(3)], rtol=1e-6)
    assert trials["val_score"].isnan().tolist() == [True, False]
    assert trials["epochs"].tolist() == [9, 8]
    assert trials["best_epoch"].tolist() == [0, 6]
    assert trials["diverged"].tolist() == [True, False]


@pytest.mark.parametrize("outcome", ["tags", "real", "counts"])
def test_numbers_are_answered_by_the_mixture(outcome: str):
    rng = np.random.default_rng(0)
    values = {"tags": rng.integers(0, 2, 40), "real": rng.normal(size=40), "counts": rng.poisson(3, 40)}
    edges = np.stack([np.arange(39), np.arange(1, 40)])
    nodes = np.arange(40)
    parts = nodes[:15], nodes[15:30], nodes[30:]
    task = NodeTask.build(rng.normal(size=(40, 5)), edges, values[outcome], *parts, outcome=outcome)
    result = g3nn.fit(task, "gcn", ensemble=3, **QUICK)
    members = g3nn.fit(task, "gcn", trials=3, seed=member_seeds([0], 3), **QUICK)
    inputs = Inputs.of(task)
    with torch.no_grad():
        answer = inputs.outcome.mixture(members.model.predict_log_prob(inputs))
    mean, deviation = inputs.outcome.in_units(answer)
    np.testing.assert_allclose(result.predictions, mean, rtol=1e-4)
    np.testing.assert_allclose(result.deviations, deviation, rtol=1e-4)


def test_no_members_are_refused(learnable: NodeTask):
    with pytest.raises(InputError, match=r"ensemble: got 0; expected a whole number of at least 1"):
        g3nn.fit(learnable, "gcn", ensemble=0)


def test_the_estimator_has_a_parameter_of_its_own(learnable: NodeTask):
    labels = np.where(np.isin(np.arange(60), learnable.train), learnable.labels, -1)
    with pytest.raises(InputError, match="ensemble is a parameter of its own"):
        g3nn.G3NNClassifier(options={"ensemble": 3}).fit(learnable.features, labels, learnable.edges)
