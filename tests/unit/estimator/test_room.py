from __future__ import annotations

import warnings

import numpy as np
import pytest

import g3nn
from g3nn.base.errors import DeviceMemoryError, G3NNWarning
from g3nn.estimator.effort import EFFORTS
from g3nn.training import memory

GRAPH = g3nn.synthetic(nodes=1000, classes=2, degree=8, features=8, homophily=0.9, signal=2.0, labels_per_class=80)


@pytest.fixture
def given() -> tuple[np.ndarray, np.ndarray]:
    labels = np.full(GRAPH.num_nodes, -1)
    labels[GRAPH.train] = GRAPH.labels[GRAPH.train]
    return GRAPH.features, labels


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda device: 500_000)


@pytest.mark.slow
def test_a_panel_is_trained_in_batches_where_the_graph_does_not_fit(given, little_memory):
    model = g3nn.G3NNClassifier(effort="quick", ensemble=1, epochs=3, random_state=0)
    with pytest.warns(G3NNWarning, match=r"the whole graph takes at least .*in batches of 1024.*left out"):
        model.fit(*given, edges=GRAPH.edges)
    networks = [entry for entry in model.panel_ if not entry.simple]
    assert networks
    assert all(entry.options["batch"] == 1024 for entry in networks)
    assert not any("linkx" in entry.model for entry in networks)
    assert np.mean(model.predict() == GRAPH.labels) > 0.6


def test_a_model_that_does_not_fit_is_refused(given, little_memory):
    model = g3nn.G3NNClassifier(model="linkx", ensemble=1, epochs=5, random_state=0)
    with pytest.raises(DeviceMemoryError, match="linkx: the whole graph takes about"):
        model.fit(*given, edges=GRAPH.edges)


def test_enough_memory_is_not_worth_a_word(given):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the whole graph")
        model = g3nn.G3NNClassifier(model="gcn", ensemble=1, epochs=5, random_state=0).fit(*given, edges=GRAPH.edges)
    assert "batch" not in model.panel_[0].options


def test_who_is_left_out_is_told_even_if_all_others_fit():
    error = DeviceMemoryError("linkx: the whole graph takes about 9 GiB")
    effort = EFFORTS["quick"].limited(None, GRAPH, on_cpu=True)
    effort.left_out["linkx"] = error
    assert effort.memory_notes() == ["left out for lack of memory: linkx: the whole graph takes about 9 GiB"]
