"""Operations on nodes, for R replicas at once: products, layers, dropout, attention and sums for the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.arguments import Attention, Draw, NodeAnswers, Scales
from g3nn.kernels.backend import Saved, differentiable, fast
from g3nn.kernels.pattern import Pattern


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    """(R, size) int64 with 32 uniform random bits each."""
    return (fast(seeds) or reference).uniform_bits(seeds, counter, size)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    """(R, count) int64, uniform in 0 .. high - 1, each from 53 random bits."""
    return (fast(seeds) or reference).uniform_integers(seeds, counter, high, count)


def dropout(x: Tensor, draw: Draw) -> Tensor:
    """x (R, ...) with positions set to zero at the rate of the draw, the others scaled up."""

    def dropped(values: Tensor) -> Tensor:
        return (fast(x) or reference).dropout(values.reshape(len(values), -1), draw).view_as(values)

    return differentiable(lambda x: (dropped(x), ()), lambda grad: (dropped(grad),), x)


def spmm(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None = None) -> Tensor:
    """(R, n, h) = A_r @ dense_r. The stored values are constants: only `dense` gets a gradient.

    values (R, nnz), or (1, nnz) if all replicas share the matrix, or what they follow from; dense (R, m, h). A `draw`
    drops stored values, separately for each replica; the values must then be shared.
    """
    product = _product(pattern, values, draw)
    return differentiable(lambda dense: (product(dense, False), ()), lambda grad: (product(grad, True),), dense)


def spmm_powers(pattern: Pattern, values: Tensor | Scales, dense: Tensor, order: int) -> Tensor:
    """(R, n, h) = sum_t A^t @ dense_r for t = 0 .. order, as one operation, with the arguments of `spmm`."""
    product = _product(pattern, values, None)

    def forward(dense: Tensor) -> tuple[Tensor, Saved]:
        total = dense.clone()
        for _ in range(order):
            dense = product(dense, False)
            total += dense
        return total, ()

    def backward(grad: Tensor) -> Saved:
        total = grad
        for _ in range(order):
            total = product(total, True).add_(grad)
        return (total,)

    return differentiable(forward, backward, dense)


def _product(pattern: Pattern, values: Tensor | Scales, draw: Draw | None) -> Callable[[Tensor, bool], Tensor]:
    """The product with a matrix, or with its transpose."""
    stored = values.values(pattern) if isinstance(values, Scales) and draw is not None else values
    if isinstance(stored, Tensor):
        if stored.requires_grad:
            raise ValueError("the stored values of a sparse matrix get no gradient; detach them first")
        if draw is not None and stored.shape[0] != 1:
            raise ValueError("dropout on stored values needs shared values of shape (1, nnz)")
    return lambda dense, transpose: (fast(dense) or reference).spmm(pattern, stored, dense, draw, transpose)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """(R, n, K) = x_r W_r for x (R, n, h) and weight (R, h, K)."""
    kernels = fast(x)
    if not x.is_cuda or kernels is None:
        return torch.bmm(x, weight)
    of_x, of_weight = x.requires_grad, weight.requires_grad

    def backward(x: Tensor, weight: Tensor, grad: Tensor) -> Saved:
        # The gradient of the weight is a sum over all n nodes, which a library product computes slowly.
        grad_x = torch.bmm(grad, weight.transpose(1, 2)) if of_x else None
        return grad_x, kernels.row_products(x, grad) if of_weight else None

    return differentiable(lambda x, weight: (torch.bmm(x, weight), (x, weight)), backward, x, weight)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    """dropout(max(0, x + b)) for x (R, n, h) and bias (R, h), without dropout if there is no draw."""
    kernels = fast(x) or reference

    def forward(x: Tensor, bias: Tensor) -> tuple[Tensor, Saved]:
        # The result is positive exactly where the gradient passes, so nothing else needs to be saved.
        kept = kernels.rectify(x, bias, draw)
        return kept, (kept,)

    def backward(kept: Tensor, grad: Tensor) -> Saved:
        return kernels.rectify_backward(grad, kept, 1.0 if draw is None else draw.scale)

    return differentiable(forward, backward, x, bias)


_BLOCK = {"cpu": 1 << 20, "cuda": 1 << 27}
"""How many dropped values are held at once."""


def dropped_linear(x: Tensor, weight: Tensor, draw: Draw) -> Tensor:
    """(R, n, K) = dropout(x) W_r for constant x (n, h), the same for all replicas, and weight (R, h, K).

    Holds dropped rows only a block at a time: the backward pass draws them again.
    """
    kernels = fast(x) or reference
    R, (n, h) = len(weight), x.shape
    count = max(1, _BLOCK[x.device.type] // (R * h))

    def blocks(x: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """(R, rows, h): the rows of x after dropout, block by block, and which rows they are."""
        for start in range(0, n, count):
            rows = slice(start, start + count)
            yield rows, kernels.dropout(x[rows].reshape(1, -1), draw, start * h).view(R, -1, h)

    def forward(weight: Tensor) -> tuple[Tensor, Saved]:
        out = weight.new_empty(R, n, weight.shape[2])
        for rows, dropped in blocks(x):
            out[:, rows] = torch.bmm(dropped, weight)
        return out, (x,)

    def backward(x: Tensor, grad: Tensor) -> Saved:
        total = grad.new_zeros(R, h, grad.shape[2])
        for rows, dropped in blocks(x):
            total += torch.bmm(dropped.transpose(1, 2), grad[:, rows])
        return (total,)

    return differentiable(forward, backward, weight)


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
    kernels, how = fast(x) or reference, Attention(pattern, slope, draw, log_weight)

    def forward(*inputs: Tensor) -> tuple[Tensor, Saved]:
        out, alpha = kernels.attend(*inputs, how)
        return out, (*inputs, alpha)

    def backward(*saved: Tensor) -> Saved:
        *inputs, grad = saved
        return kernels.attend_backward(grad, *inputs, how)

    return differentiable(forward, backward, x, left, right)


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
    """The terms of the loss that depend on q and p at single nodes. log_q, log_p (R, n, K); label (n,), -1 in U.

    Returns the sums (R, 4) of `NodeSums`, in which a node of L has the first share as its weight and a node of U the
    second; and the labels (R, n, K) that enter the graph term: observed in L, those of q (if `of_posterior`) or p in U.
    """
    kernels = fast(log_q) or reference

    def forward(log_q: Tensor, log_p: Tensor) -> tuple[tuple[Tensor, Tensor], Saved]:
        return kernels.node_terms(NodeAnswers(log_q, log_p, label, of_posterior, shares)), (log_q, log_p, label)

    def backward(log_q: Tensor, log_p: Tensor, label: Tensor, *grads: Tensor) -> Saved:
        return kernels.node_terms_backward(*grads, NodeAnswers(log_q, log_p, label, of_posterior, shares))

    return differentiable(forward, backward, log_q, log_p)
