from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import Pattern, pair_dot
from g3nn.kernels.pairs import gather, pair_sum

R, N, H, P = 3, 5, 4, 8


@pytest.fixture(params=["shared", "own"])
def index(request) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs with repeats, the same for all replicas or their own."""
    torch.manual_seed(2)
    size = (2, P) if request.param == "shared" else (2, R, P)
    i, j = torch.randint(N, size)
    return i, j


def numbers(seed: int, requires_grad: bool = False) -> torch.Tensor:
    made = torch.randn(R, N, H, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(requires_grad)


def looped(left: torch.Tensor, right: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    i, j = i.expand(R, -1), j.expand(R, -1)
    rows = [[left[r, i[r, p]] @ right[r, j[r, p]] for p in range(i.shape[1])] for r in range(R)]
    return torch.stack([torch.stack(row) for row in rows])


def test_equals_a_loop(implementation, index):
    left, right = numbers(0), numbers(1)
    torch.testing.assert_close(pair_dot(left, right, *index), looped(left, right, *index), rtol=0, atol=1e-14)


def test_gradient(implementation, index):
    tensors = numbers(0, requires_grad=True), numbers(1, requires_grad=True)
    assert torch.autograd.gradcheck(lambda left, right: pair_dot(left, right, *index), tensors)


def test_gradient_where_both_sides_are_one_tensor(implementation, index):
    assert torch.autograd.gradcheck(lambda both: pair_dot(both, both, *index), numbers(0, requires_grad=True))


@pytest.mark.parametrize("count", [0, 1, 4096, 4097])
def test_chunks_leave_no_gap(count):
    left, right = numbers(0), numbers(1)
    i, j = torch.randint(N, (2, R, count), generator=torch.Generator().manual_seed(0))
    expected = (gather(left, i) * gather(right, j)).sum(2)
    torch.testing.assert_close(pair_dot(left, right, i, j), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("width", [1, 2])
def test_gather_picks_rows(index, width):
    nodes = torch.randn(R, N, width)
    i = index[0].expand(R, -1)
    expected = torch.stack([nodes[r][i[r]] for r in range(R)])
    assert torch.equal(gather(nodes, index[0]), expected)


def test_gradient_of_gather(implementation, index):
    assert torch.autograd.gradcheck(lambda nodes: gather(nodes, index[0]), numbers(0, requires_grad=True))


def ends(seed: int) -> torch.Tensor:
    """(R, N): one number of each node."""
    return numbers(seed)[:, :, 0].contiguous().requires_grad_()


def test_pair_sum_adds_the_two_ends(implementation, index):
    left, right = ends(0), ends(1)
    expected = gather(left.unsqueeze(2), index[0]) + gather(right.unsqueeze(2), index[1])
    torch.testing.assert_close(pair_sum(left, right, *index), expected.squeeze(2), rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda left, right: pair_sum(left, right, *index), (left, right))


def test_gradients_along_a_pattern_that_is_not_symmetric(implementation):
    mask = np.random.default_rng(0).random((N, N)) < 0.4
    assert (mask != mask.T).any()
    pattern = Pattern.from_scipy(sp.csr_array(mask.astype(float)))
    pairs = pattern.row.long(), pattern.col.long(), pattern
    wide = numbers(0, requires_grad=True), numbers(1, requires_grad=True)
    assert torch.autograd.gradcheck(lambda left, right: pair_dot(left, right, *pairs), wide)
    assert torch.autograd.gradcheck(lambda left, right: pair_sum(left, right, *pairs), (ends(0), ends(1)))
