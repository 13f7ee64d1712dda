"""Softmax attention over the neighbours of each node: scores, softmax, dropout and weighted sum in one kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Draw
from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


def attend(
    pattern: Pattern, x: Tensor, left: Tensor, right: Tensor, slope: float = 0.2, draw: Draw | None = None
) -> Tensor:
    """out_i = sum_j a_ij x_j with a_i. = softmax_j leaky_relu(left_i + right_j) over the entries (i, j) of the pattern.

    x (R, n, H, F), left and right (R, n, H); returns (R, n, H, F). The draw drops weights a_ij.
    """
    if fast(x) is not None:
        out: Tensor = _Attend.apply(x, left, right, pattern, slope, draw)
        return out
    if draw is None:
        return reference.attend(pattern.row, pattern.col, x, left, right, slope, None, 1.0)
    H, nnz = x.shape[2], pattern.nnz
    keep = reference.keep_mask(draw.seeds, draw.counter, H * nnz, draw.threshold).view(-1, H, nnz)
    return reference.attend(pattern.row, pattern.col, x, left, right, slope, keep, draw.scale)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, left: Tensor, right: Tensor, pattern: Pattern, slope: float, draw: Draw | None
    ) -> Tensor:
        out, alpha = fast(x).attend(pattern, x, left, right, slope, draw)  # type: ignore[union-attr]
        ctx.save_for_backward(x, left, right, alpha)
        ctx.rest = pattern, slope, draw
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        x, left, right, alpha = ctx.saved_tensors
        pattern, slope, draw = ctx.rest
        kernels: Any = fast(x)
        ends = kernels.attend_backward(pattern, x, left, right, slope, draw, alpha, grads[0])
        return *ends, None, None, None
