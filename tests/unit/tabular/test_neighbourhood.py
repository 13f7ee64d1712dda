from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.estimator.saving import _packed, _unpacked
from g3nn.graph.task import NodeTask
from g3nn.model.tabular.models import Neighbourhood

EDGES = np.array([[0, 0, 1], [1, 2, 2]])
"""A triangle; node 3 has no neighbours."""
X = np.array([[1.0, 0.0], [3.0, 4.0], [5.0, 0.0], [7.0, 7.0]])


def graph(features, edges=EDGES, weights=None, directed=False):
    labels = np.zeros(features.shape[0], dtype=np.int64)
    return NodeTask(features, edges, labels, *[np.zeros(0, dtype=np.int64)] * 3, 2, directed, weights=weights)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_are_means_over_neighbours_and_over_theirs(form):
    given = Neighbourhood(None, 2).apply(graph(form(X)))
    first = np.array([[4.0, 2.0], [3.0, 0.0], [2.0, 2.0], [0.0, 0.0]])
    second = np.array([[2.5, 1.0], [3.0, 2.0], [3.5, 1.0], [0.0, 0.0]])
    degree = np.log1p([[2], [2], [2], [0]])
    assert sp.issparse(given) == sp.issparse(form(X))
    given = given.toarray() if sp.issparse(given) else given
    np.testing.assert_allclose(given, np.concatenate([X, first, second, degree], axis=1), rtol=1e-6)
    assert Neighbourhood(None, 1).apply(graph(form(X))).shape == (4, 5)


def test_narrow_features_have_the_extremes_among_neighbours_and_arcs_are_counted_by_direction():
    fitted = Neighbourhood.fit(graph(X, directed=True))
    given = fitted.apply(graph(X, directed=True))
    largest = np.array([[5.0, 4.0], [5.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    smallest = np.array([[3.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    degrees = np.log1p([[2, 2, 0], [2, 1, 1], [2, 0, 2], [0, 0, 0]])
    np.testing.assert_allclose(given[:, 6:], np.concatenate([largest, smallest, degrees], axis=1), rtol=1e-6)


def test_weights_count():
    given = Neighbourhood(None, 1).apply(graph(X, weights=np.array([3.0, 1.0, 1.0])))
    np.testing.assert_allclose(given[0, 2:4], [3.5, 3.0])
    np.testing.assert_allclose(given[:, 4], np.log1p([4, 4, 2, 0]), rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_where_there_would_be_too_many_columns_features_are_reduced_and_new_nodes_get_the_same_ones(form, monkeypatch):
    rng = np.random.default_rng(0)
    wide = (rng.normal(size=(80, 3)) @ rng.normal(size=(3, 200))).astype(np.float32)
    edges = np.stack([np.arange(79), np.arange(1, 80)])
    assert Neighbourhood.fit(graph(form(wide), edges)).apply(graph(form(wide), edges)).shape == (80, 2 * 200 + 1)
    monkeypatch.setattr("g3nn.model.tabular.models._MOST_CELLS", 10_000)
    fitted = Neighbourhood.fit(graph(form(wide), edges))
    columns = fitted.apply(graph(form(wide), edges))
    assert columns.shape == (80, 3 * 64 + 1)
    np.testing.assert_allclose(columns[:, :64] @ fitted.basis.T, wide, atol=1e-3)
    more = np.concatenate([wide, wide[:1]])
    grown = fitted.apply(graph(form(more), np.concatenate([edges, [[79], [80]]], axis=1)))
    np.testing.assert_allclose(grown[:78], columns[:78], atol=1e-4)
    np.testing.assert_allclose(grown[80, :64], columns[0, :64], atol=1e-4)
    arrays: dict[str, np.ndarray] = {}
    loaded = _unpacked(json.loads(json.dumps(_packed(fitted, "around", arrays))), arrays)
    np.testing.assert_array_equal(loaded.apply(graph(form(wide), edges)), columns)


def test_narrow_features_stay_and_few_nodes_have_few_components(monkeypatch):
    fitted = Neighbourhood.fit(graph(X))
    assert (fitted.basis, fitted.hops) == (None, 2)
    nowhere = np.zeros((2, 0), dtype=np.int64)
    monkeypatch.setattr("g3nn.model.tabular.models._MOST_CELLS", 100)
    few = Neighbourhood.fit(graph(np.random.default_rng(0).normal(size=(10, 200)), nowhere))
    assert few.apply(graph(np.zeros((10, 200)), nowhere)).shape == (10, 31)
