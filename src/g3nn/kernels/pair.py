"""Rows and inner products at pairs of nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


def gather(nodes: Tensor, index: Tensor) -> Tensor:
    """(R, P, h): rows of nodes (R, n, h) at an index (P,) that replicas share, or (R, P)."""
    if fast(nodes) is None:
        return _rows_at(nodes, index)
    return _Gather.apply(nodes, index)


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None = None) -> Tensor:
    """(R, P): left_i . right_j for left and right (R, n, h) and pairs i, j of shape (P,) or (R, P).

    Pairs that stay the same can come with their pattern (rows i, columns j, in the same order). Gradients are then sums
    along its rows and columns instead of scattered additions.
    """
    if fast(left) is None:
        return (_rows_at(left, i) * _rows_at(right, j)).sum(2)
    return _PairDot.apply(left, right, i, j, pattern)


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None = None) -> Tensor:
    """(R, P): left_i + right_j for left and right (R, n)."""
    if fast(left) is None:
        return (_rows_at(left.unsqueeze(2), i) + _rows_at(right.unsqueeze(2), j)).squeeze(2)
    return _PairSum.apply(left, right, i, j, pattern)


def _rows_at(nodes: Tensor, index: Tensor) -> Tensor:
    if index.dim() == 1:
        return nodes.index_select(1, index)
    return nodes.gather(1, index.long().unsqueeze(2).expand(*index.shape, nodes.shape[2]))


class _Gather(torch.autograd.Function):
    """Unlike torch's own on a GPU, its gradient adds rows in a fixed order."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.n = nodes.shape[1]
        return _rows_at(nodes, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return fast(grads[0]).scatter_rows(grads[0], index, ctx.n), None


class _PairDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None) -> Tensor:
        ctx.save_for_backward(left, right, i, j)
        ctx.pattern = pattern
        return fast(left).pair_dot(left, right, i, j)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        left, right, i, j = ctx.saved_tensors
        kernels = fast(left)
        if ctx.pattern is None:
            ends = kernels.pair_dot_backward(grads[0], left, right, i, j)
        else:
            grad_left = kernels.spmm(ctx.pattern, grads[0], right, None, False)
            ends = grad_left, kernels.spmm(ctx.pattern, grads[0], left, None, True)
        return *ends, None, None, None


class _PairSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None) -> Tensor:
        ctx.save_for_backward(i, j)
        ctx.pattern, ctx.n = pattern, left.shape[1]
        return fast(left).pair_sum(left, right, i, j)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        i, j = ctx.saved_tensors
        kernels = fast(grads[0])
        if ctx.pattern is None:
            rows = grads[0].unsqueeze(2)
            ends = [kernels.scatter_rows(rows, index, ctx.n).squeeze(2) for index in (i, j)]
        else:
            ones = grads[0].new_ones(grads[0].shape[0], ctx.n, 1)
            ends = [kernels.spmm(ctx.pattern, grads[0], ones, None, side).squeeze(2) for side in (False, True)]
        return *ends, None, None, None
