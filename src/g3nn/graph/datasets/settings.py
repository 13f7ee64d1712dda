"""The settings of the paper: each makes a task with the standard split harder in one way.

`SETTINGS` maps the name of a setting to its function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from g3nn.base.parse import UNKNOWN
from g3nn.graph.task import NodeTask

RELEASED_LABELS_PER_CLASS = 10
RELEASED_VALIDATION_NODES = 500


def standard(task: NodeTask) -> NodeTask:
    """The whole graph and the public split."""
    return replace(task, setting="standard")


def missing_edge(task: NodeTask) -> NodeTask:
    """Every edge of a test node is removed, both for training and for prediction."""
    return task.without_edges_of(task.test, setting="missing-edge")


def reduced_label(task: NodeTask) -> NodeTask:
    """The first half (rounded up) of the training labels of each class, in node order; the same validation and test."""
    kept = []
    for label in range(task.num_classes):
        members = task.train[task.labels[task.train] == label]
        kept.append(members[: (members.size + 1) // 2])
    return task.with_split(np.concatenate(kept), task.val, task.test, setting="reduced-label")


def reduced_label_released(task: NodeTask) -> NodeTask:
    """The reduced-label split of the authors' released code, which differs from the description in the paper.

    In node order, the first 10 nodes of each class are for training, the first 500 others for validation, and the rest
    for test. Nodes with an unknown label are left out; the released code counts them as class 0.
    """
    train = np.concatenate(
        [np.flatnonzero(task.labels == label)[:RELEASED_LABELS_PER_CLASS] for label in range(task.num_classes)]
    )
    others = np.setdiff1d(np.flatnonzero(task.labels != UNKNOWN), train)
    val, test = others[:RELEASED_VALIDATION_NODES], others[RELEASED_VALIDATION_NODES:]
    return task.with_split(train, val, test, setting="reduced-label-released")


SETTINGS: dict[str, Callable[[NodeTask], NodeTask]] = {
    "standard": standard,
    "missing-edge": missing_edge,
    "reduced-label": reduced_label,
    "reduced-label-released": reduced_label_released,
}
