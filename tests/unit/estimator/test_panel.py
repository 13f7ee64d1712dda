from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import g3nn
from g3nn.errors import G3NNWarning, TrainingError
from g3nn.estimator import panel
from g3nn.estimator.candidates import Candidate
from g3nn.estimator.panel import Round, Search

COMMON = {"hidden": 8, "lr": 0.01, "weight_decay": 5e-4, "epochs": 12, "patience": 12}
SCALES = [Candidate("sbm-gcn", "elbo", {"graph_weight": weight, "eta": 1.0}) for weight in (1.0, 0.5)]
TRIED = [Candidate("mlp", "elbo", {}), SCALES[0], Candidate("gcn", "elbo", {}), SCALES[1]]


@pytest.fixture
def rounds(monkeypatch):
    monkeypatch.setattr(panel, "TRIAL_EPOCHS", 5)
    monkeypatch.setattr(panel, "TRIAL_KEPT", 3)
    monkeypatch.setattr(panel, "ROUNDS", (Round(1, 2), Round(2, 1)))
    monkeypatch.setattr(panel, "CLOSE", np.inf)


@pytest.fixture
def search(learnable):
    return Search(learnable.without_test(), COMMON, "cpu", (5, 6, 7))


def test_the_best_of_the_finalists_is_chosen(search, rounds):
    best, entries = search.run(TRIED)
    assert [entry.model for entry in entries] == ["mlp", "sbm-gcn", "gcn", "sbm-gcn"]
    assert sorted((entry.replicas, entry.epochs) for entry in entries) == [(1, 5), (1, 12), (2, 12), (3, 12)]
    (chosen,) = [entry for entry in entries if entry.chosen]
    assert chosen.replicas == 3
    assert (chosen.model, chosen.options) == (best.candidate.name, best.candidate.options)
    assert best.seeds == (5, 6, 7)


def test_a_runner_up_that_is_far_behind_trains_no_more(search, rounds, monkeypatch):
    monkeypatch.setattr(panel, "CLOSE", 1.0)
    best, entries = search.run(TRIED)
    assert sorted((entry.replicas, entry.epochs) for entry in entries) == [(1, 5), (1, 12), (1, 12), (3, 12)]
    assert best.seeds == (5, 6, 7)


def test_replicas_are_those_of_a_stack_of_their_own_wherever_they_were_trained(search, rounds):
    """Replicas of one candidate are trained in several rounds."""
    best, _ = search.run([*SCALES, *SCALES])
    weight = best.candidate.options["graph_weight"]
    options = {**COMMON, "graph_weight": weight}
    alone = g3nn.fit(search.task, "sbm-gcn", trials=3, seed=5, device="cpu", **options)
    np.testing.assert_allclose(best.probabilities, alone.probabilities[:, search.task.val], atol=1e-5)
    np.testing.assert_array_equal(best.best_epoch, alone.best_epoch)
    np.testing.assert_allclose(best.history, alone.history, rtol=1e-3, atol=1e-5)
    for name, tensor in alone.model.state_dict().items():
        np.testing.assert_allclose(best.state[name].numpy(), tensor.numpy(), atol=1e-5)


def test_one_candidate_trains_once(search):
    best, (entry,) = search.run(TRIED[2:3])
    assert (entry.model, entry.chosen, entry.replicas) == ("gcn", True, 3)
    assert best.epochs.tolist() == [12, 12, 12]


@pytest.mark.parametrize("count", [1, 2])
def test_few_replicas_need_fewer_rounds(search, rounds, count):
    best, entries = replace(search, seeds=search.seeds[:count]).run(TRIED)
    assert len(best.seeds) == count
    assert sum(entry.replicas == count for entry in entries if entry.chosen) == 1


@pytest.mark.filterwarnings("ignore:the loss of:g3nn.errors.G3NNWarning")
def test_what_diverges_is_not_chosen(search):
    bad = Candidate("gcn", "elbo", {"dropout": 0.0})
    wild = Search(search.task, {**COMMON, "lr": 1e30}, "cpu", (1,))
    with pytest.raises(TrainingError, match="no model could be trained"):
        wild.run([bad])


def test_divergence_is_said(search):
    wild = Search(search.task, {**COMMON, "lr": 1e30}, "cpu", (1,))
    with pytest.warns(G3NNWarning, match="became NaN"), pytest.raises(TrainingError):
        wild.run([Candidate("gcn", "elbo", {})])
