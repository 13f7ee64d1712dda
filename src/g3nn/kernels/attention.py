"""Softmax attention over the neighbours of each node: scores, softmax, dropout and weighted sum in one kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Attention, Draw
from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


def attend(
    pattern: Pattern,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    slope: float = 0.2,
    draw: Draw | None = None,
    log_weight: Tensor | None = None,
) -> Tensor:
    """out_i = sum_j a_ij x_j with a_i. = softmax_j leaky_relu(left_i + right_j) over the entries (i, j) of the pattern.

    x (R, n, H, F), left and right (R, n, H); returns (R, n, H, F). The draw drops weights a_ij. log_weight (nnz,):
    log w of each entry, a constant that is added to its score, so that a_ij is in proportion to w_ij.
    """
    if fast(x) is not None:
        return _Attend.apply(x, left, right, Attention(pattern, slope, draw, log_weight))
    keep, scale = None, 1.0
    if draw is not None:
        H, nnz = x.shape[2], pattern.nnz
        keep = reference.keep_mask(draw.seeds, draw.counter, H * nnz, draw.threshold).view(-1, H, nnz)
        scale = draw.scale
    return reference.attend(pattern.row, pattern.col, x, left, right, slope, keep, scale, log_weight)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, left: Tensor, right: Tensor, how: Attention) -> Tensor:
        out, alpha = fast(x).attend(x, left, right, how)
        ctx.save_for_backward(x, left, right, alpha)
        ctx.how = how
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *fast(grads[0]).attend_backward(grads[0], *ctx.saved_tensors, ctx.how), None
