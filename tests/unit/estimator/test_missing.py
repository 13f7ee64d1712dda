from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.estimator.missing import column_means, impute
from g3nn.estimator.reading import NO_EDGES, Features

NAN = np.nan
X = np.array([[1.0, 4.0], [NAN, 6.0], [3.0, NAN], [NAN, NAN]], dtype=np.float32)
PATH = np.array([[0, 1], [1, 2]])


def means(matrix):
    problems = Problems()
    return column_means(Features(matrix), problems), [str(problem) for problem in problems.found]


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
    filled = impute(Features(kind(X)), edges, np.array([2.0, 5.0]))
    assert sp.issparse(filled) == (kind is sp.csr_array)
    dense = filled.toarray() if sp.issparse(filled) else filled
    assert np.isfinite(dense).all()
    known = ~np.isnan(X)
    np.testing.assert_array_equal(dense[known], X[known])
    np.testing.assert_allclose(dense[3], [2.0, 5.0])
    if edges.size == 0:
        np.testing.assert_allclose([dense[1, 0], dense[2, 1]], [2.0, 5.0])


def test_a_missing_value_leans_towards_its_neighbours():
    filled = impute(Features(X), PATH, np.array([2.0, 5.0]))
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
    dense = impute(Features(wide), edges, average)
    sparse = impute(Features(sp.csr_array(wide)), edges, average)
    np.testing.assert_array_equal(wide, before)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-5)
