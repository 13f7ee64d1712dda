"""Rows and inner products at pairs of nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import fast


def gather(nodes: Tensor, index: Tensor) -> Tensor:
    """(R, P, h) rows of nodes (R, n, h) at an index (P,) shared by the replicas, or (R, P) of their own."""
    if fast(nodes) is None:
        return _rows_at(nodes, index)
    out: Tensor = _Gather.apply(nodes, index)
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """(R, P): left_i . right_j for left and right (R, n, h) and pairs i, j of shape (P,) or (R, P)."""
    if fast(left) is None:
        return (_rows_at(left, i) * _rows_at(right, j)).sum(2)
    out: Tensor = _PairDot.apply(left, right, i, j)
    return out


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """(R, P): left_i + right_j for left and right (R, n)."""
    one = torch.ones_like(left)
    return pair_dot(torch.stack([left, one], 2), torch.stack([one, right], 2), i, j)


def _rows_at(nodes: Tensor, index: Tensor) -> Tensor:
    if index.dim() == 1:
        return nodes.index_select(1, index)
    return nodes.gather(1, index.unsqueeze(2).expand(*index.shape, nodes.shape[2]))


class _Gather(torch.autograd.Function):
    """Its gradient adds up rows in a fixed order; torch's own does not on a GPU."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.n = nodes.shape[1]
        return _rows_at(nodes, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return fast(grads[0]).scatter_rows(grads[0], index, ctx.n), None  # type: ignore[union-attr]


class _PairDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, i, j)
        return fast(left).pair_dot(left, right, i, j)  # type: ignore[union-attr]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        left, right, i, j = ctx.saved_tensors
        ends = fast(left).pair_dot_backward(grads[0], left, right, i, j)  # type: ignore[union-attr]
        return *ends, None, None
