"""Parts of a dense layer: the product with stacked weights, and bias, rectifier and dropout in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.arguments import Draw
from g3nn.kernels.backend import fast
from g3nn.kernels.dropout import dropout


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """(R, n, K) = x_r W_r for x (R, n, h) and weight (R, h, K)."""
    if not x.is_cuda or fast(x) is None:
        return torch.bmm(x, weight)
    return _Linear.apply(x, weight)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    """dropout(max(0, x + b)) for x (R, n, h) and bias (R, h), without dropout if there is no draw."""
    if fast(x) is None:
        out = torch.relu(x + bias.unsqueeze(1))
        return out if draw is None else dropout(out, draw)
    return _Rectify.apply(x, bias, draw)


class _Linear(torch.autograd.Function):
    """Computes the gradient of the weight, a sum over all n nodes, faster than a library product on a GPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_x = torch.bmm(grads[0], weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return grad_x, fast(x).row_products(x, grads[0]) if ctx.needs_input_grad[1] else None


class _Rectify(torch.autograd.Function):
    """Saves only the result, which is positive exactly where the gradient passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
        kept: Tensor = fast(x).rectify(x, bias, draw)
        ctx.save_for_backward(kept)
        ctx.scale = 1.0 if draw is None else draw.scale
        return kept

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *fast(grads[0]).rectify_backward(grads[0], *ctx.saved_tensors, ctx.scale), None
