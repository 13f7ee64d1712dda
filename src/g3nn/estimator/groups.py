"""Outcomes other than classes as beliefs about classes, for an audit of the edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from g3nn.parse import UNKNOWN
from g3nn.task import NodeTask

GROUPS = 5


def number_groups(task: NodeTask, mean: np.ndarray, deviation: np.ndarray) -> tuple[NodeTask, np.ndarray]:
    """The known values of the first column in groups of about equal size, by order; beliefs (n, K) about them are the
    mass that a normal with these moments (n,) has in each group, and one-hot where the value is known."""
    values = task.labels[:, 0]
    limits = np.unique(np.nanquantile(values, np.arange(1, GROUPS) / GROUPS, method="lower"))
    # A group begins above its limit: none may begin above the highest value, and there are two groups at least.
    inner = limits[limits < np.nanmax(values)]
    limits = inner if inner.size else np.array([np.nanmin(values)])
    below = ndtr((limits - mean[:, None]) / np.maximum(deviation, 1e-12)[:, None])
    edges = np.concatenate([np.zeros((len(mean), 1)), below, np.ones((len(mean), 1))], axis=1)
    beliefs = np.diff(edges, axis=1)
    codes = np.where(np.isnan(values), UNKNOWN, np.searchsorted(limits, values)).astype(np.int64)
    known = np.intersect1d(np.concatenate([task.train, task.val]), np.flatnonzero(codes != UNKNOWN))
    return _as_classes(task, codes, beliefs, known)


def tag_groups(task: NodeTask, probabilities: np.ndarray) -> tuple[NodeTask, np.ndarray]:
    """One of the tags of a node, drawn at random, as its class; the last class is to have none. Beliefs (n, T + 1) are
    proportional to the probabilities of the tags and of having none; known tags have probability 0 or 1."""
    told = np.concatenate([task.train, task.val])
    p = probabilities.copy()
    p[told] = np.where(np.isnan(task.labels[told]), p[told], task.labels[told])
    shares = np.concatenate([p, (1 - p).prod(1, keepdims=True)], axis=1)
    codes = np.full(task.num_nodes, UNKNOWN, dtype=np.int64)
    return _as_classes(task, codes, shares / shares.sum(1, keepdims=True), told[:0])


def _as_classes(
    task: NodeTask, codes: np.ndarray, beliefs: np.ndarray, known: np.ndarray
) -> tuple[NodeTask, np.ndarray]:
    K = beliefs.shape[1]
    beliefs[known] = np.eye(K)[codes[known]]
    return replace(task, labels=codes, num_classes=K, outcome="classes"), beliefs
