from __future__ import annotations

import numpy as np
import pytest
import torch

import g3nn
from g3nn.training import memory, plan

CPU = torch.device("cpu")


def measured(nodes: int) -> int:
    """Bytes that one epoch of one replica keeps on a graph of this size."""
    task = g3nn.synthetic(nodes=nodes, classes=3, degree=4, features=8, labels_per_class=4, val=15, seed=1)
    request = plan.Plan.check("sbm-gcn", "elbo", 2, 0, "mlp", "cpu", {})
    inputs = plan.Inputs.of(task)
    return memory._kept_on_cpu(lambda: request._stack(task, inputs, [0]).advance(), CPU)


def test_the_measure_grows_with_the_graph():
    small, large = measured(500), measured(5000)
    assert 7 * small < large < 13 * small


def test_there_is_memory():
    assert memory.free_memory(CPU) > 1e8


def test_a_process_beside_others_takes_its_share_of_all_memory(monkeypatch):
    monkeypatch.setattr(memory, "host_memory", lambda: (700, 1000))
    monkeypatch.setattr(memory, "_share", 1.0)
    assert memory.free_memory(CPU) == 700
    memory.take_share(1 / 4)
    assert memory.free_memory(CPU) == 250
    monkeypatch.setattr(memory, "host_memory", lambda: (100, 1000))
    assert memory.free_memory(CPU) == 100


def test_at_least_one_replica_is_tried(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda device: 1)
    weight = torch.ones(1000, requires_grad=True)
    assert memory.replicas_that_fit(lambda: (weight * weight).sum().backward(), CPU) == 1


def test_as_many_replicas_as_the_free_memory_holds(monkeypatch):
    weight = torch.ones(1000, requires_grad=True)
    monkeypatch.setattr(memory, "free_memory", lambda device: 10 * 2 * 4000)
    assert memory.replicas_that_fit(lambda: (weight * weight).sum().backward(), CPU) == 8


def test_stacks_are_split_by_memory_and_give_the_same(learnable, monkeypatch):
    whole = g3nn.fit(learnable, "sbm-gcn", trials=5, epochs=5)
    sizes = []
    original = plan.Plan._stack
    monkeypatch.setattr(plan.Plan, "_stack", lambda self, *rest: sizes.append(len(rest[2])) or original(self, *rest))
    monkeypatch.setattr(plan, "replicas_that_fit", lambda epoch, device: 2)
    split = g3nn.fit(learnable, "sbm-gcn", trials=5, epochs=5)
    assert sorted(sizes) == [1, 2, 2]
    np.testing.assert_allclose(split.val_loss, whole.val_loss, rtol=1e-6)


@pytest.mark.parametrize(("count", "largest", "expected"), [(10, 4, [3, 3, 4]), (4, 4, [4]), (5, 1, [1] * 5)])
def test_chunks_are_even(count, largest, expected):
    planned = plan.Plan.check("sbm-gcn", "elbo", count, 0, "mlp", "cpu", {})
    assert sorted(planned._in_stacks(len, largest)) == expected
