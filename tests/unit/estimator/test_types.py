"""Estimators on graphs with types of edges and kinds of nodes."""

from __future__ import annotations

import numpy as np
import pytest

import g3nn
from g3nn.base.errors import InputError
from g3nn.estimator import G3NNClassifier

PAPERS, PEOPLE = 90, 8
OPTIONS = {"device": "cpu", "ensemble": 1, "effort": "quick", "random_state": 0, "validation": 0.5}


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(1)
    topic = rng.integers(0, 2, PAPERS)
    author, editor = rng.integers(0, PEOPLE // 2, PAPERS) * 2 + topic, rng.integers(0, PEOPLE, PAPERS)
    pairs = np.stack([np.tile(np.arange(PAPERS), 2), PAPERS + np.concatenate([author, editor])])
    X = rng.normal(size=(PAPERS + PEOPLE, 3))
    y = np.full(PAPERS + PEOPLE, -1)
    y[:60] = topic[:60]
    given = {
        "edge_types": ["by"] * PAPERS + ["edited by"] * PAPERS,
        "node_kinds": ["paper"] * PAPERS + ["person"] * PEOPLE,
    }
    return X, y, pairs, given, topic


@pytest.fixture(scope="module")
def fitted(graph, few_models):
    X, y, pairs, given, _ = graph
    return G3NNClassifier(**OPTIONS).fit(X, y, pairs, **given)


def test_a_model_of_types_is_saved_and_read(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = g3nn.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    assert again.edge_types() == fitted.edge_types()


def test_the_type_that_says_something_is_the_first(fitted):
    first, second = fitted.edge_types()
    assert (first.name, second.name) == ("by", "edited by")
    assert first.evidence > second.evidence


def test_reasons_name_the_type(fitted):
    (reason,) = fitted.explain([0])
    assert {one.type for one in reason.neighbours} <= {"by", "edited by", "by, edited by"}
    assert reason.neighbours


def test_new_nodes_have_types_of_edges_too(fitted, graph):
    """They are papers, as all others that are by somebody."""
    X, *_, topic = graph
    writers = PAPERS + np.arange(PEOPLE)
    new = {"by": np.stack([len(X) + np.arange(PEOPLE), writers])}
    found = fitted.predict(np.zeros((PEOPLE, 3)), new)
    assert np.mean(found == np.arange(PEOPLE) % 2) >= 0.75
    assert topic.mean() == pytest.approx(0.5, abs=0.2)


def test_an_unknown_type_is_refused(fitted, graph):
    X = graph[0]
    with pytest.raises(InputError, match=r"sold by.*those of the fit: by, edited by"):
        fitted.predict(X[:1], {"sold by": np.array([[len(X)], [PAPERS]])})
