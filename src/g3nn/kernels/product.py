"""Sparse times dense, for R replicas at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.backend import fast
from g3nn.kernels.draw import Draw
from g3nn.kernels.pattern import Pattern


def spmm(pattern: Pattern, values: Tensor, dense: Tensor, draw: Draw | None = None) -> Tensor:
    """(R, n, h) = A_r @ dense_r.

    values (R, nnz), or (1, nnz) where all replicas share the matrix; dense (R, m, h). With a `draw`, dropout acts on
    the stored values, separately for each replica; then the values must be shared and get no gradient.
    """
    if draw is not None and (values.shape[0] != 1 or values.requires_grad):
        raise ValueError("dropout on stored values needs shared values of shape (1, nnz) without gradient")
    out: Tensor = _SpMM.apply(values, dense, pattern, draw)
    return out


def _multiply(pattern: Pattern, values: Tensor, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    kernels = fast(dense)
    if kernels is not None:
        out: Tensor = kernels.spmm(pattern, values, dense, draw, transpose)
        return out
    if draw is not None:
        keep = reference.keep_mask(draw.seeds, draw.counter, pattern.nnz, draw.threshold)
        values = values * keep * draw.scale
    ends = (pattern.col, pattern.row) if transpose else (pattern.row, pattern.col)
    return reference.spmm(*ends, values, dense, pattern.shape[1] if transpose else pattern.shape[0])


def _entry_dots(pattern: Pattern, rows: Tensor, dense: Tensor) -> Tensor:
    kernels = fast(dense)
    if kernels is None:
        return (rows.index_select(1, pattern.row) * dense.index_select(1, pattern.col)).sum(2)
    out: Tensor = kernels.entry_dots(pattern, rows, dense)
    return out


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(values: Tensor, dense: Tensor, pattern: Pattern, draw: Draw | None) -> Tensor:
        return _multiply(pattern, values, dense, draw, transpose=False)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, dense, ctx.pattern, ctx.draw = inputs
        ctx.save_for_backward(values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        values, dense = ctx.saved_tensors
        grad = grads[0]
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            dots = _EntryDots.apply(grad, dense, ctx.pattern)
            grad_values = dots.sum(0, keepdim=True) if values.shape[0] == 1 else dots
        if ctx.needs_input_grad[1]:
            grad_dense = _SpMMTransposed.apply(values, grad, ctx.pattern, ctx.draw)
        return grad_values, grad_dense, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], values: Tensor, dense: Tensor, pattern: Pattern, draw: Draw | None
    ) -> tuple[Tensor, int]:
        return _batched(_SpMM, info.batch_size, in_dims, values, dense, pattern, draw), 0


class _SpMMTransposed(torch.autograd.Function):
    """The gradient of `_SpMM` for its dense factor, a function of its own so that it can carry a vmap rule."""

    @staticmethod
    def forward(values: Tensor, grad: Tensor, pattern: Pattern, draw: Draw | None) -> Tensor:
        return _multiply(pattern, values, grad, draw, transpose=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """First derivatives only: nothing is kept."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], values: Tensor, grad: Tensor, pattern: Pattern, draw: Draw | None
    ) -> tuple[Tensor, int]:
        return _batched(_SpMMTransposed, info.batch_size, in_dims, values, grad, pattern, draw), 0


class _EntryDots(torch.autograd.Function):
    """The gradient of `_SpMM` for its values."""

    @staticmethod
    def forward(rows: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        return _entry_dots(pattern, rows, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """First derivatives only: nothing is kept."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], rows: Tensor, dense: Tensor, pattern: Pattern) -> tuple[Tensor, int]:
        rows, dense = (
            _mapped_first(rows, in_dims[0], info.batch_size),
            _mapped_first(dense, in_dims[1], info.batch_size),
        )
        out: Tensor = _EntryDots.apply(rows.flatten(0, 1), dense.flatten(0, 1), pattern)
        return out.view(*rows.shape[:2], -1), 0


def _mapped_first(tensor: Tensor, dim: int | None, batch: int) -> Tensor:
    return tensor.expand(batch, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _batched(function: Any, batch: int, in_dims: tuple[Any, ...], values: Tensor, dense: Tensor, *rest: Any) -> Tensor:
    """A mapped dimension is one more replica dimension: fold the two, multiply once, unfold."""
    if rest[1] is not None:
        raise ValueError("dropout on stored values cannot be mapped: its seeds belong to the replicas")
    dense = _mapped_first(dense, in_dims[1], batch)
    R = dense.shape[1]
    if in_dims[0] is not None or values.shape[0] != 1:
        values = _mapped_first(values, in_dims[0], batch).expand(batch, R, -1).flatten(0, 1)
    out: Tensor = function.apply(values, dense.flatten(0, 1), *rest)
    return out.view(batch, R, *out.shape[1:])
