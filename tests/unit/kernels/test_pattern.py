from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.base.errors import InputError
from g3nn.kernels import Pattern

MATRICES = {
    "wide, with an empty row and an empty column": [[0, 2, 0, 1], [0, 0, 0, 0], [0, 3, 0, 4]],
    "tall": [[1, 0], [0, 2], [3, 4], [0, 0], [5, 0]],
    "square": [[0, 1, 2], [3, 0, 0], [0, 4, 5]],
    "empty": [[0, 0, 0], [0, 0, 0]],
}


@pytest.fixture(params=MATRICES.values(), ids=MATRICES.keys())
def matrix(request: pytest.FixtureRequest) -> np.ndarray:
    return np.array(request.param, dtype=float)


def test_rows_rebuild_the_matrix_entry_by_entry(matrix):
    stored = sp.csr_array(matrix)
    pattern = Pattern.from_scipy(stored)
    rebuilt = sp.csr_array((stored.data, pattern.col.numpy(), pattern.rowptr.numpy()), shape=pattern.shape)
    np.testing.assert_array_equal(rebuilt.toarray(), matrix)
    assert pattern.nnz == np.count_nonzero(matrix)
    np.testing.assert_array_equal(np.stack([pattern.row.numpy(), pattern.col.numpy()]), np.argwhere(matrix).T)


def test_columns_with_perm_rebuild_the_transpose_in_row_order(implementation, matrix):
    stored = sp.csr_array(matrix)
    pattern = Pattern.from_scipy(stored)
    values = stored.data[pattern.perm.numpy()]
    shape = pattern.shape[::-1]
    rebuilt = sp.csr_array((values, pattern.t_col.numpy(), pattern.t_rowptr.numpy()), shape=shape)
    np.testing.assert_array_equal(rebuilt.toarray(), matrix.T)
    for start, stop in zip(pattern.t_rowptr[:-1].tolist(), pattern.t_rowptr[1:].tolist(), strict=True):
        rows = pattern.t_col[start:stop]
        assert torch.equal(rows, rows.sort().values)


def test_moving_to_a_device_keeps_every_number(matrix):
    pattern = Pattern.from_scipy(sp.csr_array(matrix))
    moved = pattern.to("cpu")
    assert moved.shape == pattern.shape
    for name in ("rowptr", "col", "row", "t_rowptr", "t_col", "perm"):
        assert torch.equal(getattr(moved, name), getattr(pattern, name))


def test_a_symmetric_pattern_is_its_own_transpose(implementation):
    mask = np.array([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])
    own, other = (Pattern.from_scipy(sp.csr_array(mask), symmetric) for symmetric in (True, False))
    assert own.t_col is own.col
    for name in ("t_rowptr", "t_col", "perm", "row"):
        assert torch.equal(getattr(own, name), getattr(other, name)), name


@pytest.mark.parametrize("column", [2**32 + 1, 4, -1])
def test_a_column_outside_the_matrix_is_not_cut_to_one_inside(column):
    with pytest.raises(InputError, match=r"columns 0\.\.3"):
        Pattern.from_rows(torch.tensor([0, 2]), torch.tensor([3, column]), 4)
    assert Pattern.from_rows(torch.tensor([0, 1]), torch.tensor([2**31 + 5]), 2**31 + 9).col.tolist() == [2**31 + 5]
