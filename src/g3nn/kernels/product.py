"""Sparse times dense, for R replicas at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Draw, Scales
from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


def spmm(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None = None) -> Tensor:
    """(R, n, h) = A_r @ dense_r. The stored values are constants: only `dense` gets a gradient.

    values (R, nnz), or (1, nnz) if all replicas share the matrix, or what they follow from; dense (R, m, h). A `draw`
    drops stored values, separately for each replica; the values must then be shared.
    """
    if isinstance(values, Scales):
        if draw is None:
            return _SpMM.apply(dense, pattern, values, None)
        values = values.values(pattern)
    if values.requires_grad:
        raise ValueError("the stored values of a sparse matrix get no gradient; detach them first")
    if draw is not None and values.shape[0] != 1:
        raise ValueError("dropout on stored values needs shared values of shape (1, nnz)")
    return _SpMM.apply(dense, pattern, values, draw)


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, pattern: Pattern, values: Tensor | Scales, draw: Draw | None) -> Tensor:
        ctx.rest = pattern, values, draw
        return _multiply(pattern, values, dense, draw, transpose=False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        pattern, values, draw = ctx.rest
        return _multiply(pattern, values, grads[0], draw, transpose=True), None, None, None


def _multiply(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    kernels = fast(dense)
    if kernels is not None:
        return kernels.spmm(pattern, values, dense, draw, transpose)
    entries = values.values(pattern) if isinstance(values, Scales) else values
    if draw is not None:
        keep = reference.keep_mask(draw.seeds, draw.counter, pattern.nnz, draw.threshold)
        entries = entries * keep * draw.scale
    ends = (pattern.col, pattern.row) if transpose else (pattern.row, pattern.col)
    return reference.spmm(*ends, entries, dense, pattern.shape[1] if transpose else pattern.shape[0])
