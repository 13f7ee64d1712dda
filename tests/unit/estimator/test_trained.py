from __future__ import annotations

import math

import numpy as np
import pytest

import g3nn
from g3nn.estimator.candidates import Candidate
from g3nn.estimator.trained import Trained

GCN = Candidate("gcn", "elbo", {"dropout": 0.5})


@pytest.fixture(scope="module")
def result(learnable):
    return g3nn.fit(learnable, "gcn", trials=3, epochs=8, patience=3, device="cpu")


def test_replicas_are_taken_out_of_a_stack_and_joined_again(learnable, result):
    whole = Trained.of(GCN, result, np.arange(3), learnable)
    parts = [Trained.of(GCN, result, np.array(at), learnable) for at in ([0], [1, 2])]
    both = parts[0].joined(parts[1])
    assert both.seeds == whole.seeds == (0, 1, 2)
    for name in ("probabilities", "epochs", "best_epoch", "history"):
        np.testing.assert_array_equal(getattr(both, name), getattr(whole, name))
    for name, tensor in whole.state.items():
        np.testing.assert_array_equal(both.state[name].numpy(), tensor.numpy())
    assert both.entry(learnable.labels[learnable.val]) == whole.entry(learnable.labels[learnable.val])


def test_an_entry_says_how_good_the_mean_is(learnable, result):
    labels = learnable.labels[learnable.val]
    entry = Trained.of(GCN, result, np.arange(3), learnable).entry(labels)
    mean = result.probabilities[:, learnable.val].mean(0)
    assert entry.val_accuracy == pytest.approx((mean.argmax(1) == labels).mean())
    assert entry.val_loss <= -np.log(mean[np.arange(labels.size), labels]).mean() + 1e-3
    assert (entry.model, entry.objective, entry.options, entry.replicas) == ("gcn", "elbo", {"dropout": 0.5}, 3)
    assert entry.epochs == result.epochs.max()


def test_without_a_usable_replica_the_loss_is_infinite(learnable, result):
    broken = Trained.of(GCN, result, np.zeros(0, dtype=int), learnable)
    entry = broken.entry(learnable.labels[learnable.val])
    assert (entry.val_loss, entry.replicas, entry.epochs) == (math.inf, 0, 0)
    whole = Trained.of(GCN, result, np.arange(3), learnable)
    assert broken.joined(whole).seeds == whole.joined(broken).seeds == (0, 1, 2)
