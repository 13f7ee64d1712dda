from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from g3nn.errors import Problems
from g3nn.estimator.reading import Features, align, as_kind, below, read_edges, read_features

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=np.float32)
FRAME = pa.table({"a": [1.0, 0.0], "b": [False, True], "c": [2, 0]})
PAIRS = np.array([[0, 1, 1], [1, 2, 3]])


def features(X, missing="error"):
    problems = Problems()
    found = read_features(X, missing, problems)
    return found, [str(problem) for problem in problems.found]


def edges(given, n=4, directed=False):
    problems = Problems()
    return read_edges(given, n, directed, problems), [str(problem) for problem in problems.found]


@pytest.mark.parametrize(
    "given",
    [
        DENSE,
        DENSE.tolist(),
        sp.csr_matrix(DENSE),
        sp.coo_array(DENSE),
        torch.tensor(DENSE),
        torch.tensor(DENSE).to_sparse(),
    ],
    ids=["numpy", "list", "csr", "coo", "torch", "torch-sparse"],
)
def test_matrices_of_any_kind(given):
    found, problems = features(given)
    assert problems == []
    assert found.names is None
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix.toarray() if sp.issparse(found.matrix) else found.matrix, DENSE)


def test_sparse_stays_sparse():
    assert sp.issparse(features(sp.csr_array(DENSE))[0].matrix)


def test_a_data_frame_brings_names_and_its_booleans_and_nulls_become_numbers():
    found, problems = features(FRAME)
    assert (problems, found.names) == ([], ("a", "b", "c"))
    np.testing.assert_array_equal(found.matrix, [[1, 0, 2], [0, 1, 0]])
    holes, _ = features(pa.table({"a": [1, None], "b": [None, True]}), "impute")
    np.testing.assert_array_equal(np.isnan(holes.matrix), [[False, True], [True, False]])


def test_columns_that_are_no_numbers_are_named():
    found, (problem,) = features(pa.table({"a": [1.0], "kind": ["x"]}))
    assert found is None
    assert "'kind' (String)" in problem


def test_missing_values_are_named_by_column():
    holes = np.full((2, 8), np.nan)
    assert "column 0, 1, 2, 3, 4 and 3 more" in features(holes)[1][0]
    assert "column 'b'" in features(pa.table({"a": [1.0], "b": pa.array([None], pa.float64())}))[1][0]
    assert features(holes, "impute")[1] == []
    assert features(sp.csr_array(np.array([[0.0, np.nan]])))[1][0].startswith("X: got missing values in column 1")


def test_none_in_a_list_is_missing():
    found, problems = features([[1.0, None]], "impute")
    assert problems == []
    assert np.isnan(found.matrix[0, 1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.array([[np.inf]]), "1 infinite"),
        (np.array([[1e300]]), "1 infinite"),
        (np.array([["a"]]), "type <U1"),
        ([["a", None]], "type object"),
        (np.zeros(3), r"shape (3,)"),
        (np.zeros((0, 3)), "shape (0, 3)"),
        (pa.table({}), "shape (0, 0)"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(given, said):
    _, problems = features(given, "impute")
    assert said in problems[0]


def test_new_columns_are_put_in_order_or_named():
    given = features(FRAME)[0]
    problems = Problems()
    turned = align(given, ("c", "a", "b"), 3, problems)
    np.testing.assert_array_equal(turned.matrix, DENSE[:, [2, 0, 1]] * [[1, 1, 1], [1, 1, 1 / 3]])
    assert problems.found == []
    align(given, ("a", "b", "x"), 3, problems)
    align(Features(DENSE), ("a", "b", "x"), 4, problems)
    assert [problem.given for problem in problems.found] == ["without 'x'; with 'c'", "3 columns"]


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


def test_two_by_two_is_read_as_sources_above_targets():
    np.testing.assert_array_equal(edges([[0, 1], [2, 3]])[0], [[0, 1], [2, 3]])


def test_no_edges():
    for none in (None, [], np.zeros((2, 0))):
        assert edges(none)[0].shape == (2, 0)


def test_stored_zeros_are_no_edges():
    matrix = sp.csr_array((np.array([0.0, 1.0]), ([0, 1], [1, 2])), shape=(4, 4))
    np.testing.assert_array_equal(edges(matrix)[0], [[1], [2]])


def test_networkx_nodes_with_names_stand_for_rows_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from("dcba")
    graph.add_edge("a", "d")
    np.testing.assert_array_equal(edges(graph)[0], [[0], [3]])
    graph.remove_node("b")
    assert "a graph of 3 nodes" in edges(graph)[1][0]


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
    ],
)
def test_what_is_no_list_of_pairs_is_refused(given, said):
    _, (problem,) = edges(given)
    assert said in problem


def test_rows_are_put_below_each_other_in_the_kind_of_the_first():
    sparse = sp.csr_array(DENSE)
    assert sp.issparse(as_kind(DENSE, sparse))
    for upper, lower in ((DENSE, sparse), (sparse, DENSE)):
        both = below(upper, lower)
        assert sp.issparse(both) == sp.issparse(upper)
        np.testing.assert_array_equal(both.toarray() if sp.issparse(both) else both, np.concatenate([DENSE, DENSE]))
