from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import Draw, Pattern, Scales, reference, spmm, spmm_powers

R, N, M, H = 3, 6, 5, 2


@pytest.fixture(scope="module")
def matrix() -> sp.csr_array:
    """With an empty row and an empty column."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((N, M)) * (rng.random((N, M)) < 0.6)
    dense[2] = 0
    dense[:, 3] = 0
    return sp.csr_array(dense)


@pytest.fixture(scope="module")
def pattern(matrix) -> Pattern:
    return Pattern.from_scipy(matrix)


@pytest.fixture
def draw() -> Draw:
    return Draw(torch.tensor([1, 2, -3]), 4, 0.4)


def numbers(*shape: int, seed: int = 0, requires_grad: bool = False) -> torch.Tensor:
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(requires_grad)


def shared_values(matrix: sp.csr_array) -> torch.Tensor:
    return torch.from_numpy(matrix.data).unsqueeze(0)


def scattered(pattern: Pattern, values: torch.Tensor) -> torch.Tensor:
    """(R, N, M) dense matrices."""
    dense = torch.zeros(values.shape[0], *pattern.shape, dtype=values.dtype)
    dense[:, pattern.row.long(), pattern.col.long()] = values
    return dense


class TestProduct:
    @pytest.mark.parametrize("replicas", [1, R], ids=["shared", "own"])
    def test_equals_the_dense_product(self, implementation, pattern, replicas):
        values, dense = numbers(replicas, pattern.nnz), numbers(R, M, H, seed=1)
        expected = scattered(pattern, values) @ dense
        torch.testing.assert_close(spmm(pattern, values, dense), expected, rtol=0, atol=1e-14)

    @pytest.mark.slow
    def test_dropout_acts_on_stored_values_for_each_replica(self, implementation, pattern, matrix, draw):
        values, dense = shared_values(matrix), numbers(R, M, H)
        keep = reference.keep_mask(draw.seeds, draw.counter, pattern.nnz, draw.threshold)
        expected = scattered(pattern, values * keep / 0.6) @ dense
        torch.testing.assert_close(spmm(pattern, values, dense, draw), expected, rtol=0, atol=1e-14)
        assert keep.any(1).all()
        assert not keep.all(1).any()

    def test_strided_input(self, pattern):
        values, dense = numbers(1, pattern.nnz), numbers(R, H, M).transpose(1, 2)
        assert torch.equal(spmm(pattern, values, dense), spmm(pattern, values, dense.contiguous()))

    @pytest.mark.parametrize("replicas", [1, R], ids=["shared", "own"])
    def test_gradient(self, implementation, pattern, replicas):
        values, dense = numbers(replicas, pattern.nnz), numbers(R, M, H, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: spmm(pattern, values, x), dense)

    @pytest.mark.parametrize("order", [0, 3])
    def test_sum_of_powers(self, implementation, order):
        square = Pattern.from_scipy(sp.random_array((N, N), density=0.5, random_state=np.random.default_rng(0)).tocsr())
        values, dense = numbers(1, square.nnz), numbers(R, N, H, seed=1, requires_grad=True)
        each = [torch.linalg.matrix_power(scattered(square, values), t) @ dense for t in range(order + 1)]
        found = spmm_powers(square, values, dense, order)
        torch.testing.assert_close(found, torch.stack(each).sum(0), rtol=0, atol=1e-13)
        assert torch.autograd.gradcheck(lambda x: spmm_powers(square, values, x, order), dense)

    @pytest.mark.slow
    def test_gradient_with_dropout(self, implementation, pattern, matrix, draw):
        values, dense = shared_values(matrix), numbers(R, M, H, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: spmm(pattern, values, x, draw), dense)

    def test_dropout_on_values_of_each_replica_is_refused(self, pattern, draw):
        with pytest.raises(ValueError, match="shared values"):
            spmm(pattern, numbers(R, pattern.nnz), numbers(R, M, H), draw)

    def test_values_that_want_a_gradient_are_refused(self, pattern):
        with pytest.raises(ValueError, match="no gradient"):
            spmm(pattern, numbers(1, pattern.nnz, requires_grad=True), numbers(R, M, H))


SCRIPT = """
    import numba, scipy.sparse as sp, torch
    from g3nn.kernels import Draw, Pattern, attend, dropout, pair_dot, spmm

    assert numba.config.NUMBA_NUM_THREADS == 4
    torch.manual_seed(0)
    n, R, h, pairs = 400, 3, 16, 9000
    pattern = Pattern.from_scipy(sp.random_array((n, n), density=0.05, rng=0, format="csr") + sp.eye_array(n))
    shared, own = torch.rand(1, pattern.nnz), torch.rand(R, pattern.nnz)
    x, y = torch.rand(R, n, h), torch.rand(R, n, h)
    i, j = torch.randint(n, (2, R, pairs))
    draw = Draw(torch.arange(R), 5, 0.5)
    calls = {
        "spmm": (lambda x: spmm(pattern, own, x), (x,)),
        "spmm with dropout": (lambda x: spmm(pattern, shared, x, draw), (x,)),
        "dropout": (lambda x: dropout(x, draw), (x,)),
        "pair_dot": (lambda x, y: pair_dot(x, y, i, j), (x, y)),
        "attend": (lambda x, a, b: attend(pattern, x.view(R, n, 4, 4), a, b, draw=draw), (x, x[..., :4], y[..., :4])),
    }

    def everything():
        found = []
        for call, arguments in calls.values():
            leaves = [argument.detach().clone().requires_grad_() for argument in arguments]
            out = call(*leaves)
            out.pow(2).sum().backward()
            found.append([out.detach(), *(leaf.grad for leaf in leaves)])
        return found

    many = everything()
    numba.set_num_threads(1)
    one = everything()
    for name, left, right in zip(calls, many, one, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True)), name
    print("same")
"""


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit():
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "same"), done.stderr


@pytest.mark.parametrize("parts", ["left", "right", "both"])
def test_values_that_follow_from_rows_and_columns(implementation, pattern, parts):
    """The product, its gradient and both with dropout are those of the values themselves."""
    n, m = pattern.shape
    left = None if parts == "right" else torch.rand(n, dtype=torch.float64)
    right = None if parts == "left" else torch.rand(m, dtype=torch.float64)
    scales = Scales(left, right)
    row, col = (torch.ones(size, dtype=torch.float64) if s is None else s for s, size in ((left, n), (right, m)))
    values = (row[pattern.row.long()] * col[pattern.col.long()]).unsqueeze(0)
    torch.testing.assert_close(scales.values(pattern), values)
    for draw in (None, Draw(torch.tensor([1, 2]), 3, 0.4)):
        found = []
        for stored in (scales, values):
            dense = torch.randn(2, m, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
            dense.requires_grad_()
            out = spmm(pattern, stored, dense, draw)
            out.square().sum().backward()
            found.append((out, dense.grad))
        for one, two in zip(*found, strict=True):
            torch.testing.assert_close(one, two)
