"""Whether a graph is trained as a whole, in batches or not at all, by the memory that this takes: that of an epoch is
measured on a small graph of the same make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from g3nn.base.errors import DeviceMemoryError, Problems
from g3nn.graph.task import NodeTask
from g3nn.training.checks import check_batches
from g3nn.training.memory import gib, surely_fits, usable_memory
from g3nn.training.plan import Plan

LARGE = 10**6
"""Graphs of this extent are large: whatever walks over them takes its time."""
BATCH = 1024
"""Labelled nodes of a step where the whole graph does not fit."""
_PILOT_NODES, _PILOT_EDGES = 4_000, 40_000
"""The size of a small graph: large enough that what does not grow with a graph hardly counts."""


def how_it_fits(plan: Plan, task: NodeTask) -> tuple[int, int, int]:
    """How many labelled nodes a step has, 0 if the whole graph fits; about how many bytes the whole graph takes, and
    how many it may take, 0 where neither had to be known. In batches only if that has to be. Raises an error if it has
    to be and this model cannot."""
    if plan.training.batch or surely_fits(task, plan.device):
        return plan.training.batch, 0, 0
    small, times = pilot(task)
    needed, usable = int(times * plan.bytes_of_epoch(small)), usable_memory(plan.device)
    if needed <= usable:
        return 0, needed, usable
    batches, problems = plan.in_batches(BATCH), Problems()
    check_batches(task, batches, problems)
    if problems.found:
        raise DeviceMemoryError(
            f"{plan.spec.name}: the whole graph takes about {gib(needed)} of memory and {gib(usable)} may be used, but "
            f"this model cannot be trained in batches. {', '.join(map(str, problems.found))}"
        )
    return BATCH, needed, usable


def near_labels(plan: Plan, task: NodeTask) -> Plan | None:
    """The same plan for a large graph, of which every step sees all nodes near labels and no others: a model of labels
    alone does not predict the others in training. None where that is not possible or spares little."""
    if plan.spec.likelihood is not None or plan.objective.beyond_labels or plan.training.batch or task.extent < LARGE:
        return None
    steps, labelled = plan.steps(task), len(task.train) + len(task.val)
    degree = 2 * task.num_edges / task.num_nodes
    if steps is None or labelled * degree ** max(steps - 1, 0) > task.num_nodes / 2:
        return None
    near, problems = plan.in_batches(labelled, "/".join("0" * max(steps, 1))), Problems()
    check_batches(task, near, problems)
    return None if problems.found else near


def pilot(task: NodeTask) -> tuple[NodeTask, float]:
    """A small graph with features, labels and degrees as a task has them, and how many times as large the task is.

    Its edges join nodes at random: the memory of an epoch does not depend on which.
    """
    share = min(1.0, _PILOT_NODES / task.num_nodes, _PILOT_EDGES / max(task.num_edges, 1))
    count, rng = int(share * task.num_nodes), np.random.default_rng(0)
    some = [rng.choice(part, min(len(part), 1 + count // 10), replace=False) for part in (task.train, task.val)]
    nodes = np.unique(np.concatenate([*some, rng.integers(task.num_nodes, size=count)]))
    ends = rng.integers(len(nodes), size=(2, int(share * task.num_edges)))
    edges = np.unique((ends if task.directed else np.sort(ends, axis=0))[:, ends[0] != ends[1]], axis=1)
    weights = None if task.weights is None else np.ones(edges.shape[1])
    small, relations = replace(task.among(nodes), edges=edges, weights=weights, test=task.test[:0]), task.relations
    if relations is not None:
        types = rng.permutation(np.arange(edges.shape[1]) % len(relations.names))
        drawn = replace(relations, pairs=edges, types=types, weights=None, kinds=relations.kinds[nodes])
        small = replace(small, relations=drawn)
    return small, max(task.num_nodes / len(nodes), task.num_edges / max(edges.shape[1], 1))
