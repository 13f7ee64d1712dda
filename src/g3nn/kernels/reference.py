"""The kernels of `g3nn.kernels.cpu` in plain torch, for any device and dtype; the fast kernels are tested against them.

Random bits are identical.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.kernels.arguments import AdamStep, Attention, Draw, LogisticPairs, NodeAnswers, Scales
from g3nn.kernels.pattern import Pattern

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


def keep_mask(seeds: Tensor, counter: int | Tensor, size: int, threshold: int, start: int = 0) -> Tensor:
    """(R, size) booleans: the positions that dropout keeps."""
    return uniform_bits(seeds, counter, size, start) >= threshold


def dropout(x: Tensor, draw: Draw, start: int = 0) -> Tensor:
    """x (R or 1, ...) for each replica of the draw."""
    flat = x.reshape(len(x), -1)
    keep = keep_mask(draw.seeds, draw.counter, flat.shape[1], draw.threshold, start)
    return (flat * keep * draw.scale).view(-1, *x.shape[1:])


def rows_at(nodes: Tensor, index: Tensor) -> Tensor:
    if index.dim() == 1:
        return nodes.index_select(1, index)
    return nodes.gather(1, index.long().unsqueeze(2).expand(*index.shape, nodes.shape[2]))


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (rows_at(left, i) * rows_at(right, j)).sum(2)


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (rows_at(left.unsqueeze(2), i) + rows_at(right.unsqueeze(2), j)).squeeze(2)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    out = torch.relu(x + bias.unsqueeze(1))
    return out if draw is None else dropout(out, draw)


def spmm(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    """(R, n, h) = A_r @ dense_r, or with the transpose of A_r; values (R or 1, nnz), dense (R, m, h)."""
    entries = values.values(pattern) if isinstance(values, Scales) else values
    entries = entries if draw is None else dropout(entries, draw)
    n, row, col = pattern.shape[0], pattern.row, pattern.col
    if transpose:
        n, row, col = pattern.shape[1], col, row
    messages = dense.index_select(1, col) * entries.unsqueeze(2)
    return dense.new_zeros(dense.shape[0], n, dense.shape[2]).index_add_(1, row, messages)


def attend(x: Tensor, left: Tensor, right: Tensor, how: Attention) -> tuple[Tensor, Tensor]:
    """(R, n, H, F): see the kernel of the same name."""
    (R, n, H, _), row, col = x.shape, how.pattern.row, how.pattern.col
    scores = left.index_select(1, row) + right.index_select(1, col)
    scores = torch.nn.functional.leaky_relu(scores, how.slope)
    if how.log_weight is not None:
        scores = scores + how.log_weight.unsqueeze(1)
    index = row.view(1, -1, 1).expand_as(scores)
    top = scores.new_full((R, n, H), -torch.inf).scatter_reduce(1, index, scores.detach(), "amax")
    weights = (scores - top.index_select(1, row)).exp()
    total = weights.new_zeros(R, n, H).index_add(1, row, weights)
    alpha = weights / total.index_select(1, row)
    if how.draw is not None:
        alpha = dropout(alpha.transpose(1, 2), how.draw).transpose(1, 2)
    messages = x.index_select(1, col) * alpha.unsqueeze(3)
    return torch.zeros_like(x).index_add(1, row, messages), alpha


def node_terms(answers: NodeAnswers) -> tuple[Tensor, Tensor]:
    """See `g3nn.kernels.node_terms`."""
    log_q, log_p, label, of_posterior, shares = answers
    labelled = (label >= 0).unsqueeze(1)
    observed = torch.nn.functional.one_hot(label.clamp_min(0), log_q.shape[2]).to(log_q.dtype) * labelled
    q = log_q.exp()
    over_labelled = [-shares[0] * (observed * answer).sum((1, 2)) for answer in (log_q, log_p)]
    over_unlabelled = [-shares[1] * torch.where(labelled, 0.0, q * answer).sum((1, 2)) for answer in (log_p, log_q)]
    soft = torch.where(labelled, observed, q if of_posterior else log_p.exp())
    return torch.stack([*over_labelled, *over_unlabelled], dim=1), soft


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
