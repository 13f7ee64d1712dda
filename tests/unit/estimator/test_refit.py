from __future__ import annotations

import numpy as np
import pytest
import torch

from g3nn.errors import TrainingError
from g3nn.estimator import refit
from g3nn.estimator.candidates import Candidate
from g3nn.estimator.refit import train_on_all
from g3nn.inputs import Inputs
from g3nn.training import Stack

COMMON = {"hidden": 8, "lr": 0.01, "weight_decay": 5e-4, "epochs": 30, "patience": 3}


@pytest.fixture
def plan():
    return Candidate("sbm-gcn", "elbo", {}).plan(COMMON, (3, 4), "cpu")


def test_all_labels_are_trained_on_for_exactly_so_many_epochs(learnable, plan, monkeypatch):
    seen = []
    advance = Stack.advance

    def counted(self):
        seen.append((self.num_live, self.inputs.train.numel()))
        advance(self)

    monkeypatch.setattr(Stack, "advance", counted)
    train_on_all(learnable, plan, 7)
    everything = learnable.train.size + learnable.val.size
    # The first call measures how much memory one replica takes.
    assert seen == [(1, everything)] + [(2, everything)] * 7


def test_the_last_epoch_is_kept_and_stacks_may_be_split(learnable, plan, monkeypatch):
    whole = train_on_all(learnable, plan, 7).state_dict()
    monkeypatch.setattr(refit, "replicas_that_fit", lambda epoch, device: 1)
    parts = train_on_all(learnable, plan, 7).state_dict()
    longer = train_on_all(learnable, plan, 8).state_dict()
    for name, tensor in whole.items():
        np.testing.assert_allclose(tensor.numpy(), parts[name].numpy(), atol=1e-6)
    assert not torch.equal(parts["posterior.weight1"], longer["posterior.weight1"])


def test_what_learns_nothing_needs_no_training(learnable):
    plan = Candidate("label-propagation", "elbo", {}).plan(COMMON, (0,), "cpu")
    model = train_on_all(learnable, plan, 5)
    assert model.posterior.log_prob(Inputs.of(learnable), None).shape == (1, 60, 3)


def test_divergence_is_an_error(learnable):
    plan = Candidate("sbm-gcn", "elbo", {}).plan({**COMMON, "lr": 1e30}, (0,), "cpu")
    with pytest.raises(TrainingError, match="lower lr"):
        train_on_all(learnable, plan, 10)
