"""Edges in any form that a caller may have them."""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from g3nn.base import parse
from g3nn.base.errors import G3NNWarning, Problems
from g3nn.base.parse import read_edges, read_weighted_edges, stated_edges, two_by_two

PAIRS = np.array([[0, 1, 1], [1, 2, 3]])


def edges(given, n=4, directed=False):
    problems = Problems()
    return read_edges(given, n, directed, problems), [str(problem) for problem in problems.found]


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        PAIRS.T,
        torch.tensor(PAIRS),
        sp.coo_array((np.ones(3), tuple(PAIRS)), shape=(4, 4)),
        sp.csr_matrix((np.ones(6), (np.concatenate(PAIRS), np.concatenate(PAIRS[::-1]))), shape=(4, 4)),
        nx.Graph(PAIRS.T.tolist()),
        pa.table({"from": PAIRS[0], "to": PAIRS[1]}),
        pa.table({"weight": [1.0, 2.0, 3.0], "target": PAIRS[1], "source": PAIRS[0]}),
    ],
    ids=["2E", "E2", "torch", "half adjacency", "adjacency", "networkx", "frame", "named frame"],
)
def test_edges_of_any_kind(given):
    found, problems = edges(given)
    assert problems == []
    np.testing.assert_array_equal(found, PAIRS)


WEIGHTED = {
    "2E": (PAIRS, [1, 2, 3]),
    "E2": (PAIRS.T, [1, 2, 3]),
    "matrix": (sp.coo_array(([1, 2, 3], tuple(PAIRS)), shape=(4, 4)), None),
    "networkx": (nx.Graph([(0, 1), (1, 2, {"weight": 2}), (1, 3, {"weight": 3})]), None),
    "igraph": (igraph.Graph(4, PAIRS.T.tolist(), edge_attrs={"weight": [1, 2, 3]}), None),
    "frame": (pa.table({"weight": [1.0, 2.0, 3.0], "target": PAIRS[1], "source": PAIRS[0]}), None),
}


@pytest.mark.parametrize(("given", "weights"), WEIGHTED.values(), ids=WEIGHTED)
def test_weights_of_any_kind(given, weights):
    problems = Problems()
    found = read_weighted_edges(given, 4, False, problems, weights)
    problems.raise_if_any()
    np.testing.assert_array_equal(found.pairs, PAIRS)
    np.testing.assert_array_equal(found.weights, [1, 2, 3])
    assert read_weighted_edges(given, 4, False, problems, False).weights is None


def test_a_weight_that_is_no_number_is_refused():
    problems = Problems()
    read_weighted_edges(nx.Graph([(0, 1, {"weight": "a"})]), 4, False, problems)
    (problem,) = problems.found
    assert str(problem).startswith("weights: got values of type <U1; expected numbers")


STATED = [(0, 1), (2, 1), (1, 2), (1, 2), (1, 2), (3, 3), (1, 3)]
"""Two edges once, one three times in one direction and once in the other, and a self-loop."""

REPEATED = {
    "2E": np.array(STATED).T,
    "E2": np.array(STATED),
    "tuples": STATED,
    "arrays": tuple(np.array(STATED).T),
    "torch": torch.tensor(STATED),
    "matrix": sp.coo_array((np.ones(len(STATED)), tuple(np.array(STATED).T)), shape=(4, 4)),
    "networkx": nx.MultiDiGraph(STATED),
    "igraph": igraph.Graph(4, STATED, directed=True),
    "frame": pa.table({"source": [i for i, _ in STATED], "target": [j for _, j in STATED]}),
}


@pytest.mark.parametrize("given", REPEATED.values(), ids=REPEATED)
def test_repeats_are_weights_as_in_tables(given):
    left = "edges: 3 edges in 7 pairs; the others are 1 self-loop, 2 repeats, 1 stated both ways"
    done = f"{left}. An edge weighs as much as it was repeated; weights=False counts each once."
    for weights, repeats, said in ((None, True, done), (False, True, left), (None, False, left)):
        problems = Problems()
        with pytest.warns(G3NNWarning) as caught:
            found = read_weighted_edges(given, 4, False, problems, weights, repeats)
        problems.raise_if_any()
        assert [str(one.message) for one in caught] == [said]
        np.testing.assert_array_equal(found.pairs, PAIRS)
        assert (None if found.weights is None else found.weights.tolist()) == ([1, 3, 1] if said == done else None)
        assert found.repeats == (said == done)
    with pytest.warns(G3NNWarning, match="4 edges in 7 pairs; the others are 1 self-loop, 2 repeats$"):
        assert read_weighted_edges(given, 4, True, Problems()).weights is None, "arcs have none, as in tables"


def test_parallel_edges_without_a_direction_are_repeats():
    graph = nx.MultiGraph([(0, 1), (2, 1), (1, 2), (1, 3)])
    with pytest.warns(G3NNWarning, match="3 edges in 4 pairs; the others are 1 repeat. An edge weighs"):
        assert read_weighted_edges(graph, 4, False, Problems()).weights.tolist() == [1, 2, 1]


def test_edges_stated_both_ways_are_no_repeats():
    """As PyG has them: neither a note nor weights, for which warnings are errors here."""
    both = np.concatenate([PAIRS, PAIRS[::-1]], axis=1)
    assert read_weighted_edges(both, 4, False, Problems()).weights is None
    with pytest.warns(G3NNWarning, match="3 edges in 12 pairs; the others are 6 repeats, 3 stated both ways"):
        found = read_weighted_edges(np.tile(both, 2), 4, False, Problems())
    assert found.weights is not None
    assert found.weights.tolist() == [2, 2, 2]


def test_two_by_two_is_read_as_any_other_array():
    for given in ([[0, 1], [2, 3]], np.array([[0, 1], [2, 3]]), torch.tensor([[0, 1], [2, 3]])):
        found, problems = edges(given)
        assert (found.tolist(), problems) == ([[0, 1], [2, 3]], [])
    assert edges((np.array([0, 1]), np.array([2, 3])))[0].tolist() == [[0, 1], [2, 3]]
    assert edges([(0, 1), (2, 3)])[0].tolist() == [[0, 2], [1, 3]], "a list of tuples lists pairs"
    assert edges([(0, 1), (2, 3), (0, 3)])[0].tolist() == [[0, 0, 2], [1, 3, 3]]


def test_two_edges_of_new_nodes_are_read_the_way_that_reaches_new_nodes():
    rows = np.array([[9, 4], [9, 2]])
    turned = r"as \(E, 2\), since so each edge has a new node: \(9, 4\) and \(9, 2\); "
    for given in (rows, rows.tolist(), torch.tensor(rows)):
        with pytest.warns(G3NNWarning, match=f"^edges: a 2 x 2 array is read {turned}a tuple of two arrays is read as"):
            np.testing.assert_array_equal(two_by_two(given, 9), rows.T)
    for given in (rows.T, np.array([[9, 10], [4, 2]]), np.array([[9, 4], [2, 10]]), [[0, 1], [2, 3]]):
        with pytest.warns(G3NNWarning, match=r"read as \(2, E\): \(\d, \d\) and .*; a list of tuples lists pairs$"):
            assert two_by_two(given, 9) is given
    for given in ([(9, 4), (9, 2)], tuple(rows), rows[:, :1], rows + 0.5, [["a", "b"], ["c", "d"]], None):
        assert two_by_two(given, 9) is given, "nothing to tell"


def test_no_edges():
    for none in (None, [], np.zeros((2, 0))):
        assert edges(none)[0].shape == (2, 0)


def test_stored_zeros_are_no_edges():
    matrix = sp.csr_array((np.array([0.0, 1.0]), ([0, 1], [1, 2])), shape=(4, 4))
    np.testing.assert_array_equal(edges(matrix)[0], [[1], [2]])


def test_networkx_nodes_with_names_are_not_taken_for_rows_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from("dcba")
    graph.add_edge("a", "d")
    found, (problem,) = edges(graph)
    assert found.shape == (2, 0)
    assert "a graph of 4 nodes with other names ('d', 'c', 'b', 'a'); expected nodes named 0..3" in problem
    assert "nodelist=NAMES" in problem
    assert "expected nodes named 0..3" in edges(nx.Graph([(1, 2), (2, 3), (3, 4)]))[1][0], "numbered from 1"


def test_direction_is_kept_where_it_counts():
    arcs = nx.DiGraph([(2, 0), (0, 2)])
    assert edges(arcs, directed=True)[0].shape == (2, 2)
    assert edges(arcs)[0].shape == (2, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((3, 3), dtype=int), "shape (3, 3)"),
        (np.zeros((2, 3)), "type float64"),
        ([[0], [9]], "1 ends outside the graph"),
        (sp.eye_array(3), "adjacency matrix of shape (3, 3)"),
        (pa.table({"a": [1], "b": [2], "c": [3]}), "columns ['a', 'b', 'c']"),
        (pa.table({"a": ["x"], "b": ["y"]}), "type object"),
        ("abc", "shape ()"),
        ({"by": PAIRS, "cites": PAIRS + 0.5}, "edges['cites']: got values of type float64"),
    ],
)
def test_what_is_no_list_of_pairs_is_refused(given, said):
    _, (problem,) = edges(given)
    assert said in problem


@pytest.mark.parametrize("part", [1, 2, 3, 100])
def test_clean_edges_are_seen_to_be_clean(monkeypatch, part):
    monkeypatch.setattr(parse, "_AT_A_TIME", part)
    clean = np.array([[0, 0, 1, 3], [1, 4, 2, 4]])
    assert parse._is_clean(clean, 5)
    assert parse._is_clean(parse.NO_EDGES, 5)
    assert not parse._is_clean(clean, 4)
    assert not parse._is_clean(clean[::-1], 5)
    assert not parse._is_clean(clean[:, ::-1], 5)
    assert not parse._is_clean(clean[:, [0, 0, 1]], 5)
    assert not parse._is_clean(clean - 1, 5)


def test_types_by_the_name_of_a_column():
    frame = pa.table({"from": PAIRS[0], "to": PAIRS[1], "what": ["a", "b", "a"]})
    problems = Problems()
    assert stated_edges(frame, 4, problems, types="what").types.tolist() == ["a", "b", "a"]
    named = pa.table({"source": PAIRS[0], "target": PAIRS[1], "type": ["a", "b", "a"]})
    assert stated_edges(named, 4, problems, types="none").types is None
    assert stated_edges({"a": PAIRS}, 4, problems, types="none").types is None
    problems.raise_if_any()
    stated_edges(named, 4, problems, types="what")
    stated_edges(PAIRS, 4, problems, types="what")
    assert [one.given for one in problems.found] == ["'what'", "'what'"]
