from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.func import grad, vmap

from g3nn.kernels import Draw, Pattern, reference, spmm

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
        values, dense = numbers(replicas, pattern.nnz, requires_grad=True), numbers(R, M, H, requires_grad=True)
        assert torch.autograd.gradcheck(lambda v, x: spmm(pattern, v, x), (values, dense))

    def test_gradient_with_dropout(self, implementation, pattern, matrix, draw):
        values, dense = shared_values(matrix), numbers(R, M, H, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: spmm(pattern, values, x, draw), dense)

    @pytest.mark.parametrize(
        "values", [numbers(R, 3), numbers(1, 3, requires_grad=True)], ids=["own values", "with gradient"]
    )
    def test_dropout_on_other_values_is_refused(self, pattern, draw, values):
        with pytest.raises(ValueError, match="shared values"):
            spmm(pattern, values, numbers(R, M, H), draw)


BATCH = 4
MAPPED = {
    "shared values, mapped dense": (1, (None, 0)),
    "own values, mapped dense": (R, (None, 0)),
    "mapped shared values, one dense": (1, (0, None)),
    "mapped shared values, mapped dense": (1, (0, 0)),
    "mapped own values, mapped dense": (R, (0, 0)),
    "another dimension is mapped": (R, (1, 2)),
}


@pytest.fixture(params=MAPPED.values(), ids=MAPPED.keys())
def mapped(request, pattern) -> tuple[torch.Tensor, torch.Tensor, tuple[int | None, int | None]]:
    """values, dense and the mapped dimension of each."""
    replicas, in_dims = request.param

    def batched(shape: tuple[int, ...], dim: int | None, seed: int) -> torch.Tensor:
        size = shape if dim is None else (*shape[:dim], BATCH, *shape[dim:])
        return numbers(*size, seed=seed)

    values = batched((replicas, pattern.nnz), in_dims[0], seed=0)
    return values, batched((R, M, H), in_dims[1], seed=1), in_dims


def one_of(tensor: torch.Tensor, dim: int | None, index: int) -> torch.Tensor:
    return tensor if dim is None else tensor.select(dim, index)


class TestMapping:
    def test_equals_a_loop(self, implementation, pattern, mapped):
        values, dense, in_dims = mapped
        out = vmap(lambda v, x: spmm(pattern, v, x), in_dims=in_dims)(values, dense)
        each = [spmm(pattern, one_of(values, in_dims[0], b), one_of(dense, in_dims[1], b)) for b in range(BATCH)]
        torch.testing.assert_close(out, torch.stack(each), rtol=0, atol=1e-14)

    @pytest.mark.parametrize("argument", [0, 1], ids=["values", "dense"])
    def test_gradient_equals_a_loop(self, implementation, pattern, mapped, argument):
        values, dense, in_dims = mapped

        def loss(v: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return spmm(pattern, v, x).pow(3).sum()

        gradients = vmap(grad(loss, argnums=argument), in_dims=in_dims)(values, dense)
        for b in range(BATCH):
            arguments = [one_of(values, in_dims[0], b), one_of(dense, in_dims[1], b)]
            wanted = arguments[argument] = arguments[argument].detach().clone().requires_grad_()
            loss(*arguments).backward()
            torch.testing.assert_close(gradients[b], wanted.grad, rtol=0, atol=1e-12)

    def test_two_mappings_at_once(self, pattern):
        values, dense = numbers(1, pattern.nnz), numbers(2, BATCH, R, M, H)
        out = vmap(vmap(lambda x: spmm(pattern, values, x)))(dense)
        flat = spmm(pattern, values, dense.view(-1, M, H)).view(2, BATCH, R, N, H)
        torch.testing.assert_close(out, flat, rtol=0, atol=1e-14)

    def test_dropout_cannot_be_mapped(self, pattern, matrix, draw):
        with pytest.raises(ValueError, match="cannot be mapped"):
            vmap(lambda x: spmm(pattern, shared_values(matrix), x, draw))(numbers(BATCH, R, M, H))


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
        "spmm": (lambda v, x: spmm(pattern, v, x), (own, x)),
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


def test_the_number_of_threads_changes_no_bit():
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "same"), done.stderr
