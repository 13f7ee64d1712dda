"""Dropout with a mask that is a function of (seed, counter, position): never stored, independent of other replicas."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Draw
from g3nn.kernels.backend import fast


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    """(R, size) int64 with 32 uniform random bits each."""
    return (fast(seeds) or reference).uniform_bits(seeds, counter, size)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    """(R, count) int64, uniform in 0 .. high - 1, each from 53 random bits."""
    return (fast(seeds) or reference).uniform_integers(seeds, counter, high, count)


def dropout(x: Tensor, draw: Draw) -> Tensor:
    """x (R, ...) with positions set to zero at the rate of the draw, the others scaled up."""
    flat = x.reshape(x.shape[0], -1)
    if fast(x) is None:
        keep = reference.keep_mask(draw.seeds, draw.counter, flat.shape[1], draw.threshold)
        return (flat * keep * draw.scale).view_as(x)
    return _Dropout.apply(flat, draw).view_as(x)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, draw: Draw) -> Tensor:
        ctx.draw = draw
        return fast(x).dropout(x, draw)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return fast(grads[0]).dropout(grads[0], ctx.draw), None
