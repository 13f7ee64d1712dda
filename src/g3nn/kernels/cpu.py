"""The numba kernels as functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from g3nn.kernels import cpu_attention as attention
from g3nn.kernels import cpu_kernels as kernels
from g3nn.kernels import cpu_node_kernels as node_kernels
from g3nn.kernels import cpu_rows
from g3nn.kernels.arguments import AdamStep, Attention, Draw, LogisticPairs, NodeAnswers, Scales
from g3nn.kernels.pattern import Pattern, index_type


def _call(kernel: Callable[..., None], *arguments: Any) -> None:
    """Runs a kernel on arrays instead of tensors; it writes into those of its arguments that are contiguous."""
    kernel(*map(_plain, arguments))


def _plain(argument: Any) -> Any:
    """A contiguous numpy view of a tensor, or a copy if it is strided; those of a tuple."""
    if isinstance(argument, Tensor):
        return argument.detach().contiguous().numpy()
    return tuple(map(_plain, argument)) if isinstance(argument, tuple) else argument


def _noise(draw: Draw | None, like: Tensor) -> tuple[Any, ...]:
    """Seeds, counter, threshold and scale for a kernel; threshold 0 keeps everything."""
    if draw is None:
        return np.zeros(like.shape[0], dtype=np.int64), 0, 0, _number(1.0, like)
    return draw.seeds, int(draw.counter), draw.threshold, _number(draw.scale, like)


def _number(value: float, like: Tensor) -> Any:
    """A number in the precision of `like`; a Python float would turn the kernel's arithmetic into double precision."""
    return np.float64(value) if like.dtype == torch.float64 else np.float32(value)


def _rows(index: Tensor) -> Tensor:
    return index if index.dim() == 2 else index.unsqueeze(0)


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    out = torch.empty(seeds.shape[0], size, dtype=torch.uint32)
    _call(kernels.uniform_bits, seeds, int(counter), out)
    return out.to(torch.int64)


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = seeds.new_empty(seeds.shape[0], count)
    _call(kernels.uniform_integers, seeds, int(counter), high, out)
    return out


def dropout(x: Tensor, draw: Draw, start: int = 0) -> Tensor:
    out = x.new_empty(len(draw.seeds), x.shape[1])
    _call(kernels.dropout, x, *_noise(draw, x), start, out)
    return out


def turned(rowptr: Tensor, col: Tensor, m: int, places: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    counts, t_rowptr = torch.zeros(m, dtype=torch.int64), torch.zeros(m + 1, dtype=torch.int64)
    parts = numba.get_num_threads()
    _call(cpu_rows.count, col, parts, counts)
    torch.cumsum(counts, 0, out=t_rowptr[1:])
    t_col, perm = torch.empty(len(col), dtype=index_type(len(rowptr) - 2)), torch.empty(len(col), dtype=places)
    counts.copy_(t_rowptr[:-1])
    _call(cpu_rows.turn, rowptr, col, parts, counts, t_col, perm)
    return t_rowptr, t_col, perm


def spmm(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    n = pattern.shape[1] if transpose else pattern.shape[0]
    out = dense.new_empty(dense.shape[0], n, dense.shape[2])
    rowptr, col = (pattern.t_rowptr, pattern.t_col) if transpose else (pattern.rowptr, pattern.col)
    if isinstance(values, Scales):
        left, right = values.turned(transpose)
        # One pass over the rows is cheaper than a second number to look up for each entry.
        scaled = dense if right is None else dense * right.unsqueeze(1)
        _call(kernels.spmm, rowptr, col, None, None, left, scaled, out)
        return out
    perm = pattern.perm if transpose else None
    if draw is None:
        _call(kernels.spmm, rowptr, col, perm, values, None, dense, out)
    else:
        ordered = values[0].index_select(0, pattern.perm) if transpose else values[0]
        _call(kernels.spmm_dropout, rowptr, col, perm, ordered, dense, *_noise(draw, dense), out)
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    out = left.new_empty(left.shape[0], i.shape[-1])
    _call(kernels.pair_dot, left, right, _rows(i), _rows(j), out)
    return out


def pair_dot_backward(grad: Tensor, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    return _scatter(grad, right, j, i, left.shape[1]), _scatter(grad, left, i, j, right.shape[1])


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    out = left.new_empty(left.shape[0], i.shape[-1])
    _call(kernels.pair_sum, left, right, _rows(i), _rows(j), out)
    return out


def scatter_rows(rows: Tensor, index: Tensor, n: int) -> Tensor:
    return _scatter(None, rows, None, index, n)


def _scatter(grad: Tensor | None, rows: Tensor, source: Tensor | None, target: Tensor, n: int) -> Tensor:
    R, _, h = rows.shape
    out = rows.new_zeros(R, n, h)
    # So many ranges of nodes that every thread has work.
    parts = max(1, -(-numba.get_num_threads() // R))
    _call(kernels.scatter, grad, rows, None if source is None else _rows(source), _rows(target), parts, out)
    return out


def unrank_free(rank: Tensor, taken: Pattern, longest: int) -> tuple[Tensor, Tensor]:
    first, second = (rank.new_empty(rank.shape, dtype=taken.col.dtype) for _ in range(2))
    n, ends = taken.shape[0], (first.view(-1), second.view(-1))
    _call(kernels.unrank_free, rank.reshape(-1), taken.rowptr, taken.col, n, *ends)
    return first, second


def attend(x: Tensor, left: Tensor, right: Tensor, how: Attention) -> tuple[Tensor, Tensor]:
    pattern = how.pattern
    out, alpha = x.new_empty(x.shape), x.new_empty(x.shape[0], x.shape[2], pattern.nnz)
    numbers = (x, left, right, _number(how.slope, x), *_noise(how.draw, x))
    _call(attention.attend, pattern.rowptr, pattern.col, how.log_weight, *numbers, alpha, out)
    return out, alpha


def attend_backward(
    grad: Tensor, x: Tensor, left: Tensor, right: Tensor, alpha: Tensor, how: Attention
) -> tuple[Tensor, ...]:
    grad, pattern, noise = grad.contiguous(), how.pattern, _noise(how.draw, x)
    grad_x, grad_left, grad_right, score = (end.new_empty(end.shape) for end in (x, left, right, alpha))
    numbers = (x, left, right, _number(how.slope, x), *noise, alpha, grad)
    _call(attention.attend_backward_scores, pattern.rowptr, pattern.col, *numbers, score, grad_left)
    transposed = (pattern.t_rowptr, pattern.t_col, pattern.perm)
    _call(attention.attend_backward_sources, *transposed, *noise, alpha, grad, score, grad_x, grad_right)
    return grad_x, grad_left, grad_right


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    R = parameter.shape[0]
    slope = None if gradient is None else gradient.reshape(R, -1)
    scalars = (step.lr, step.decay, *step.corrections.tolist(), *step.betas, step.epsilon, step.fresh)
    parameter, first, second, best = (tensor.view(R, -1) for tensor in (parameter, first, second, best))
    _call(kernels.adam, parameter, slope, first, second, *scalars, best)


def _chunks(size: int) -> int:
    return -(-size // node_kernels.CHUNK)


def _total(parts: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(parts.sum(1)).to(like.dtype)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    out = x.new_empty(x.shape)
    _call(node_kernels.rectify, x, bias, *_noise(draw, x), out)
    return out


def rectify_backward(grad: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    R, n, h = kept.shape
    out, sums = kept.new_empty(kept.shape), np.empty((R, _chunks(n), h))
    _call(node_kernels.rectify_backward, grad, kept, _number(scale, kept), out, sums)
    return out, _total(sums, kept)


def node_terms(answers: NodeAnswers) -> tuple[Tensor, Tensor]:
    log_q, *_, shares = answers
    R, n, _ = log_q.shape
    sums, soft = np.empty((R, _chunks(n), 4)), log_q.new_empty(log_q.shape)
    _call(node_kernels.node_terms, *answers[:4], sums, soft)
    return _total(sums * np.repeat(shares, 2), log_q), soft


def node_terms_backward(grad_sums: Tensor, grad_soft: Tensor, answers: NodeAnswers) -> tuple[Tensor, Tensor]:
    grad_q, grad_p = (answers.log_q.new_empty(answers.log_q.shape) for _ in range(2))
    slopes = grad_sums * grad_sums.new_tensor(answers.shares).repeat_interleave(2)
    _call(node_kernels.node_terms_backward, *answers[:4], slopes, grad_soft, grad_q, grad_p)
    return grad_q, grad_p


def expected_logistic(pairs: LogisticPairs) -> Tensor:
    out = pairs.base.new_empty(pairs.base.shape)
    _call(node_kernels.expected_logistic, _with_ends(pairs), out)
    return out


def expected_logistic_backward(grad: Tensor, pairs: LogisticPairs) -> tuple[Tensor | None, ...]:
    R, P, K = pairs.left.shape
    tables = np.empty((R, _chunks(P), K, K))
    left, right, target, source = (pairs.left.new_empty(R, P, K) for _ in range(4))
    grads = (left, right, pairs.base.new_empty(R, P), target, source)
    _call(node_kernels.expected_logistic_backward, grad, _with_ends(pairs), grads, tables)
    return *(grads if pairs.target is not None else (*grads[:3], None, None)), _total(tables, pairs.table)


def _with_ends(pairs: LogisticPairs) -> LogisticPairs:
    """For the kernels: an array without pairs tells them that there is no target and no source."""
    none = pairs.left.new_empty(pairs.left.shape[0], 0, pairs.left.shape[2])
    target, source = (none if end is None else end for end in (pairs.target, pairs.source))
    return pairs._replace(target=target, source=source, sign=_number(pairs.sign, pairs.base))
