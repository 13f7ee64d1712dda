from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import Draw, reference
from g3nn.kernels.sparse import (
    SparseMatrix,
    arc_mean,
    edge_rows,
    neighbour_mean,
    neighbour_rows,
    neighbourhoods,
    normalised_adjacency,
)

EDGES = np.array([[0, 1, 0], [1, 2, 2]])
"""A triangle; with four nodes, node 3 is alone."""


@pytest.fixture
def dense() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((5, 4)) * (rng.random((5, 4)) < 0.5)


def test_product(implementation, dense):
    matrix = SparseMatrix.from_scipy(sp.csr_array(dense))
    block = torch.randn(3, 4, 2, dtype=torch.float64)
    assert matrix.shape == (5, 4)
    torch.testing.assert_close(matrix.matmul(block), torch.from_numpy(dense) @ block, rtol=0, atol=1e-14)


def test_product_with_dropout(implementation, dense):
    matrix = SparseMatrix.from_scipy(sp.csr_array(dense))
    draw = Draw(torch.tensor([1, 2, 3]), 1, 0.5)
    keep = reference.keep_mask(draw.seeds, draw.counter, matrix.pattern.nnz, draw.threshold).numpy()
    block = torch.randn(3, 4, 2, dtype=torch.float64)
    for r, row in enumerate(keep):
        dropped = dense.copy()
        dropped[dense != 0] *= 2.0 * row
        expected = torch.from_numpy(dropped) @ block[r]
        torch.testing.assert_close(matrix.matmul(block, draw)[r], expected, rtol=0, atol=1e-14)


def test_the_order_of_stored_entries_does_not_matter(dense):
    stored = sp.csr_array(dense)
    turned = sp.csr_array(
        (
            np.concatenate([stored.data[a:b][::-1] for a, b in zip(stored.indptr, stored.indptr[1:], strict=False)]),
            np.concatenate([stored.indices[a:b][::-1] for a, b in zip(stored.indptr, stored.indptr[1:], strict=False)]),
            stored.indptr,
        ),
        shape=stored.shape,
    )
    assert not turned.has_sorted_indices
    one, other = SparseMatrix.from_scipy(stored), SparseMatrix.from_scipy(turned)
    assert torch.equal(one.values, other.values)
    assert torch.equal(one.pattern.col, other.pattern.col)


def test_to_another_type(dense):
    matrix = SparseMatrix.from_scipy(sp.csr_array(dense)).to("cpu", torch.float32)
    assert matrix.values.dtype == torch.float32
    assert matrix.matmul(torch.ones(1, 4, 1)).dtype == torch.float32


def test_neighbourhoods_hold_both_ends_and_the_node_itself():
    expected = [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(neighbourhoods(EDGES, 4).toarray(), expected)


def test_directions_are_ignored():
    both = np.concatenate([EDGES, EDGES[::-1]], axis=1)
    for edges in (EDGES[::-1], both):
        np.testing.assert_array_equal(neighbourhoods(edges, 4).toarray(), neighbourhoods(EDGES, 4).toarray())


def test_normalised_adjacency_is_its_formula():
    rng = np.random.default_rng(1)
    A = np.triu(rng.random((9, 9)) < 0.3, 1).astype(float)
    A[:, 4] = A[4] = 0
    looped = A + A.T + np.eye(9)
    root = np.diag(looped.sum(1) ** -0.5)
    found = normalised_adjacency(np.array(np.nonzero(A)), 9).toarray()
    np.testing.assert_allclose(found, root @ looped @ root, rtol=1e-15)
    np.testing.assert_array_equal(found[4], np.eye(9)[4])


def test_without_edges_the_normalised_adjacency_is_the_identity():
    np.testing.assert_array_equal(normalised_adjacency(np.zeros((2, 0), dtype=int), 3).toarray(), np.eye(3))


def test_the_mean_over_neighbours_leaves_the_node_itself_out():
    """0 - 1 - 2, and 3 is isolated."""
    found = neighbour_mean(np.array([[0, 1], [1, 2]]), 4)
    np.testing.assert_allclose(found.toarray(), [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert found.nnz == 4


WEIGHTS = np.array([0.5, 2.0, 3.0])


def test_weights_enter_all_matrices():
    A = np.zeros((4, 4))
    A[tuple(EDGES)] = WEIGHTS
    both = A + A.T
    np.testing.assert_array_equal(neighbourhoods(EDGES, 4, WEIGHTS).toarray(), both + np.eye(4))
    root = np.diag((1 + both.sum(1)) ** -0.5)
    np.testing.assert_allclose(normalised_adjacency(EDGES, 4, WEIGHTS).toarray(), root @ (both + np.eye(4)) @ root)
    rows = np.array([[3.5], [2.5], [5.0], [1.0]])
    np.testing.assert_allclose(neighbour_mean(EDGES, 4, WEIGHTS).toarray(), both / rows)
    np.testing.assert_allclose(arc_mean(EDGES, 4, WEIGHTS).toarray(), A / np.array([[3.5], [2.0], [1.0], [1.0]]))


def test_weights_below_one_are_averaged_too():
    found = neighbour_mean(np.array([[0, 0], [1, 2]]), 3, np.array([0.1, 0.3])).toarray()
    np.testing.assert_allclose(found, [[0, 0.25, 0.75], [1, 0, 0], [1, 0, 0]])


def test_of_two_opposite_arcs_the_heavier_one_counts():
    found = neighbourhoods(np.array([[0, 1, 1], [1, 0, 2]]), 3, np.array([0.2, 3.0, 0.5])).toarray()
    np.testing.assert_array_equal(found, [[1, 3, 0], [3, 1, 0.5], [0, 0.5, 1]])


def test_rows_are_those_of_scipy_for_edges_in_any_order():
    rng = np.random.default_rng(3)
    A = np.triu(rng.random((40, 40)) < 0.1, 1)
    edges = np.array(np.nonzero(A))
    weights = rng.random(edges.shape[1])
    W = np.zeros((40, 40))
    W[edges[0], edges[1]] = weights
    shuffled, turned = rng.permutation(edges.shape[1]), rng.random(edges.shape[1]) < 0.5
    other = np.where(turned, edges[::-1], edges)[:, shuffled]
    for given, own in ((edges, weights), (other, weights[shuffled])):
        np.testing.assert_array_equal(neighbourhoods(given, 40).toarray(), A + A.T + np.eye(40))
        np.testing.assert_array_equal(neighbourhoods(given, 40, own).toarray(), W + W.T + np.eye(40))
        rowptr, col, _ = neighbour_rows(given, 40, loops=False)
        np.testing.assert_array_equal(sp.csr_array((np.ones(col.size), col, rowptr), shape=(40, 40)).toarray(), A + A.T)
        assert col.dtype == np.int32
        rows, order = edge_rows(given, 40)
        assert (order is None) == (given is edges)
        entries = np.stack([np.repeat(np.arange(40), np.diff(rows.rowptr)), rows.col])
        np.testing.assert_array_equal(entries, given if order is None else given[:, order])


def test_squared_values(dense):
    matrix = SparseMatrix.from_scipy(sp.csr_array(dense))
    torch.testing.assert_close(matrix.squared().values, matrix.values.square())
    mean = SparseMatrix.row_mean(matrix.pattern, torch.float64)
    torch.testing.assert_close(mean.squared().values, mean.values.square())
