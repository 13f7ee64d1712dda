"""Features in any form that a caller may have them, and missing values filled in from the neighbours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from g3nn.base.errors import Problems
from g3nn.base.parse import NO_EDGES
from g3nn.graph.features import FeatureTable, as_kind, read_features

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=np.float32)
FRAME = pa.table({"a": [1.0, 0.0], "b": [False, True], "c": [2, 0]})


def features(X, missing="error"):
    problems = Problems()
    return read_features(X, missing, problems), problems.found


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


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
    np.testing.assert_array_equal(dense(found.matrix), DENSE)
    assert sp.issparse(found.matrix) == (sp.issparse(given) or getattr(given, "is_sparse", False))


def test_a_data_frame_brings_names_and_its_booleans_and_nulls_become_numbers():
    found, problems = features(FRAME)
    assert (problems, found.names) == ([], ("a", "b", "c"))
    np.testing.assert_array_equal(found.matrix, [[1, 0, 2], [0, 1, 0]])
    holes, _ = features(pa.table({"a": [1, None], "b": [None, True]}), "impute")
    np.testing.assert_array_equal(np.isnan(holes.matrix), [[False, True], [True, False]])


def test_columns_of_a_frame_may_be_numbered():
    found, problems = features(pd.DataFrame(DENSE, columns=[2, 0, 1]))
    assert (problems, found.names) == ([], None)
    np.testing.assert_array_equal(found.matrix, DENSE)


def test_columns_that_are_no_numbers_are_named():
    found, (problem,) = features(pa.table({"a": [1.0], "kind": ["x"]}))
    assert found is None
    assert "'kind' (String)" in problem.given


def test_missing_values_are_named_by_column():
    holes = np.full((2, 8), np.nan)
    assert "column 0, 1, 2, 3, 4 and 3 more" in features(holes)[1][0].given
    assert "column 'b'" in features(pa.table({"a": [1.0], "b": pa.array([None], pa.float64())}))[1][0].given
    assert features(holes, "impute")[1] == []
    assert features(sp.csr_array(np.array([[0.0, np.nan]])))[1][0].given == "missing values in column 1"


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
        (np.zeros(3), "shape (3,)"),
        (np.zeros((0, 3)), "shape (0, 3)"),
        (pa.table({}), "shape (0, 0)"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(given, said):
    _, problems = features(given, "impute")
    assert said in problems[0].given


def test_new_columns_are_put_in_order_or_named():
    given = features(FRAME)[0]
    problems = Problems()
    turned = given.aligned(("c", "a", "b"), 3, problems)
    np.testing.assert_array_equal(turned.matrix, DENSE[:, [2, 0, 1]] * [[1, 1, 1], [1, 1, 1 / 3]])
    assert problems.found == []
    given.aligned(("a", "b", "x"), 3, problems)
    FeatureTable(DENSE).aligned(("a", "b", "x"), 4, problems)
    assert [problem.given for problem in problems.found] == ["without 'x'; with 'c'", "3 columns"]


NAN = np.nan
X = np.array([[1.0, 4.0], [NAN, 6.0], [3.0, NAN], [NAN, NAN]], dtype=np.float32)
PATH = np.array([[0, 1], [1, 2]])


def means(matrix):
    problems = Problems()
    return FeatureTable(matrix).column_means(problems), [str(problem) for problem in problems.found]


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_means_of_what_is_known(kind):
    found, problems = means(kind(X))
    assert problems == []
    np.testing.assert_allclose(found, [2.0, 5.0])


def test_zeros_of_a_sparse_matrix_are_known():
    matrix = sp.csr_array(np.array([[0.0], [NAN], [3.0]]))
    np.testing.assert_allclose(means(matrix)[0], [1.5])


def test_a_column_without_a_value_is_named():
    assert "no value at all in column 1" in means(np.array([[1.0, NAN], [2.0, NAN]]))[1][0]


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("edges", [PATH, NO_EDGES], ids=["path", "edgeless"])
def test_known_values_stay_and_nodes_without_edges_get_the_mean(kind, edges):
    filled = FeatureTable(kind(X)).filled(edges, np.array([2.0, 5.0])).matrix
    assert sp.issparse(filled) == (kind is sp.csr_array)
    filled = dense(filled)
    assert np.isfinite(filled).all()
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[known], X[known])
    np.testing.assert_allclose(filled[3], [2.0, 5.0])
    if edges.size == 0:
        np.testing.assert_allclose([filled[1, 0], filled[2, 1]], [2.0, 5.0])


def test_a_missing_value_leans_towards_its_neighbours():
    filled = FeatureTable(X).filled(PATH, np.array([2.0, 5.0])).matrix
    # One neighbour knows 6, the mean is 5: propagation with 1 / sqrt(degrees) as weight goes part of the way.
    assert filled[2, 1] == pytest.approx(5 + 1 / np.sqrt(2))
    # The neighbours are as far below the mean as above it.
    assert filled[1, 0] == pytest.approx(2.0)


def test_the_input_is_left_alone_and_many_columns_go_in_parts():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((5, 600)).astype(np.float32)
    wide[rng.random(wide.shape) < 0.2] = NAN
    before = wide.copy()
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    average = np.nan_to_num(np.nanmean(wide, axis=0))
    filled, sparse = (FeatureTable(kind(wide)).filled(edges, average).matrix for kind in (np.array, sp.csr_array))
    np.testing.assert_array_equal(wide, before)
    np.testing.assert_allclose(sparse.toarray(), filled, rtol=1e-5)


def test_rows_are_put_below_each_other_in_the_kind_of_the_first():
    sparse = sp.csr_array(DENSE)
    assert sp.issparse(as_kind(DENSE, sparse))
    for upper, lower in ((DENSE, sparse), (sparse, DENSE)):
        both = FeatureTable(upper, ("a", "b", "c")).above(FeatureTable(lower))
        assert sp.issparse(both.matrix) == sp.issparse(upper)
        assert both.names == ("a", "b", "c")
        np.testing.assert_array_equal(dense(both.matrix), np.concatenate([DENSE, DENSE]))


def test_many_columns_are_aligned_by_looking_each_up_once():
    looked_up = 0

    class Name(str):
        def __hash__(self):
            nonlocal looked_up
            looked_up += 1
            return super().__hash__()

    names = tuple(Name(f"c{place}") for place in range(300))
    found = FeatureTable(np.arange(600.0).reshape(2, 300), names[::-1]).aligned(names, 300, Problems())
    assert found.matrix[0].tolist() == list(range(300))[::-1]
    assert looked_up < 10 * 300
