"""Inner products over pairs of nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import array, cpu_kernels


def gather(nodes: Tensor, index: Tensor) -> Tensor:
    """(R, P, ...) rows of nodes (R, n, ...) at an index (P,) shared by the replicas, or (R, P) of their own."""
    if index.dim() == 1:
        return nodes.index_select(1, index)
    tail = nodes.shape[2:]
    wide = index.view(*index.shape, *(1 for _ in tail)).expand(*index.shape, *tail)
    return nodes.gather(1, wide)


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """(R, P): left_i . right_j for left and right (R, n, h) and pairs i, j of shape (P,) or (R, P)."""
    if cpu_kernels(left) is None:
        return (gather(left, i) * gather(right, j)).sum(2)
    out: Tensor = _PairDot.apply(left, right, i, j)
    return out


def _rows(index: Tensor) -> Any:
    return array(index if index.dim() == 2 else index.unsqueeze(0))


class _PairDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
        kernels = cpu_kernels(left)
        assert kernels is not None
        out = torch.empty(left.shape[0], i.shape[-1], dtype=left.dtype)
        kernels.pair_dot(array(left), array(right), _rows(i), _rows(j), out.numpy())
        ctx.save_for_backward(left, right, i, j)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        left, right, i, j = ctx.saved_tensors
        kernels = cpu_kernels(left)
        assert kernels is not None
        grad_left = torch.zeros(left.shape, dtype=left.dtype)
        grad_right = torch.zeros(right.shape, dtype=right.dtype)
        numbers = (array(grads[0]), array(left), array(right), _rows(i), _rows(j))
        kernels.pair_dot_backward(*numbers, grad_left.numpy(), grad_right.numpy())
        return grad_left, grad_right, None, None
