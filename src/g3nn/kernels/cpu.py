"""The numba kernels as functions of tensors."""

from __future__ import annotations

import numba
import numpy as np
import torch
from torch import Tensor

from g3nn.kernels import cpu_attention as attention
from g3nn.kernels import cpu_kernels as kernels
from g3nn.kernels.adam import AdamStep
from g3nn.kernels.cpu_arrays import array, noise, number
from g3nn.kernels.cpu_nodes import (
    expected_logistic,
    expected_logistic_backward,
    node_terms,
    node_terms_backward,
    rectify,
    rectify_backward,
)
from g3nn.kernels.draw import Draw
from g3nn.kernels.pattern import Pattern

__all__ = [
    "adam",
    "attend",
    "attend_backward",
    "dropout",
    "entry_dots",
    "expected_logistic",
    "expected_logistic_backward",
    "node_terms",
    "node_terms_backward",
    "pair_dot",
    "pair_dot_backward",
    "pair_sum",
    "pair_sum_backward",
    "rectify",
    "rectify_backward",
    "scatter_rows",
    "spmm",
    "uniform_bits",
    "uniform_integers",
    "unrank_free",
]


def _rows(index: Tensor) -> np.ndarray:
    return array(index if index.dim() == 2 else index.unsqueeze(0))


def _parts(R: int) -> int:
    """Into how many ranges of nodes to cut the work of each replica, so that every thread has some."""
    return max(1, -(-numba.get_num_threads() // R))


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    out = torch.empty(seeds.shape[0], size, dtype=torch.uint32)
    kernels.uniform_bits(array(seeds), int(counter), out.numpy())
    return out.to(torch.int64)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = torch.empty(seeds.shape[0], count, dtype=torch.int64)
    kernels.uniform_integers(array(seeds), int(counter), high, out.numpy())
    return out


def dropout(x: Tensor, draw: Draw) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    kernels.dropout(array(x), *noise(draw, x), out.numpy())
    return out


def spmm(pattern: Pattern, values: Tensor, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    n = pattern.shape[1] if transpose else pattern.shape[0]
    out = torch.empty(dense.shape[0], n, dense.shape[2], dtype=dense.dtype)
    rowptr = array(pattern.t_rowptr if transpose else pattern.rowptr)
    col = array(pattern.t_col if transpose else pattern.col)
    perm = array(pattern.perm) if transpose else None
    if draw is None:
        kernels.spmm(rowptr, col, perm, array(values), array(dense), out.numpy())
    else:
        ordered = array(values[0].index_select(0, pattern.perm) if transpose else values[0])
        kernels.spmm_dropout(rowptr, col, perm, ordered, array(dense), *noise(draw, dense), out.numpy())
    return out


def entry_dots(pattern: Pattern, rows: Tensor, dense: Tensor) -> Tensor:
    out = torch.empty(dense.shape[0], pattern.nnz, dtype=dense.dtype)
    kernels.entry_dots(array(pattern.rowptr), array(pattern.col), array(rows), array(dense), out.numpy())
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    out = torch.empty(left.shape[0], i.shape[-1], dtype=left.dtype)
    kernels.pair_dot(array(left), array(right), _rows(i), _rows(j), out.numpy())
    return out


def pair_dot_backward(grad: Tensor, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    grad_left, grad_right = (torch.zeros(end.shape, dtype=end.dtype) for end in (left, right))
    numbers = (array(grad), array(left), array(right), _rows(i), _rows(j))
    kernels.pair_dot_backward(*numbers, _parts(left.shape[0]), grad_left.numpy(), grad_right.numpy())
    return grad_left, grad_right


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    R = left.shape[0]
    return left.gather(1, i.expand(R, -1)) + right.gather(1, j.expand(R, -1))


def pair_sum_backward(grad: Tensor, i: Tensor, j: Tensor, n: int) -> tuple[Tensor, Tensor]:
    first, second = (scatter_rows(grad.unsqueeze(2), index, n).squeeze(2) for index in (i, j))
    return first, second


def scatter_rows(rows: Tensor, index: Tensor, n: int) -> Tensor:
    out = torch.zeros(rows.shape[0], n, rows.shape[2], dtype=rows.dtype)
    kernels.scatter_rows(array(rows), _rows(index), _parts(rows.shape[0]), out.numpy())
    return out


def unrank_free(rank: Tensor, rowptr: Tensor, col: Tensor, n: int) -> tuple[Tensor, Tensor]:
    first, second = torch.empty_like(rank), torch.empty_like(rank)
    ends = (first.view(-1).numpy(), second.view(-1).numpy())
    kernels.unrank_free(array(rank.reshape(-1)), array(rowptr), array(col), n, *ends)
    return first, second


def attend(
    pattern: Pattern, x: Tensor, left: Tensor, right: Tensor, slope: float, draw: Draw | None
) -> tuple[Tensor, Tensor]:
    R, _, H, _ = x.shape
    alpha = torch.empty(R, H, pattern.nnz, dtype=x.dtype)
    out = torch.empty(x.shape, dtype=x.dtype)
    numbers = (array(x), array(left), array(right), number(slope, x), *noise(draw, x))
    attention.attend(array(pattern.rowptr), array(pattern.col), *numbers, alpha.numpy(), out.numpy())
    return out, alpha


def attend_backward(
    pattern: Pattern,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    slope: float,
    draw: Draw | None,
    alpha: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_x, grad_left, grad_right = (torch.empty(end.shape, dtype=x.dtype) for end in (x, left, right))
    score = torch.empty(alpha.shape, dtype=x.dtype).numpy()
    draws, g, weights = noise(draw, x), array(grad), array(alpha)
    numbers = (array(x), array(left), array(right), number(slope, x), *draws, weights, g)
    attention.attend_backward_scores(array(pattern.rowptr), array(pattern.col), *numbers, score, grad_left.numpy())
    transposed = (array(pattern.t_rowptr), array(pattern.t_col), array(pattern.perm))
    outputs = (grad_x.numpy(), grad_right.numpy())
    attention.attend_backward_sources(*transposed, *draws, weights, g, score, *outputs)
    return grad_x, grad_left, grad_right


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    R = parameter.shape[0]
    flat = [tensor.numpy().reshape(R, -1) for tensor in (parameter.detach(), first, second, best)]
    slope = None if gradient is None else array(gradient).reshape(R, -1)
    scalars = (array(step.lr), array(step.decay), *step.corrections.tolist(), *step.betas, step.epsilon)
    kernels.adam(flat[0], slope, flat[1], flat[2], *scalars, array(step.fresh), flat[3])
