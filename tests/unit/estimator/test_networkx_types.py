"""Types of edges and kinds of nodes from the attributes of a NetworkX graph."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import g3nn
from g3nn.base.errors import G3NNWarning, InputError

FILMS, PEOPLE = 40, 20
N = FILMS + PEOPLE
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.array([("art", "law")[i % 2] if i < 30 else None for i in range(N)], dtype=object)
IDS = [f"n{i}" for i in range(N)]
FRAME = pd.DataFrame(X, columns=list("abc")).assign(name=IDS, y=Y)


def network(names, gaps=False):
    graph = nx.MultiDiGraph()
    for place, name in enumerate(names):
        graph.add_node(name, sort="film" if place < FILMS else "person")
    for i in range(FILMS):
        graph.add_edge(names[i], names[FILMS + i % PEOPLE], **({} if gaps and i % 9 == 0 else {"relation": "by"}))
        graph.add_edge(names[i], names[FILMS + 7 * i % PEOPLE], relation="with")
    return graph


def fitted(*data, **how):
    classifier = g3nn.G3NNClassifier("sbm-gcn", epochs=2, ensemble=1, device="cpu", label_noise=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        return classifier.fit(*data, **how)


def test_beside_an_array():
    found = fitted(X, Y, network(range(N)), edge_types="relation", node_kinds="sort").task_.relations
    assert (found.names, found.kind_names) == (("by", "with"), ("film", "person"))
    assert np.bincount(found.types).tolist() == [FILMS, FILMS]
    assert found.kinds.tolist() == [0] * FILMS + [1] * PEOPLE
    alone = fitted(None, Y, network(range(N)), edge_types="relation", node_kinds="sort")
    assert alone.task_.relations.kind_names == ("film", "person")


def test_beside_a_data_frame_and_again_in_predict():
    made = fitted(FRAME, "y", network(IDS), id="name", edge_types="relation")
    assert made.task_.relations.names == ("by", "with")
    with pytest.warns(G3NNWarning, match="ids were in the fit"):
        again = made.predict(FRAME, network(IDS))
    assert (again == made.predict()).all()
    rows = fitted(FRAME.drop(columns="name"), "y", network(range(N)), edge_types="relation")
    assert rows.task_.relations.names == ("by", "with")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, Y, network(range(N), gaps=True)), "edge_types: got 5 edges without one, the first at place 0"),
        ((FRAME.drop(columns="name"), "y", network(range(N), gaps=True)), "edge_types: got 5 edges without one"),
    ],
)
def test_edges_without_the_attribute(data, message):
    with pytest.raises(InputError, match=message):
        fitted(*data, edge_types="relation")


def test_edges_of_ids_without_the_attribute():
    with pytest.raises(InputError, match="column 'relation': got 5 gaps among 80 edges"):
        fitted(FRAME, "y", network(IDS, gaps=True), id="name", edge_types="relation")


def test_an_attribute_that_nothing_has():
    with pytest.raises(InputError) as caught:
        fitted(X, Y, network(range(N)), edge_types="kind", node_kinds="colour")
    assert [one.argument for one in caught.value.problems] == ["node_kinds", "edge_types"]
    assert "got 'colour'; expected an attribute that the graph has" in str(caught.value)


def test_what_is_used_causes_no_note():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        classifier = g3nn.G3NNClassifier("sbm-gcn", epochs=2, ensemble=1, device="cpu", label_noise=False)
        classifier.fit(X, Y, network(range(N)), edge_types="relation", node_kinds="sort")
    assert not [one for one in given if "are not used" in str(one.message)]
