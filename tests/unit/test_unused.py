"""Notes on what comes with edges and is not used."""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from g3nn.graph.unused import notes_on

ARCS = np.array([[0, 1, 2], [1, 2, 1]])
BOTH = np.concatenate([ARCS, ARCS[::-1]], axis=1)[:, :4]
DIRECTION = "edges: some have a direction, which is not used. directed=True uses it."


def matrix(pairs, values=None):
    return sp.coo_array((np.ones(pairs.shape[1]) if values is None else values, tuple(pairs)), shape=(3, 3))


ONE_WAY = {
    "networkx": nx.DiGraph(ARCS.T.tolist()),
    "igraph": igraph.Graph(3, ARCS.T.tolist(), directed=True),
    "matrix": matrix(ARCS),
    "values": matrix(BOTH, [1.0, 2, 2, 5]),
}


@pytest.mark.parametrize("edges", ONE_WAY.values(), ids=ONE_WAY)
def test_direction(edges):
    assert notes_on(edges, False, None) == (DIRECTION,)
    assert notes_on(edges, True, None) == ()


TWO_WAYS = {
    "networkx": nx.Graph(ARCS.T.tolist()),
    "igraph": igraph.Graph(3, ARCS.T.tolist()),
    "matrix": matrix(BOTH),
    "half": sp.triu(matrix(BOTH)),
    "array": ARCS,
    "nothing": None,
}


@pytest.mark.parametrize("edges", TWO_WAYS.values(), ids=TWO_WAYS)
def test_edges_without_a_direction_need_no_note(edges):
    assert notes_on(edges, False, None) == ()


def test_attributes_and_columns():
    graph = nx.Graph([(0, 1, {"weight": 2, "since": 1999}), (1, 2, {"kind": "road"})])
    graph.add_node(0, club="a")
    nodes, links = notes_on(graph, False, None)
    assert nodes == "edges: the attributes of nodes 'club' are not used. Make them columns of X."
    assert links == "edges: 'kind', 'since' of the edges are not used. `weights` takes one number for each edge."
    assert notes_on(graph, False, np.ones(2)) == (nodes,), "the caller has chosen"
    named = igraph.Graph(3, [(0, 1)], vertex_attrs={"name": list("abc"), "x": [1, 2, 3]}, edge_attrs={"type": ["t"]})
    assert [note.split("'")[1] for note in notes_on(named, False, None)] == ["x", "type"]
    frame = pa.table({"source": [0], "target": [1], "weight": [2.0], "type": ["t"]})
    assert notes_on(frame, False, None) == ()
    frame = frame.append_column("since", [[2020]])
    assert [note.split("'")[1] for note in notes_on(frame, False, None)] == ["since"]
    assert notes_on(nx.Graph([(0, 1, {"weight": 2})]), False, None) == ()


def test_arcs_both_ways_have_no_direction():
    both = nx.path_graph(3).to_directed()
    assert notes_on(both, False, None) == ()
    both.remove_edge(0, 1)
    assert "some have a direction" in notes_on(both, False, None)[0]


def test_pyg():
    def notes(pairs=BOTH, directed=False, weights=None, **parts):
        data = Data(x=torch.eye(3), edge_index=torch.tensor(pairs), **parts)
        return notes_on(data, directed, weights)

    count = BOTH.shape[1]
    assert notes() == ()
    assert notes(ARCS) == (DIRECTION,)
    assert notes(ARCS, directed=True) == ()
    assert notes(edge_attr=torch.ones(count, 1)) == notes(edge_weight=torch.ones(count)) == (), "used as weights"
    (note,) = notes(edge_attr=torch.ones(count, 2), edge_type=torch.ones(count, dtype=torch.long))
    assert "edges: 'edge_attr' of the edges are not used" in note, "types are"
    (note,) = notes(edge_attr=torch.ones(count, 1), edge_weight=torch.ones(count))
    assert "'edge_attr' of the edges" in note


def test_edges_with_types_need_no_direction():
    data = Data(x=torch.eye(3), edge_index=torch.tensor(ARCS), edge_type=torch.zeros(ARCS.shape[1]))
    assert notes_on(data, False, None) == ()
