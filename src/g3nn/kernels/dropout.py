"""Dropout whose mask is a function of (seed, counter, position): nothing is stored, neighbours do not matter."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.backend import array, cpu_kernels


class Draw(NamedTuple):
    """One random draw for every replica: seeds (R,) int64, the number of the draw, and the rate of dropout."""

    seeds: Tensor
    counter: int | Tensor
    rate: float

    @property
    def threshold(self) -> int:
        """A position is kept when its 32 random bits reach this."""
        return min(round(self.rate * 2.0**32), 2**32 - 1)

    @property
    def scale(self) -> float:
        return 1.0 / (1.0 - self.rate)


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    """(R, size) int64 with 32 uniform random bits each."""
    kernels = cpu_kernels(seeds)
    if kernels is None:
        return reference.uniform_bits(seeds, counter, size)
    out = torch.empty(seeds.shape[0], size, dtype=torch.uint32)
    kernels.uniform_bits(array(seeds), counter, out.numpy())
    return out.to(torch.int64)


def dropout(x: Tensor, draw: Draw) -> Tensor:
    """x (R, ...) with each position zeroed at the rate of the draw and the others scaled up."""
    flat = x.reshape(x.shape[0], -1)
    if cpu_kernels(x) is None:
        keep = reference.keep_mask(draw.seeds, draw.counter, flat.shape[1], draw.threshold)
        return (flat * keep * draw.scale).view_as(x)
    out: Tensor = _Dropout.apply(flat, draw)
    return out.view_as(x)


def _masked(x: Tensor, draw: Draw) -> Tensor:
    kernels = cpu_kernels(x)
    assert kernels is not None
    source, out = array(x), torch.empty(x.shape, dtype=x.dtype)
    kernels.dropout(source, array(draw.seeds), draw.counter, draw.threshold, source.dtype.type(draw.scale), out.numpy())
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, draw: Draw) -> Tensor:
        ctx.draw = draw
        return _masked(x, draw)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _masked(grads[0], ctx.draw), None
