"""Replicas that learn from different labels of one graph, in one stack."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from g3nn.model.inputs import Inputs, LabelsApartError
from g3nn.training import plan as plans
from g3nn.training.plan import Plan
from g3nn.training.stack import Stack


def parts_of(task, count=3, weights=None):
    """Each with a third of the labels to validate on."""
    labelled = np.union1d(task.train, task.val)
    folds = [labelled[place::count] for place in range(count)]
    return [(replace(task, train=np.setdiff1d(labelled, fold), val=fold), weights) for fold in folds]


def plan_of(model, count=3, **options):
    return Plan.check(model, "elbo", count, range(count), "mlp", "cpu", {"epochs": 30, "patience": 4, **options})


LR = (0.2, 0.05, 0.01)


def alone(plan, parts):
    """With the learning rates of LR."""
    return [
        replace(plan, options={**plan.options, "lr": lr}, seeds=(seed,)).fit(task, False, weights)
        for seed, lr, (task, weights) in zip(plan.seeds, LR, parts, strict=True)
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", ["gcn", "sbm-gcn", "blsm-appnp", "grand"])
def test_each_is_what_it_would_be_alone(learnable, model, weighted):
    weights = 1.0 + np.arange(learnable.num_nodes) % 3 if weighted else None
    parts, plan = parts_of(learnable, weights=weights), plan_of(model, lr=LR)
    together, separate = plan.fit_parts(parts, False), alone(plan, parts)
    assert len({int(one.epochs[0]) for one in separate}) > 1  # Some leave the stack before others.
    for place, one in enumerate(separate):
        assert together.seeds[place] == one.seeds[0]
        assert together.epochs[place] == one.epochs[0]
        for name in ("val_loss", "val_score", "test_score", "best_epoch"):
            np.testing.assert_allclose(getattr(together, name)[place], getattr(one, name)[0], rtol=1e-6)
        torch.testing.assert_close(together.answers[place], one.answers[0], rtol=0, atol=1e-6)


def test_time_is_shared_out_where_parts_are_trained_one_after_another(learnable, monkeypatch):
    """By a clock that goes on whenever somebody looks at it."""
    monkeypatch.setattr(plans, "_CACHED", 1)
    monkeypatch.setattr(time, "monotonic", itertools.count().__next__)
    found = plan_of("gcn", epochs=500, patience=500).fit_parts(parts_of(learnable), False, 90)
    assert 20 < found.epochs.min() <= found.epochs.max() < 40


@pytest.mark.parametrize(("model", "options"), [("lgcn", {}), ("grand", {"label_inputs": True}), ("gmnn", {})])
def test_networks_that_look_at_labels_see_those_of_their_part_alone(learnable, model, options):
    parts, plan = parts_of(learnable), plan_of(model, lr=LR, **options)
    found = plan.fit_parts(parts, False)
    assert found.hyperparameters["lr"] == list(LR)
    for place, one in enumerate(alone(plan, parts)):
        torch.testing.assert_close(found.answers[place], one.answers[0], rtol=0, atol=1e-6)


def test_labels_that_are_apart_are_shown_to_no_network(learnable):
    inputs = Inputs.of(learnable).with_labels_apart(parts_of(learnable))
    assert inputs.targets.train.numel() == inputs.val.numel() == 0
    assert not inputs.targets.observed.any()
    for name in ("observed", "labelled", "train"):
        with pytest.raises(LabelsApartError):
            getattr(inputs, name)
    assert [one.train.tolist() for one in inputs.apart] == [task.train.tolist() for task, _ in parts_of(learnable)]


def test_those_of_some_replicas_keep_what_was_worked_out(learnable):
    inputs = Inputs.of(learnable).with_labels_apart(parts_of(learnable))
    adjacency, some = inputs.adjacency, inputs.of_replicas([2, 0])
    assert some.adjacency is adjacency
    assert some.apart == (inputs.apart[2], inputs.apart[0])
    assert len(inputs.apart) == 3


@pytest.mark.parametrize(("cached", "largest"), [(1, 1), (1 << 40, 3)])
def test_on_a_cpu_a_stack_is_as_large_as_is_fast(learnable, monkeypatch, cached, largest):
    sizes = []

    def stack(model, objective, inputs, replicas, training):
        sizes.append(len(inputs.apart))
        return Stack(model, objective, inputs, replicas, training)

    monkeypatch.setattr(plans, "Stack", stack)
    monkeypatch.setattr(plans, "_CACHED", cached)
    plan_of("gcn", epochs=3).fit_parts(parts_of(learnable), False)
    assert max(sizes) == largest
