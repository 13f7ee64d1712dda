"""A small graph with labels on a third of its nodes, and a classifier fitted to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import g3nn
from g3nn.estimator import G3NNClassifier

QUICK: dict[str, Any] = {"model": "sbm-gcn", "epochs": 40, "ensemble": 2, "device": "cpu"}


class Graph(NamedTuple):
    """Features, partly known labels, edges, validation nodes, and the truth."""

    X: np.ndarray
    y: np.ndarray
    edges: np.ndarray
    val: np.ndarray
    truth: np.ndarray


def _graph(nodes: int = 150, **changes: Any) -> Graph:
    recipe = {"classes": 3, "degree": 5, "features": 6, "signal": 2.0, "labels_per_class": 8, "val": 33, "seed": 3}
    task = g3nn.synthetic(nodes=nodes, **{**recipe, **changes})
    y = np.full(nodes, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return Graph(task.features, y, task.edges, task.val, task.labels)


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., Graph]:
    return _graph


@pytest.fixture(scope="session")
def graph() -> Graph:
    return _graph()


@pytest.fixture(scope="session")
def isolated() -> Graph:
    """The same graph, but nodes 0 to 9 have no edges."""
    whole = _graph()
    return whole._replace(edges=whole.edges[:, (whole.edges >= 10).all(axis=0)])


@pytest.fixture(scope="session")
def quick() -> Callable[..., G3NNClassifier]:
    """A classifier that trains in a moment."""

    def make(**changes: Any) -> G3NNClassifier:
        return G3NNClassifier(**{**QUICK, **changes})

    return make


@pytest.fixture(scope="session")
def fitted(graph: Graph, quick: Callable[..., G3NNClassifier]) -> G3NNClassifier:
    """Not to be changed."""
    return quick().fit(graph.X, graph.y, graph.edges, val=graph.val)
