from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.errors import DeviceMemoryError, Problems
from g3nn.graph.relations import read_relations
from g3nn.training import memory, room
from g3nn.training.plan import Plan

CPU = torch.device("cpu")


def make_graph(nodes: int, **options: object) -> g3nn.NodeTask:
    return g3nn.synthetic(nodes=nodes, classes=3, degree=6, features=8, labels_per_class=40, val=60, seed=2, **options)


def make_plan(model: str = "sbm-gcn", **options: object) -> Plan:
    return Plan.check(model, "elbo", 1, 0, "mlp", "cpu", options)


@pytest.fixture
def tight(monkeypatch):
    """Memory for a third of a sbm-gcn on the whole graph."""
    task = make_graph(20_000)
    needed = make_plan().bytes_of_epoch(task)
    monkeypatch.setattr(memory, "free_memory", lambda device: needed // 3)
    return task


@pytest.mark.parametrize("model", ["sbm-gcn", "gat"])
def test_a_small_graph_tells_what_a_large_one_takes(model):
    task = make_graph(30_000)
    small, times = room.pilot(task)
    assert small.num_nodes < 5000
    assert times * make_plan(model).bytes_of_epoch(small) == pytest.approx(
        make_plan(model).bytes_of_epoch(task), rel=0.15
    )


def test_a_small_graph_has_types_of_edges_too():
    task, problems = make_graph(30_000), Problems()
    types = np.random.default_rng(0).integers(0, 5, task.num_edges)
    relations = read_relations(tuple(task.edges), task.num_nodes, False, problems, types=types)
    typed = replace(task, relations=relations)
    small, times = room.pilot(typed)
    foreseen = times * make_plan("relational").bytes_of_epoch(small)
    assert foreseen == pytest.approx(make_plan("relational").bytes_of_epoch(typed), rel=0.15)


def test_a_small_graph_is_like_the_large_one():
    task = make_graph(30_000)
    small, _ = room.pilot(task)
    assert small.num_edges / small.num_nodes == pytest.approx(task.num_edges / task.num_nodes, rel=0.1)
    assert small.train.size
    assert small.val.size
    assert (small.labels[small.train] >= 0).all()
    assert (small.edges[0] < small.edges[1]).all()
    assert np.isin(small.features, task.features).all()


def test_what_fits_is_trained_as_a_whole():
    assert room.how_it_fits(make_plan(), make_graph(20_000))[0] == 0


def test_what_does_not_fit_is_trained_in_batches(tight):
    batch, needed, usable = room.how_it_fits(make_plan(), tight)
    assert batch == room.BATCH
    assert needed > usable > 0


def test_a_batch_that_was_asked_for_stays(tight):
    assert room.how_it_fits(make_plan(batch=7), tight)[0] == 7


def test_who_cannot_be_trained_in_batches_is_refused(tight):
    with pytest.raises(DeviceMemoryError, match=r"linkx: the whole graph takes about .* GiB.*gcn"):
        room.how_it_fits(make_plan("linkx", hidden=512), tight)


def test_a_batch_that_is_too_large_is_refused_with_one_that_is_not(monkeypatch):
    task = make_graph(20_000)
    monkeypatch.setattr(memory, "free_memory", lambda device: 2_000_000)
    with pytest.raises(DeviceMemoryError, match=r"batch: 120 labelled nodes.*at most (\d+) fit") as caught:
        g3nn.fit(task, "sbm-gcn", epochs=1, batch=120, fan_out="10/5")
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert 1 <= largest < 120
    assert g3nn.fit(task, "sbm-gcn", epochs=1, batch=largest, fan_out="10/5").epochs[0] == 1
