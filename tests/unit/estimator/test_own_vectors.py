"""Models with a learned vector for each node: new nodes, inductive fits, other graphs, and back from a folder."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.estimator import Nodes, load_model

pytestmark = pytest.mark.filterwarnings("ignore:.* new nodes have no edge")


@pytest.fixture(scope="module", params=[False, True], ids=["transductive", "inductive"])
def linkx(graph, quick, request):
    """Of the nodes of this graph, labelled ones lie between others."""
    classifier = quick(model="linkx", epochs=5, inductive=request.param)
    return classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)


def test_a_new_node_with_the_neighbours_and_features_of_an_old_one_gets_its_answer(linkx, graph):
    old = np.unique(graph.edges)[:7]
    pairs = [(150 + place, other) for place, node in enumerate(old) for other in neighbours(graph, node)]
    new = linkx.predict_proba(graph.X[old], np.array(pairs).T)
    np.testing.assert_allclose(new, linkx.predict_proba()[old], atol=1e-6)
    elsewhere = [(150 + place, (node + 1) % 150) for place, node in enumerate(old)]
    assert not np.allclose(linkx.predict_proba(graph.X[old], np.array(elsewhere).T), new, atol=1e-4)


def test_it_answers_the_same_when_it_was_loaded(linkx, graph, tmp_path):
    linkx.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    new = graph.X[:2], np.array([[150, 151, 150], [0, 1, 151]])
    for question in ((), new, (Nodes(graph.X[:90], graph.edges[:, (graph.edges < 90).all(axis=0)]),)):
        np.testing.assert_array_equal(loaded.predict_proba(*question), linkx.predict_proba(*question))


def test_an_inductive_fit_is_one_on_the_labelled_nodes(graph, quick):
    known, rest = np.flatnonzero(graph.y >= 0), np.flatnonzero(graph.y < 0)
    number = np.argsort(np.concatenate([known, rest]))
    edges = number[graph.edges]
    inside = (edges < known.size).all(axis=0)
    how = {"model": "linkx", "epochs": 5}
    part = quick(**how).fit(graph.X[known], graph.y[known], edges[:, inside], val=number[graph.val])
    whole = quick(**how, inductive=True).fit(graph.X, graph.y, graph.edges, val=graph.val)
    new = part.predict_proba(graph.X[rest], edges[:, ~inside])
    np.testing.assert_allclose(whole.predict_proba()[rest], new, atol=1e-5)


@pytest.mark.parametrize("count", [90, 150])
def test_the_nodes_of_another_graph_have_no_vectors(linkx, graph, count):
    """So their numbers say nothing, even where they are those of fitted nodes."""
    edges = graph.edges[:, (graph.edges < count).all(axis=0)][:, 1:]
    here = linkx.predict_proba(Nodes(graph.X[:count], edges))
    turned = linkx.predict_proba(Nodes(graph.X[:count][::-1], count - 1 - edges))
    np.testing.assert_allclose(turned[::-1], here, atol=1e-6)


def neighbours(graph, node):
    return [int(pair.sum() - node) for pair in graph.edges.T if node in pair]
