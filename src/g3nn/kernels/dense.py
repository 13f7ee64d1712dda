"""Parts of a dense layer: the product with stacked weights, and bias, rectifier and dropout in one pass."""

from __future__ import annotations

from collections.abc import Iterator
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


_BLOCK = {"cpu": 1 << 20, "cuda": 1 << 27}
"""How many dropped values are held at once."""


def dropped_linear(x: Tensor, weight: Tensor, draw: Draw) -> Tensor:
    """(R, n, K) = dropout(x) W_r for constant x (n, h), the same for all replicas, and weight (R, h, K).

    Holds dropped rows only a block at a time: the backward pass draws them again.
    """
    if fast(x) is None:
        return torch.bmm(dropout(x.expand(len(weight), *x.shape), draw), weight)
    return _DroppedLinear.apply(x, weight, draw)


class _DroppedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, draw: Draw) -> Tensor:
        ctx.save_for_backward(x)
        ctx.draw = draw
        out = weight.new_empty(len(weight), len(x), weight.shape[2])
        for rows, dropped in _dropped_rows(x, draw):
            out[:, rows] = torch.bmm(dropped, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        (x,) = ctx.saved_tensors
        total = grads[0].new_zeros(len(grads[0]), x.shape[1], grads[0].shape[2])
        for rows, dropped in _dropped_rows(x, ctx.draw):
            total += torch.bmm(dropped.transpose(1, 2), grads[0][:, rows])
        return None, total, None


def _dropped_rows(x: Tensor, draw: Draw) -> Iterator[tuple[slice, Tensor]]:
    """(R, rows, h): the rows of x after dropout, block by block, and which rows they are."""
    R, (n, h) = len(draw.seeds), x.shape
    count = max(1, _BLOCK[x.device.type] // (R * h))
    for start in range(0, n, count):
        rows = x[start : start + count]
        dropped = fast(x).dropout(rows.reshape(1, -1), draw, start * h)
        yield slice(start, start + count), dropped.view(R, -1, h)
