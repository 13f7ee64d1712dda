"""Whether a graph is trained as a whole, in batches or not at all, by the memory that this takes: that of an epoch is
measured on a small graph of the same make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from g3nn.base.errors import DeviceMemoryError, Problems
from g3nn.graph.task import NodeTask
from g3nn.training.batches import BatchSource
from g3nn.training.checks import check_batches
from g3nn.training.memory import usable_memory

if TYPE_CHECKING:
    from g3nn.training.plan import Plan

LARGE = 10**6
"""Graphs of this extent are large: whatever walks over them takes its time."""
BATCH = 1024
"""Labelled nodes of a step where the whole graph does not fit."""
_TRIED = 64
"""With how many the memory of a batch is measured."""

_MOST_PER_END = 1 << 16
"""Bytes that no model needs for a node or for an end of an edge."""
_PILOT_NODES, _PILOT_EDGES = 4_000, 40_000
"""The size of a small graph: large enough that what does not grow with a graph hardly counts."""


@dataclass(frozen=True)
class Fit:
    """How a graph fits into memory. batch: labelled nodes of a step, 0 if the whole graph fits. needed: about how many
    bytes the whole graph takes, usable: how many it may take; 0 where neither had to be known."""

    batch: int
    needed: int = 0
    usable: int = 0


def how_it_fits(plan: Plan, task: NodeTask) -> Fit:
    """In batches only if that has to be. Raises an error if it has to be and this model cannot."""
    if plan.training.batch or surely_fits(task, plan.device):
        return Fit(plan.training.batch)
    small, times = pilot(task)
    needed, usable = int(times * plan.bytes_of_epoch(small)), usable_memory(plan.device)
    if needed <= usable:
        return Fit(0, needed, usable)
    batches, problems = plan.in_batches(BATCH), Problems()
    check_batches(task, plan.spec, plan.objective, batches.training, batches.options, problems)
    if problems.found:
        raise DeviceMemoryError(
            f"{plan.spec.name}: the whole graph takes about {gib(needed)} of memory and {gib(usable)} may be used, but "
            f"this model cannot be trained in batches. {', '.join(map(str, problems.found))}"
        )
    return Fit(BATCH, needed, usable)


def near_labels(plan: Plan, task: NodeTask) -> Plan | None:
    """The same plan for a large graph, of which every step sees all nodes near labels and no others: a model of labels
    alone is not asked about those in training. None where that is not possible or spares little."""
    if plan.spec.likelihood is not None or plan.objective.needs_pairs or plan.training.batch or task.extent < LARGE:
        return None
    steps, labelled = plan.steps(task), len(task.train) + len(task.val)
    degree = 2 * task.num_edges / task.num_nodes
    if steps is None or labelled * degree ** max(steps - 1, 0) > task.num_nodes / 2:
        return None
    near, problems = plan.in_batches(labelled, "/".join("0" * max(steps, 1))), Problems()
    check_batches(task, near.spec, near.objective, near.training, near.options, problems)
    return None if problems.found else near


def check_batch(plan: Plan, task: NodeTask, source: BatchSource) -> None:
    """Raises an error that says how large a batch may be, if one of the plan takes more memory than there is."""
    size = plan.training.batch
    tried = min(size, _TRIED, len(task.train))
    if surely_fits(task, plan.device) or tried == 0 or not any(source.fan_out):
        # With all neighbours no batch takes more than a few times the whole graph, however many labels it has.
        return
    each, usable = plan.in_batches(tried).bytes_of_batch(task, source) / tried, usable_memory(plan.device)
    if each * min(size, len(task.train)) > usable:
        raise DeviceMemoryError(
            f"batch: {size} labelled nodes with {plan.training.fan_out} neighbours take about {gib(each * size)} of "
            f"memory, and {gib(usable)} may be used: at most {int(usable / each)} fit. Use a smaller batch or fan_out"
        )


def gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"


def surely_fits(task: NodeTask, device: torch.device) -> bool:
    """Whether a graph is so small that no model of it needs to be measured."""
    return _MOST_PER_END * (task.num_nodes + 2 * task.num_edges) < usable_memory(device)


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
    small = replace(
        task,
        features=task.features[nodes],
        edges=edges,
        weights=None if task.weights is None else np.ones(edges.shape[1]),
        beliefs=None if task.beliefs is None else task.beliefs[nodes],
        labels=task.labels[nodes],
        train=np.flatnonzero(np.isin(nodes, task.train)),
        val=np.flatnonzero(np.isin(nodes, task.val)),
        test=task.test[:0],
    )
    return small, max(task.num_nodes / len(nodes), task.num_edges / max(edges.shape[1], 1))
