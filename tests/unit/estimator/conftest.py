"""A small graph with labels on a third of its nodes, and a classifier fitted to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import g3nn
from g3nn.estimator import G3NNClassifier, answers, problem, search
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.panel import Candidate
from g3nn.graph.outcomes import Classes
from g3nn.queries import wrong_labels

QUICK: dict[str, Any] = {"model": "sbm-gcn", "epochs": 40, "ensemble": 2, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def _judged_quickly(labels_judged_quickly: None, edges_judged_quickly: None) -> Iterator[None]:
    """Judging labels and edges takes longer than the small fits of these files. Wrong labels are still found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wrong_labels, "EPOCHS", 30)
        yield


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


@pytest.fixture(scope="session")
def heavy(graph: Graph) -> Graph:
    """The same graph with a feature in whose heavy tail lies one value, so that there are two views of it."""
    X = graph.X.copy()
    X[100, 0] = 1e4
    return graph._replace(X=X)


@pytest.fixture
def small_panel(quick: Callable[..., G3NNClassifier], monkeypatch: pytest.MonkeyPatch) -> Callable[..., G3NNClassifier]:
    """A classifier whose panel is two networks, of which one learns something for each node, and trees. All of them
    answer, the first one most for nodes with edges and least for isolated ones."""
    turns: list[int] = []

    def alike(log_probs: np.ndarray, most: int = 8) -> np.ndarray:
        return np.full(len(log_probs), 1 / len(log_probs))

    def all_of_them(log_probs: np.ndarray, most: int = 8) -> np.ndarray:
        turns.append(len(log_probs))
        falling = np.arange(len(log_probs), 0, -1.0)
        return (falling if len(turns) % 2 else falling[::-1]) / falling.sum()

    def networks(cls: type[Classes], columns: int, balance: float) -> Any:
        return ("sbm-gcn", "elbo", {}), ("linkx", "elbo", {})

    trees = Candidate("trees-neighbours", estimator=HistGradientBoostingClassifier(max_iter=5), neighbours=True)
    monkeypatch.setattr(Classes, "panel", classmethod(networks))
    monkeypatch.setattr(problem, "simple_candidates", lambda *_: (trees,))
    monkeypatch.setattr(search, "member_weights", alike)
    monkeypatch.setattr(answers, "member_weights", all_of_them)
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], kept=9, replicas=2, work=1e9))

    def make(**changes: Any) -> G3NNClassifier:
        return quick(**{"model": "auto", "effort": "quick", "epochs": 20, "denoise": False, **changes})

    return make
