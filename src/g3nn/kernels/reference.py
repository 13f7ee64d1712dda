"""The kernels of `g3nn.kernels.cpu` in plain torch, for any device and dtype; the fast kernels are tested against them.

Random bits are identical.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.kernels.arguments import AdamStep, LogisticPairs

_LOW = 0xFFFFFFFF


def _signed(value: int) -> int:
    """The signed 64-bit integer with the same bits, since torch has no unsigned arithmetic."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical right shift of a signed 64-bit tensor."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _keys(seeds: Tensor, counter: int | Tensor) -> Tensor:
    golden = _signed(0x9E3779B97F4A7C15)
    z = seeds * golden + counter
    for _ in range(2):
        z = z + golden
        z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
        z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
        z = z ^ _shift(z, 31)
    return z


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int, start: int = 0) -> Tensor:
    """(R, size) int64 tensor of 32 random bits each, those at the positions from `start` on."""
    keys = _keys(seeds, counter).unsqueeze(1)
    position = torch.arange(start, start + size, device=seeds.device).unsqueeze(0)
    page = (position >> 32) * 0x85EBCA77
    x = ((position & _LOW) * 0x9E3779B1 + (keys & _LOW)) & _LOW
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D + page) & _LOW
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _LOW
    x = (x + _shift(keys, 32)) & _LOW
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _LOW
    return x ^ (x >> 16)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    """(R, count) int64 in 0 .. high - 1: the first 32 bits from position p, 21 more from position count + p."""
    bits = uniform_bits(seeds, counter, 2 * count)
    unit = ((bits[:, :count] << 21) | (bits[:, count:] >> 11)).to(torch.float64) * 2.0**-53
    return (unit * high).to(torch.int64).clamp_(max=high - 1)


def keep_mask(seeds: Tensor, counter: int | Tensor, size: int, threshold: int) -> Tensor:
    """(R, size) booleans: the positions that dropout keeps."""
    return uniform_bits(seeds, counter, size) >= threshold


def spmm(row: Tensor, col: Tensor, values: Tensor, dense: Tensor, n: int) -> Tensor:
    """(R, n, h) = A_r @ dense_r; row and col (nnz,), values (R or 1, nnz), dense (R, m, h)."""
    messages = dense.index_select(1, col) * values.unsqueeze(2)
    return dense.new_zeros(dense.shape[0], n, dense.shape[2]).index_add_(1, row, messages)


def attend(
    row: Tensor,
    col: Tensor,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    slope: float,
    keep: Tensor | None,
    scale: float,
    log_weight: Tensor | None = None,
) -> Tensor:
    """(R, n, H, F): see the kernel of the same name. keep (R, H, nnz) or None."""
    R, n, H, _ = x.shape
    scores = left.index_select(1, row) + right.index_select(1, col)
    scores = torch.nn.functional.leaky_relu(scores, slope)
    if log_weight is not None:
        scores = scores + log_weight.unsqueeze(1)
    index = row.view(1, -1, 1).expand_as(scores)
    top = scores.new_full((R, n, H), -torch.inf).scatter_reduce(1, index, scores.detach(), "amax")
    weights = (scores - top.index_select(1, row)).exp()
    total = weights.new_zeros(R, n, H).index_add(1, row, weights)
    alpha = weights / total.index_select(1, row)
    if keep is not None:
        alpha = alpha * keep.transpose(1, 2) * scale
    messages = x.index_select(1, col) * alpha.unsqueeze(3)
    return torch.zeros_like(x).index_add(1, row, messages)


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    """Changes the parameter, both moments and, where fresh, `best` in place."""
    each = (-1, *(1 for _ in parameter.shape[1:]))
    best.copy_(torch.where(step.fresh.view(each), parameter, best))
    slope = parameter * step.decay.view(each)
    if gradient is not None:
        slope += gradient
    first.lerp_(slope, 1 - step.betas[0])
    second.mul_(step.betas[1]).addcmul_(slope, slope, value=1 - step.betas[1])
    denominator = second.sqrt().div_(step.corrections[1].sqrt()).add_(step.epsilon)
    parameter.sub_((step.lr / step.corrections[0]).view(each) * first / denominator)


def expected_logistic(pairs: LogisticPairs) -> Tensor:
    """Stores a number for each replica, pair and two classes."""
    logits = pairs.base[:, :, None, None] + pairs.table.unsqueeze(1)
    if pairs.target is not None and pairs.source is not None:
        logits = logits + pairs.target.unsqueeze(2) + pairs.source.unsqueeze(3)
    return torch.einsum("rpk,rpkl,rpl->rp", pairs.left, logsigmoid(pairs.sign * logits), pairs.right)


@torch.enable_grad()
def expected_logistic_backward(grad: Tensor, pairs: LogisticPairs) -> tuple[Tensor | None, ...]:
    tensors = [None if one is None else one.detach().requires_grad_() for one in pairs[:6]]
    found = expected_logistic(LogisticPairs._make((*tensors, pairs.sign)))
    grads = iter(torch.autograd.grad(found, [one for one in tensors if one is not None], grad))
    return tuple(None if one is None else next(grads) for one in tensors)
