"""Operations on nodes, for R replicas at once: products, layers, dropout, attention and sums for the loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Attention, Draw, NodeAnswers, Scales
from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


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


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """(R, n, K) = x_r W_r for x (R, n, h) and weight (R, h, K)."""
    if not x.is_cuda or fast(x) is None:
        return torch.bmm(x, weight)
    return _Linear.apply(x, weight)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    """dropout(max(0, x + b)) for x (R, n, h) and bias (R, h), without dropout if there is no draw."""
    if fast(x) is None:
        out = torch.relu(x + bias.unsqueeze(1))
        return out if draw is None else dropout(out, draw)
    return _Rectify.apply(x, bias, draw)


class _Linear(torch.autograd.Function):
    """Computes the gradient of the weight, a sum over all n nodes, faster than a library product on a GPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_x = torch.bmm(grads[0], weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return grad_x, fast(x).row_products(x, grads[0]) if ctx.needs_input_grad[1] else None


class _Rectify(torch.autograd.Function):
    """Saves only the result, which is positive exactly where the gradient passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
        kept: Tensor = fast(x).rectify(x, bias, draw)
        ctx.save_for_backward(kept)
        ctx.scale = 1.0 if draw is None else draw.scale
        return kept

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *fast(grads[0]).rectify_backward(grads[0], *ctx.saved_tensors, ctx.scale), None


_BLOCK = {"cpu": 1 << 20, "cuda": 1 << 27}
"""How many dropped values are held at once."""


def dropped_linear(x: Tensor, weight: Tensor, draw: Draw) -> Tensor:
    """(R, n, K) = dropout(x) W_r for constant x (n, h), the same for all replicas, and weight (R, h, K).

    Holds dropped rows only a block at a time: the backward pass draws them again.
    """
    if fast(x) is None:
        return torch.bmm(dropout(x.expand(len(weight), *x.shape), draw), weight)
    return _DroppedLinear.apply(x, weight, draw)


class _DroppedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, draw: Draw) -> Tensor:
        ctx.save_for_backward(x)
        ctx.draw = draw
        out = weight.new_empty(len(weight), len(x), weight.shape[2])
        for rows, dropped in _dropped_rows(x, draw):
            out[:, rows] = torch.bmm(dropped, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        (x,) = ctx.saved_tensors
        total = grads[0].new_zeros(len(grads[0]), x.shape[1], grads[0].shape[2])
        for rows, dropped in _dropped_rows(x, ctx.draw):
            total += torch.bmm(dropped.transpose(1, 2), grads[0][:, rows])
        return None, total, None


def _dropped_rows(x: Tensor, draw: Draw) -> Iterator[tuple[slice, Tensor]]:
    """(R, rows, h): the rows of x after dropout, block by block, and which rows they are."""
    R, (n, h) = len(draw.seeds), x.shape
    count = max(1, _BLOCK[x.device.type] // (R * h))
    for start in range(0, n, count):
        rows = x[start : start + count]
        dropped = fast(x).dropout(rows.reshape(1, -1), draw, start * h)
        yield slice(start, start + count), dropped.view(R, -1, h)


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


UNLABELLED = -1


class NodeSums(NamedTuple):
    """The columns of the sums that `node_terms` returns, in this order; (R,) each."""

    supervised: Tensor
    """over L: - log q(y)"""
    prior: Tensor
    """over L: - log p(y)"""
    cross_entropy: Tensor
    """over U: - sum_k q_k log p_k"""
    entropy: Tensor
    """over U: H(q)"""


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    """What the loss needs to know about the answers q and p at each node. log_q, log_p (R, n, K); label (n,), -1 in U.

    Returns the sums (R, 4) of `NodeSums`, in which a node of L has the first share as its weight and a node of U the
    second; and the labels (R, n, K) that enter the graph term: observed in L, those of q (if `of_posterior`) or p in U.
    """
    if fast(log_q) is not None:
        return _NodeTerms.apply(log_q, log_p, label, of_posterior, shares)
    labelled = (label != UNLABELLED).unsqueeze(1)
    observed = torch.nn.functional.one_hot(label.clamp_min(0), log_q.shape[2]).to(log_q.dtype) * labelled
    q = log_q.exp()
    over_labelled = [-shares[0] * (observed * answer).sum((1, 2)) for answer in (log_q, log_p)]
    over_unlabelled = [-shares[1] * torch.where(labelled, 0.0, q * answer).sum((1, 2)) for answer in (log_p, log_q)]
    soft = torch.where(labelled, observed, q if of_posterior else log_p.exp())
    return torch.stack([*over_labelled, *over_unlabelled], dim=1), soft


class _NodeTerms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        *tensors, of_posterior, shares = arguments
        ctx.save_for_backward(*tensors)
        ctx.how = of_posterior, shares
        return fast(tensors[0]).node_terms(NodeAnswers(*arguments))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        answers = NodeAnswers(*ctx.saved_tensors, *ctx.how)
        return *fast(grads[0]).node_terms_backward(*grads, answers), None, None, None
