"""A model of labels alone sees only what lies near labels of a large graph, and learns the same."""

from __future__ import annotations

import numpy as np
import pytest

import g3nn
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.panel import Candidate
from g3nn.estimator.search import Search
from g3nn.graph.transforms import FeatureTransform
from g3nn.training import room
from g3nn.training.batches.sampling import Sampler
from g3nn.training.plan import Plan

OPTIONS = {"epochs": 12, "hidden": 8, "dropout": 0.0}


@pytest.fixture(scope="module")
def task():
    return g3nn.synthetic(nodes=900, classes=3, degree=6, features=10, labels_per_class=10, val=30, seed=2)


@pytest.fixture
def large(monkeypatch):
    """Graphs of any size count as large."""
    monkeypatch.setattr(room, "LARGE", 0)


def planned(model: str, **options) -> Plan:
    return Plan.check(model, "elbo", 1, 3, "mlp", "cpu", {**OPTIONS, **options})


@pytest.mark.parametrize("model", ["hops", "gcn", "sage", "mlp"])
def test_training_is_that_of_the_whole_graph(task, large, model):
    plan = planned(model)
    near = room.near_labels(plan, task)
    whole, part = (one.fit(task, progress=False) for one in (plan, near))
    np.testing.assert_allclose(part.answers, whole.answers, atol=2e-5)
    np.testing.assert_allclose(part.history, whole.history, rtol=1e-4, atol=1e-5)


def test_neighbourhoods_are_found_once(task, large, monkeypatch):
    found, around = [], Sampler.around
    monkeypatch.setattr(Sampler, "around", lambda self, *given: found.append(1) or around(self, *given))
    room.near_labels(planned("hops"), task).fit(task, progress=False)
    once = len(found)
    room.near_labels(planned("hops", epochs=30), task).fit(task, progress=False)
    assert len(found) == 2 * once
    planned("hops", batch=60, fan_out="3/3").fit(task, progress=False)
    assert len(found) - 2 * once > OPTIONS["epochs"]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("sbm-gcn", {}),  # which models the graph as a whole
        ("gcn", {"batch": 20}),  # asked for otherwise
        ("grand", {}),  # needs the whole graph at once
        ("appnp", {}),  # everything is near
    ],
)
def test_where_that_is_not_possible_or_spares_little(task, large, model, options):
    options = {**OPTIONS, **options} if model != "grand" else {"epochs": 2, **options}
    assert room.near_labels(Plan.check(model, "elbo", 1, 3, "mlp", "cpu", options), task) is None


def test_small_graphs_are_trained_as_a_whole(task):
    assert room.near_labels(planned("gcn"), task) is None


def test_an_estimator_does_so_and_it_counts_less(task, large):
    one = Candidate("hops", "elbo", {"hidden": 8})
    views = {"given": FeatureTransform.fit("given", task.features, np.zeros(task.num_features, dtype=bool))}
    search = Search(task, views, {"epochs": 5, "patience": 5}, "cpu", (0,), EFFORTS["quick"])
    sized = search.sized(one)
    assert sized.options == {"hidden": 8, "batch": 60, "fan_out": "0/0"}
    assert sized.price < one.price / 2
