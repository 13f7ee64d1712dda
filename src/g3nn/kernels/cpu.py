"""The numba kernels as functions of tensors."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from g3nn.kernels import cpu_attention as attention
from g3nn.kernels import cpu_kernels as kernels
from g3nn.kernels import cpu_node_kernels as node_kernels
from g3nn.kernels.arguments import AdamStep, Draw
from g3nn.kernels.pattern import Pattern


def _array(tensor: Tensor) -> np.ndarray:
    """A contiguous numpy view of a CPU tensor, or a copy if it is strided."""
    return tensor.detach().contiguous().numpy()


def _noise(draw: Draw | None, like: Tensor) -> tuple[Any, ...]:
    """Seeds, counter, threshold and scale for a kernel; threshold 0 keeps everything."""
    if draw is None:
        return np.zeros(like.shape[0], dtype=np.int64), 0, 0, _number(1.0, like)
    return _array(draw.seeds), int(draw.counter), draw.threshold, _number(draw.scale, like)


def _number(value: float, like: Tensor) -> Any:
    """A number in the precision of `like`; a Python float would turn the kernel's arithmetic into double precision."""
    return np.float64(value) if like.dtype == torch.float64 else np.float32(value)


def _rows(index: Tensor) -> np.ndarray:
    return _array(index if index.dim() == 2 else index.unsqueeze(0))


def _parts(R: int) -> int:
    """The number of ranges of nodes into which to split each replica so that every thread has work."""
    return max(1, -(-numba.get_num_threads() // R))


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    out = torch.empty(seeds.shape[0], size, dtype=torch.uint32)
    kernels.uniform_bits(_array(seeds), int(counter), out.numpy())
    return out.to(torch.int64)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = torch.empty(seeds.shape[0], count, dtype=torch.int64)
    kernels.uniform_integers(_array(seeds), int(counter), high, out.numpy())
    return out


def dropout(x: Tensor, draw: Draw) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    kernels.dropout(_array(x), *_noise(draw, x), out.numpy())
    return out


def spmm(pattern: Pattern, values: Tensor, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    n = pattern.shape[1] if transpose else pattern.shape[0]
    out = torch.empty(dense.shape[0], n, dense.shape[2], dtype=dense.dtype)
    rowptr = _array(pattern.t_rowptr if transpose else pattern.rowptr)
    col = _array(pattern.t_col if transpose else pattern.col)
    perm = _array(pattern.perm) if transpose else None
    if draw is None:
        kernels.spmm(rowptr, col, perm, _array(values), _array(dense), out.numpy())
    else:
        ordered = _array(values[0].index_select(0, pattern.perm) if transpose else values[0])
        kernels.spmm_dropout(rowptr, col, perm, ordered, _array(dense), *_noise(draw, dense), out.numpy())
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    out = torch.empty(left.shape[0], i.shape[-1], dtype=left.dtype)
    kernels.pair_dot(_array(left), _array(right), _rows(i), _rows(j), out.numpy())
    return out


def pair_dot_backward(grad: Tensor, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    grad_left, grad_right = (torch.zeros(end.shape, dtype=end.dtype) for end in (left, right))
    numbers = (_array(grad), _array(left), _array(right), _rows(i), _rows(j))
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
    kernels.scatter_rows(_array(rows), _rows(index), _parts(rows.shape[0]), out.numpy())
    return out


def unrank_free(rank: Tensor, rowptr: Tensor, col: Tensor, n: int) -> tuple[Tensor, Tensor]:
    first, second = torch.empty_like(rank), torch.empty_like(rank)
    ends = (first.view(-1).numpy(), second.view(-1).numpy())
    kernels.unrank_free(_array(rank.reshape(-1)), _array(rowptr), _array(col), n, *ends)
    return first, second


def attend(
    pattern: Pattern, x: Tensor, left: Tensor, right: Tensor, slope: float, draw: Draw | None
) -> tuple[Tensor, Tensor]:
    R, _, H, _ = x.shape
    alpha = torch.empty(R, H, pattern.nnz, dtype=x.dtype)
    out = torch.empty(x.shape, dtype=x.dtype)
    numbers = (_array(x), _array(left), _array(right), _number(slope, x), *_noise(draw, x))
    attention.attend(_array(pattern.rowptr), _array(pattern.col), *numbers, alpha.numpy(), out.numpy())
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
    draws, g, weights = _noise(draw, x), _array(grad), _array(alpha)
    numbers = (_array(x), _array(left), _array(right), _number(slope, x), *draws, weights, g)
    attention.attend_backward_scores(_array(pattern.rowptr), _array(pattern.col), *numbers, score, grad_left.numpy())
    transposed = (_array(pattern.t_rowptr), _array(pattern.t_col), _array(pattern.perm))
    outputs = (grad_x.numpy(), grad_right.numpy())
    attention.attend_backward_sources(*transposed, *draws, weights, g, score, *outputs)
    return grad_x, grad_left, grad_right


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    R = parameter.shape[0]
    flat = [tensor.numpy().reshape(R, -1) for tensor in (parameter.detach(), first, second, best)]
    slope = None if gradient is None else _array(gradient).reshape(R, -1)
    scalars = (_array(step.lr), _array(step.decay), *step.corrections.tolist(), *step.betas, step.epsilon)
    kernels.adam(flat[0], slope, flat[1], flat[2], *scalars, _array(step.fresh), flat[3])


def _chunks(size: int) -> int:
    return -(-size // node_kernels.CHUNK)


def _total(parts: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(parts.sum(1)).to(like.dtype)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    node_kernels.rectify(_array(x), _array(bias), *_noise(draw, x), out.numpy())
    return out


def rectify_backward(grad: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    R, n, h = kept.shape
    out, sums = torch.empty(kept.shape, dtype=kept.dtype), np.empty((R, _chunks(n), h))
    node_kernels.rectify_backward(_array(grad), _array(kept), _number(scale, kept), out.numpy(), sums)
    return out, _total(sums, kept)


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    R, n, _ = log_q.shape
    sums, soft = np.empty((R, _chunks(n), 4)), torch.empty(log_q.shape, dtype=log_q.dtype)
    node_kernels.node_terms(_array(log_q), _array(log_p), _array(label), of_posterior, sums, soft.numpy())
    return _total(sums * np.repeat(shares, 2), log_q), soft


def node_terms_backward(
    log_q: Tensor,
    log_p: Tensor,
    label: Tensor,
    of_posterior: bool,
    shares: tuple[float, float],
    grad_sums: Tensor,
    grad_soft: Tensor,
) -> tuple[Tensor, Tensor]:
    grad_q, grad_p = (torch.empty(log_q.shape, dtype=log_q.dtype) for _ in range(2))
    slopes = _array(grad_sums) * np.repeat(np.array(shares, dtype=_array(grad_sums).dtype), 2)
    inputs = (_array(log_q), _array(log_p), _array(label), of_posterior, slopes, _array(grad_soft))
    node_kernels.node_terms_backward(*inputs, grad_q.numpy(), grad_p.numpy())
    return grad_q, grad_p


def _ends(target: Tensor | None, source: Tensor | None, like: Tensor) -> tuple[np.ndarray, ...]:
    """Both as arrays; an array without pairs tells the kernels that there is none."""
    none = np.empty((like.shape[0], 0, like.shape[2]), dtype=_array(like).dtype)
    return tuple(none if end is None else _array(end) for end in (target, source))


def expected_logistic(
    left: Tensor, right: Tensor, base: Tensor, target: Tensor | None, source: Tensor | None, table: Tensor, sign: float
) -> Tensor:
    out = torch.empty(base.shape, dtype=base.dtype)
    ends = _ends(target, source, left)
    node_kernels.expected_logistic(
        _array(left), _array(right), _array(base), *ends, _array(table), _number(sign, base), out.numpy()
    )
    return out


def expected_logistic_backward(
    grad: Tensor,
    left: Tensor,
    right: Tensor,
    base: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    table: Tensor,
    sign: float,
) -> tuple[Tensor | None, ...]:
    R, P, K = left.shape
    tables = np.empty((R, _chunks(P), K, K))
    inputs: tuple[Any, ...] = (_array(grad), _array(left), _array(right), _array(base))
    inputs = (*inputs, *_ends(target, source, left), _array(table), _number(sign, base))
    grad_left, grad_right, grad_target, grad_source = (torch.empty(left.shape, dtype=left.dtype) for _ in range(4))
    grad_base = torch.empty(base.shape, dtype=base.dtype)
    outputs = (grad_left, grad_right, grad_base, grad_target, grad_source)
    node_kernels.expected_logistic_backward(*inputs, *(tensor.numpy() for tensor in outputs), tables)
    ends = (None, None) if target is None else (grad_target, grad_source)
    return grad_left, grad_right, grad_base, *ends, _total(tables, table)
