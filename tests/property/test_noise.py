"""Whatever the graph, noise changes as many edges as it says and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from g3nn.base.errors import InputError
from g3nn.graph.datasets.noise import NoisyTask, dice, random_edges, removed_edges
from g3nn.graph.task import NodeTask

MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
KINDS = {"random": random_edges, "removed": removed_edges, "dice": dice}


@st.composite
def tasks(draw) -> NodeTask:
    """Up to 12 nodes, some without a label, and any edges, with weights or without."""
    n = draw(st.integers(4, 12))
    labels = np.array([0, 1, 2, 0, *draw(st.lists(st.integers(-1, 2), min_size=n - 4, max_size=n - 4))])
    pairs = np.stack(np.triu_indices(n, 1))
    kept = np.array(draw(st.lists(st.booleans(), min_size=pairs.shape[1], max_size=pairs.shape[1])))
    weights = np.arange(kept.sum()) % 3 + 1.0 if draw(st.booleans()) else None
    split = {"train": [0, 1, 2], "val": [3], "test": []}
    return NodeTask.build(np.eye(n), pairs[:, kept], labels, **split, num_classes=3, weights=weights)


def pairs_of(task: NodeTask) -> set[tuple[int, int]]:
    return set(zip(*task.edges.tolist(), strict=True))


def weights_of(task: NodeTask) -> dict[tuple[int, int], float]:
    weights = np.ones(task.num_edges) if task.weights is None else task.weights
    return dict(zip(zip(*task.edges.tolist(), strict=True), weights.tolist(), strict=True))


def same(one: object, other: object) -> bool:
    return one is other or one == other


@MANY
@given(tasks(), st.sampled_from(sorted(KINDS)), st.floats(0, 1.5), st.integers(0, 10**6))
def test_the_counts_are_exact_and_nothing_else_changes(task, kind, amount, seed):
    if kind == "removed":
        amount = min(amount, 1.0)
    count = round(amount * task.num_edges)
    before, n = pairs_of(task), task.num_nodes
    labels = task.labels
    known = {(i, j) for i, j in zip(*np.triu_indices(n, 1), strict=True) if min(labels[i], labels[j]) >= 0}
    inside = {(i, j) for i, j in known if labels[i] == labels[j]}
    free, across = n * (n - 1) // 2 - len(before), known - inside - before
    added, removed = {
        "random": (count, 0),
        "removed": (0, count),
        "dice": (count - count // 2, count // 2),
    }[kind]
    possible = added <= (len(across) if kind == "dice" else free)
    possible &= kind != "dice" or removed <= len(before & inside)
    if not possible:
        with pytest.raises(InputError, match="rate: got"):
            KINDS[kind](task, amount, seed)
        return
    noisy = KINDS[kind](task, amount, seed)
    after = pairs_of(noisy.task)
    assert noisy.task.edges.shape == (2, len(after)), "no pair twice"
    assert all(0 <= i < j < n for i, j in after), "and none with itself"
    assert (len(after - before), len(before - after)) == (added, removed)
    assert set(zip(*noisy.task.edges[:, noisy.injected].tolist(), strict=True)) == after - before
    if kind == "dice":
        assert before - after <= inside
        assert after - before <= across
    old, new = weights_of(task), weights_of(noisy.task)
    assert all(new[pair] == (old[pair] if pair in before else 1.0) for pair in after)
    for field in dataclasses.fields(NodeTask):
        if field.name not in ("edges", "weights", "setting"):
            assert same(getattr(noisy.task, field.name), getattr(task, field.name)), field.name


@MANY
@given(tasks(), st.sampled_from(sorted(KINDS)), st.integers(0, 10**6))
def test_the_same_seed_gives_the_same_graph(task, kind, seed):
    def edges() -> list[list[int]] | str:
        try:
            noisy: NoisyTask = KINDS[kind](task, 0.5, seed)
        except InputError as error:
            return str(error)
        return noisy.task.edges.tolist()

    before = task.edges.copy()
    assert edges() == edges()
    np.testing.assert_array_equal(task.edges, before)
