"""Features made from the edges, and fits without any other."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import load_model
from g3nn.graph import features
from g3nn.graph.features import leading_vectors, structural_features
from g3nn.kernels.sparse import normalised_adjacency

pytestmark = pytest.mark.filterwarnings("ignore:no features were given")

TWO_PARTS = np.array([[0, 1, 2, 4, 5, 4], [1, 2, 3, 5, 6, 6]])


def test_degree_and_eigenvectors():
    table = structural_features(TWO_PARTS, 8, np.arange(8))
    assert table.kinds.tolist() == ["number"] + ["as-is"] * 7
    np.testing.assert_allclose(table.matrix[:, 0], np.log1p([1, 2, 2, 1, 2, 2, 2, 0]), rtol=1e-6)
    np.testing.assert_allclose((table.matrix[:7, 1:] ** 2).mean(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(table.matrix[7, 1:], 0)


def test_nodes_that_are_not_seen_are_missing_and_change_nothing():
    seen = np.arange(4)
    table = structural_features(TWO_PARTS, 8, seen)
    np.testing.assert_array_equal(np.isnan(table.matrix).all(axis=1), np.arange(8) > 3)
    np.testing.assert_array_equal(table.matrix[:4], structural_features(TWO_PARTS[:, :3], 4, seen).matrix)


def test_large_graphs_get_almost_the_same_vectors(make_graph, monkeypatch):
    edges = np.concatenate([make_graph(nodes=300).edges, make_graph(nodes=300, seed=4).edges + 300], axis=1)
    monkeypatch.setattr(features, "_CELLS", 0)
    edges = np.unique(edges, return_inverse=True)[1].reshape(2, -1)
    n = edges.max() + 1
    found = leading_vectors(edges, n)
    values = np.linalg.eigvalsh(normalised_adjacency(edges, n).toarray())[::-1][:16]
    assert found.shape == (n, 16)
    np.testing.assert_allclose(found.T @ found, np.eye(16), atol=1e-4)
    np.testing.assert_allclose(np.diag(found.T @ (normalised_adjacency(edges, n) @ found)), values, atol=0.03)
    assert (found[np.abs(found).argmax(axis=0), np.arange(16)] > 0).all()


@pytest.fixture(scope="module")
def without_features(graph, quick):
    return quick(model="gcn").fit(None, graph.y, graph.edges, val=graph.val)


def test_a_fit_without_features(without_features, graph, quick):
    assert without_features.score(None, graph.truth) > 0.5
    adjacency = sp.coo_array((np.ones(graph.edges.shape[1]), tuple(graph.edges)), shape=(150, 150))
    whole = nx.Graph(graph.edges.T.tolist())
    whole.add_nodes_from(range(150))
    with pytest.warns(G3NNWarning, match="log degree and 64 leading eigenvectors"):
        sparse = quick(model="gcn").fit(None, graph.y, adjacency, val=graph.val)
    np.testing.assert_array_equal(sparse.predict_proba(), without_features.predict_proba())
    assert quick(model="gcn", epochs=1, inductive=True).fit(None, graph.y, whole).predict().shape == (150,)


def test_new_nodes_without_features_are_filled_in_from_their_neighbours(without_features, graph, tmp_path):
    expected = without_features.predict_proba()
    np.testing.assert_array_equal(without_features.predict_proba(edges=graph.edges), expected)
    new = without_features.predict_proba(edges=np.array([[150, 150, 151], [3, 4, 5]]))
    assert new.shape == (2, 3)
    without_features.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(edges=np.array([[150, 150, 151], [3, 4, 5]])), new, atol=1e-6)
    with pytest.raises(InputError, match="fitted without"):
        without_features.predict(graph.X[:2])
    with pytest.raises(InputError, match="among fitted nodes alone"):
        without_features.predict(edges=graph.edges[:, :5])


def test_neither_features_nor_edges(graph, quick):
    with pytest.raises(InputError, match="X: got nothing, and no edges"):
        quick().fit(None, graph.y)
    with pytest.raises(InputError, match="X and y: got nothing"):
        quick().fit(None, None, graph.edges)
