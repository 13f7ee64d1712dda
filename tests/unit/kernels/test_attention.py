from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import Draw, Pattern, attend, reference
from g3nn.kernels.arguments import Attention

R, N, H, F = 2, 6, 3, 2
SLOPE = 0.2


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    """Not symmetric, so that a mistake between rows and columns shows."""
    mask = (np.random.default_rng(0).random((N, N)) < 0.3) | np.eye(N, dtype=bool)
    assert (mask != mask.T).any()
    return Pattern.from_scipy(sp.csr_array(mask.astype(float)))


@pytest.fixture
def arguments() -> tuple[torch.Tensor, ...]:
    """x, left and right."""
    torch.manual_seed(1)
    shapes = ((R, N, H, F), (R, N, H), (R, N, H))
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


@pytest.fixture(params=[None, 0.5], ids=["all", "dropout"])
def draw(request) -> Draw | None:
    return None if request.param is None else Draw(torch.tensor([5, -6]), 3, request.param)


@pytest.fixture(params=[False, True], ids=["alike", "weighted"])
def log_weight(request, pattern) -> torch.Tensor | None:
    if not request.param:
        return None
    return torch.randn(pattern.nnz, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def expected(
    pattern: Pattern, draw: Draw | None, log_weight: torch.Tensor | None, *arguments: torch.Tensor
) -> torch.Tensor:
    return reference.attend(*arguments, Attention(pattern, SLOPE, draw, log_weight))[0]


def test_equals_the_reference(implementation, pattern, arguments, draw, log_weight):
    out = attend(pattern, *arguments, slope=SLOPE, draw=draw, log_weight=log_weight)
    torch.testing.assert_close(out, expected(pattern, draw, log_weight, *arguments), rtol=0, atol=1e-14)


def test_gradient(implementation, pattern, arguments, draw, log_weight):
    def function(*given: torch.Tensor) -> torch.Tensor:
        return attend(pattern, *given, slope=SLOPE, draw=draw, log_weight=log_weight)

    assert torch.autograd.gradcheck(function, arguments)


def test_gradient_equals_that_of_the_reference(pattern, arguments, draw, log_weight):
    weight = torch.randn(R, N, H, F, dtype=torch.float64)
    out = attend(pattern, *arguments, slope=SLOPE, draw=draw, log_weight=log_weight)
    fast = torch.autograd.grad((out * weight).sum(), arguments)
    plain = torch.autograd.grad((expected(pattern, draw, log_weight, *arguments) * weight).sum(), arguments)
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_large_scores_do_not_overflow(implementation, pattern, arguments):
    x, left, right = (argument.detach() for argument in arguments)
    out = attend(pattern, x, left * 1e4, right * 1e4)
    assert torch.isfinite(out).all()


def test_weights_of_a_node_sum_to_one(implementation, pattern, arguments):
    _, left, right = arguments
    out = attend(pattern, torch.ones(R, N, H, F, dtype=torch.float64), left, right)
    torch.testing.assert_close(out, torch.ones_like(out), rtol=0, atol=1e-14)


def test_only_neighbours_are_heard(implementation, pattern, arguments):
    x, left, right = (argument.detach() for argument in arguments)
    before = attend(pattern, x, left, right)
    changed = x.clone()
    changed[:, 0] += 1
    moved = (attend(pattern, changed, left, right) != before).any(3).any(2).any(0)
    listening = torch.zeros(N, dtype=torch.bool)
    listening[pattern.row[pattern.col == 0].long()] = True
    assert torch.equal(moved, listening)
