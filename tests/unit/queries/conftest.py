"""Fitted audits that several test files share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.queries import GraphAudit


def believe(task: NodeTask, certainty: float = 0.9) -> np.ndarray:
    """(n, K): mostly the true label, one-hot at the labelled nodes."""
    K = task.num_classes
    q = np.full((task.num_nodes, K), (1 - certainty) / (K - 1))
    q[np.arange(task.num_nodes), task.labels] = certainty
    q[task.train] = np.eye(K)[task.labels[task.train]]
    return q


@pytest.fixture(scope="session")
def beliefs() -> Callable[..., np.ndarray]:
    return believe


@pytest.fixture(scope="session", params=[False, True], ids=["undirected", "directed"])
def small_audit(request: pytest.FixtureRequest, make_task: Any) -> GraphAudit:
    """A few epochs on fourteen nodes: what it says is of no interest, only that it adds up."""
    task = make_task(directed=request.param)
    return GraphAudit.fit(task, believe(task, 0.7), epochs=20, latent=4, device="cpu")


@pytest.fixture(scope="session")
def community() -> NodeTask:
    """Features and labels say much about its edges."""
    return g3nn.synthetic(
        "latent-space", nodes=400, classes=3, degree=8, homophily=0.9, latent_weight=5, signal=2, seed=3
    )


@pytest.fixture(scope="session")
def audit(community: NodeTask) -> GraphAudit:
    return GraphAudit.fit(community, believe(community), epochs=150, device="cpu")
