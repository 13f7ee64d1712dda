from __future__ import annotations

import pytest
import torch

from g3nn.kernels import Draw, linear, rectify
from g3nn.kernels.nodes import dropout

R, N, H = 2, 7, 5
DRAW = Draw(torch.tensor([5, -6]), 3, 0.4)


@pytest.fixture
def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((R, N, H), (R, H)))


@pytest.mark.parametrize("draw", [None, DRAW], ids=["all", "dropout"])
def test_rectify_is_bias_then_rectifier_then_dropout(implementation, arguments, draw):
    x, bias = arguments
    expected = torch.relu(x + bias.unsqueeze(1))
    expected = expected if draw is None else dropout(expected, draw)
    torch.testing.assert_close(rectify(x, bias, draw), expected, rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(lambda *given: rectify(*given, draw), arguments)


def test_rectify_sums_the_gradient_of_the_bias_over_more_than_one_chunk():
    x = torch.randn(R, 5000, 3, dtype=torch.float64)
    bias = torch.randn(R, 3, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(rectify(x, bias, None).sum(), bias)
    torch.testing.assert_close(found, (x + bias.unsqueeze(1) > 0).double().sum(1), rtol=0, atol=1e-9)


def test_a_loss_that_is_not_a_number_stays_visible(implementation):
    x = torch.full((1, 2, 2), torch.nan)
    assert torch.isnan(rectify(x, torch.zeros(1, 2), None)).all()


def test_linear_is_the_product_of_each_replica(arguments):
    x, _ = arguments
    weight = torch.randn(R, H, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(linear(x, weight)[1], x[1] @ weight[1])
    assert torch.autograd.gradcheck(linear, (x, weight))
