"""Softmax attention over the neighbours of each node, fused: scores, softmax, dropout and the weighted sum."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.backend import array, cpu_kernels
from g3nn.kernels.dropout import Draw
from g3nn.kernels.pattern import Pattern


def attend(
    pattern: Pattern, x: Tensor, left: Tensor, right: Tensor, slope: float = 0.2, draw: Draw | None = None
) -> Tensor:
    """out_i = sum_j a_ij x_j with a_i. = softmax_j leaky_relu(left_i + right_j) over the entries (i, j) of the pattern.

    x (R, n, H, F), left and right (R, n, H); returns (R, n, H, F). The draw is dropout on the weights a_ij.
    """
    if cpu_kernels(x) is None:
        keep = None
        if draw is not None:
            size = x.shape[2] * pattern.nnz
            keep = reference.keep_mask(draw.seeds, draw.counter, size, draw.threshold)
            keep = keep.view(-1, x.shape[2], pattern.nnz)
        scale = 1.0 if draw is None else draw.scale
        return reference.attend(pattern.row, pattern.col, x, left, right, slope, keep, scale)
    out: Tensor = _Attend.apply(x, left, right, pattern, slope, draw)
    return out


def _noise(draw: Draw | None, x: Tensor) -> tuple[Any, ...]:
    number = array(x).dtype.type
    if draw is None:
        return array(torch.zeros(x.shape[0], dtype=torch.int64)), 0, 0, number(1.0)
    return array(draw.seeds), draw.counter, draw.threshold, number(draw.scale)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, left: Tensor, right: Tensor, pattern: Pattern, slope: float, draw: Draw | None
    ) -> Tensor:
        kernels = cpu_kernels(x)
        assert kernels is not None
        R, _, H, _ = x.shape
        alpha = torch.empty(R, H, pattern.nnz, dtype=x.dtype)
        out = torch.empty(x.shape, dtype=x.dtype)
        structure = (array(pattern.rowptr), array(pattern.col))
        numbers = (array(x), array(left), array(right), array(x).dtype.type(slope))
        kernels.attend(*structure, *numbers, *_noise(draw, x), alpha.numpy(), out.numpy())
        ctx.save_for_backward(x, left, right, alpha)
        ctx.pattern, ctx.slope, ctx.draw = pattern, slope, draw
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        x, left, right, alpha = ctx.saved_tensors
        kernels = cpu_kernels(x)
        assert kernels is not None
        pattern: Pattern = ctx.pattern
        noise = _noise(ctx.draw, x)
        grad = array(grads[0])
        grad_x, grad_left, grad_right = torch.empty_like(x), torch.empty_like(left), torch.empty_like(right)
        grad_score = torch.empty_like(alpha)
        structure = (array(pattern.rowptr), array(pattern.col))
        numbers = (array(x), array(left), array(right), array(x).dtype.type(ctx.slope))
        kernels.attend_backward_scores(
            *structure, *numbers, *noise, array(alpha), grad, grad_score.numpy(), grad_left.numpy()
        )
        transposed = (array(pattern.t_rowptr), array(pattern.t_col), array(pattern.perm))
        kernels.attend_backward_sources(
            *transposed, *noise, array(alpha), grad, grad_score.numpy(), grad_x.numpy(), grad_right.numpy()
        )
        return grad_x, grad_left, grad_right, None, None, None
