"""The Triton kernels as functions of CUDA tensors: grids, block sizes and output buffers."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from g3nn.base.errors import refuse
from g3nn.kernels import gpu_attention as attention
from g3nn.kernels import gpu_kernels as kernels
from g3nn.kernels import gpu_node_kernels as node_kernels
from g3nn.kernels import reference
from g3nn.kernels.arguments import AdamStep, Attention, Draw, LogisticPairs, NodeAnswers, Scales, on_device
from g3nn.kernels.pattern import Pattern

_BLOCK = kernels.BLOCK.value
_LARGEST_SIDE = 65_535
"""Of a grid, but for its first axis."""
_PROGRAMS = 2048
"""The number of programs that fills the device; sums over nodes are split into parts to reach it."""
_WIDE_PRODUCT = 1 << 14
"""Numbers in a sum over nodes of x_i y_i' from which on a library computes it faster: with 256 units on both sides our
kernel took 42 % of the time of a batch."""

_MOST_CLASSES = 512
"""With more, the table of two classes is too large for a program; torch then does the work, some pairs at a time."""
_MOST_CELLS = 1 << 26
"""Numbers that a step may hold for pairs and two classes each."""


def _call(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Runs a kernel on contiguous tensors; it writes into those of its arguments that are contiguous already.

    What grows with the graph is on the first axis of a grid: the others end at 65,535.
    """
    if max(grid[1:], default=0) > _LARGEST_SIDE:
        advice = "Train them in several calls, or with fewer trials at once."
        refuse("trials", f"{max(grid[1:])} replicas at once", f"at most {_LARGEST_SIDE} on a GPU", advice)
    kernel[grid](*map(_plain, arguments), **constants)


def _plain(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.contiguous()
    return tuple(map(_plain, argument)) if isinstance(argument, tuple) else argument


def _noise(draw: Draw | None, like: Tensor) -> tuple[Any, ...] | None:
    """Seeds, counter, threshold and scale for a kernel; None if there is no draw."""
    return draw and (draw.seeds, on_device(draw.counter, like.device), draw.threshold, draw.scale)


def _lanes(h: int) -> int:
    return triton.next_power_of_2(h)


def _entries(h: int) -> int:
    """The number of entries processed at once: tiles of about 128 numbers suit one warp."""
    return max(1, min(16, 128 // _lanes(h)))


_WIDEST = 128
"""The most columns of a product that one program computes."""


def _product_blocks(R: int, entries_per_row: float, lanes: int) -> dict[str, int]:
    """The fastest of all sizes on an H200 with 16 columns: many replicas share one walk over a short row, and long rows
    are processed in blocks. With more columns a tile keeps its size: fewer replicas, then fewer entries."""
    if entries_per_row > 256:
        replicas, entries, warps = 1, 256, 4
    elif R == 1 or (R < 16 and entries_per_row > 24):
        replicas, entries, warps = 1, 32, 1
    elif R < 16:
        replicas, entries, warps = 4, 8, 1
    elif entries_per_row > 24:
        replicas, entries, warps = 16, 8, 2
    else:
        replicas, entries, warps = 32, 1, 1
    wider = max(1, lanes // 16)
    kept = max(1, replicas // wider)
    entries = max(min(entries, 8), entries * replicas // (wider * kept))
    return {"REPLICAS": kept, "ENTRIES": entries, "num_warps": warps}


def _stride(index: Tensor) -> int:
    return 0 if index.dim() == 1 else index.shape[1]


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    out = seeds.new_empty(seeds.shape[0], size)
    grid = (triton.cdiv(size, _BLOCK), seeds.shape[0])
    _call(kernels.uniform_bits, grid, seeds, on_device(counter, seeds.device), out, size)
    return out


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = seeds.new_empty(seeds.shape[0], count)
    grid = (triton.cdiv(count, _BLOCK), seeds.shape[0])
    _call(kernels.uniform_integers, grid, seeds, on_device(counter, seeds.device), out, count, high)
    return out


def dropout(x: Tensor, draw: Draw, start: int = 0) -> Tensor:
    R, size = len(draw.seeds), x.shape[1]
    out = x.new_empty(R, size)
    grid, stride = (triton.cdiv(size, _BLOCK), R), 0 if x.shape[0] == 1 else size
    _call(kernels.dropout, grid, x, _noise(draw, x), out, size, stride, start)
    return out


def spmm(pattern: Pattern, values: Tensor | Scales, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    n, m = pattern.shape[::-1] if transpose else pattern.shape
    R, _, h = dense.shape
    out = dense.new_empty(R, n, h)
    if not out.numel():
        return out
    rowptr, col = (pattern.t_rowptr, pattern.t_col) if transpose else (pattern.rowptr, pattern.col)
    matrix: tuple[Tensor | None, ...]
    if isinstance(values, Scales):
        matrix, stride = (rowptr, col, None, None, *values.turned(transpose)), 0
    else:
        matrix = (rowptr, col, pattern.perm if transpose else None, values, None, None)
        stride = 0 if values.shape[0] == 1 else values.shape[1]
    sizes = (R, m, h, stride)
    lanes = min(_WIDEST, _lanes(h))
    blocks = _product_blocks(R, pattern.nnz / n, lanes)
    grid = (n, triton.cdiv(R, blocks["REPLICAS"]), triton.cdiv(h, lanes))
    _call(kernels.spmm, grid, matrix, dense, _noise(draw, dense), out, sizes, LANES=lanes, **blocks)
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    (R, n, h), P = left.shape, i.shape[-1]
    out = left.new_empty(R, P)
    pairs = 4 * _entries(h)
    grid = (triton.cdiv(P, pairs), R)
    _call(kernels.pair_dot, grid, left, right, i, j, out, n, h, P, _stride(i), PAIRS=pairs, LANES=_lanes(h))
    return out


def pair_dot_backward(grad: Tensor, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    grad = grad.contiguous()
    largest = _largest(grad)
    grad_left = _scatter(grad, largest, right, j, i, left.shape[1])
    return grad_left, _scatter(grad, largest, left, i, j, right.shape[1])


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    (R, n), P = left.shape, i.shape[-1]
    out = left.new_empty(R, P)
    _call(kernels.pair_sum, (triton.cdiv(P, _BLOCK), R), left, right, i, j, out, n, P, _stride(i))
    return out


def scatter_rows(rows: Tensor, index: Tensor, n: int) -> Tensor:
    return _scatter(None, _largest(rows), rows, None, index, n)


def unrank_free(rank: Tensor, taken: Pattern, longest: int) -> tuple[Tensor, Tensor]:
    first, second = (rank.new_empty(rank.shape, dtype=taken.col.dtype) for _ in range(2))
    n, nnz, P = taken.shape[0], taken.nnz, rank.numel()
    steps = {"ROW_STEPS": (nnz // n + 2).bit_length(), "STEPS": longest.bit_length()}
    ends = (taken.rowptr, taken.col, first, second)
    _call(kernels.unrank_free, (triton.cdiv(P, _BLOCK),), rank, *ends, n, nnz, P, **steps)
    return first, second


def _largest(values: Tensor) -> Tensor:
    """(R,): the largest absolute value of each replica."""
    return torch.linalg.vector_norm(values.flatten(1), torch.inf, 1)


def _scatter(
    grad: Tensor | None, largest: Tensor, rows: Tensor, source: Tensor | None, target: Tensor, n: int
) -> Tensor:
    """(R, n, h): adds grad_p * rows[source_p] at target_p, or rows_p without grad. largest (R,): of the first factor.

    Sums are of integers, so their order does not matter.
    """
    (R, m, h), P = rows.shape, target.shape[-1]
    # The largest possible summand and the number of summands set the scale of the integers.
    bounds = (largest, None if grad is None else _largest(rows), _units(P))
    sums = torch.zeros(R, n, h, dtype=torch.int64, device=rows.device)
    out = rows.new_empty(R, n, h)
    pairs = 4 * _entries(h)
    inputs, sizes = (grad, rows, source, target), (m, n, h, P, _stride(target))
    _call(kernels.scatter, (triton.cdiv(P, pairs), R), inputs, sums, bounds, sizes, PAIRS=pairs, LANES=_lanes(h))
    _call(kernels.from_fixed, (triton.cdiv(n * h, _BLOCK), R), sums, out, bounds, n * h)
    return out


def _units(P: int) -> float:
    """The largest summand of an integer sum of P: such a sum fits into 63 bits, with a resolution of 1e-11 of the
    largest up to 2^26 summands, and less by half whenever their number doubles."""
    return 2.0 ** min(36, 62 - (P - 1).bit_length())


def _attention_blocks(H: int, F: int) -> dict[str, int]:
    heads, units = _lanes(H), _lanes(F)
    return {"ENTRIES": 4, "HEADS": heads, "UNITS": units, "num_warps": 1 if heads * units <= 128 else 4}


def attend(x: Tensor, left: Tensor, right: Tensor, how: Attention) -> tuple[Tensor, Tensor]:
    R, n, H, F = x.shape
    pattern = how.pattern
    out, alpha = x.new_empty(x.shape), x.new_empty(R, pattern.nnz, H)
    inputs = (pattern.rowptr, pattern.col, how.log_weight), (x, left, right), how.slope, _noise(how.draw, x)
    _call(attention.attend, (n, R), *inputs, alpha, out, (pattern.nnz, H, F), **_attention_blocks(H, F))
    return out, alpha


def attend_backward(
    grad: Tensor, x: Tensor, left: Tensor, right: Tensor, alpha: Tensor, how: Attention
) -> tuple[Tensor, ...]:
    R, n, H, F = x.shape
    grad, pattern, noise, blocks = grad.contiguous(), how.pattern, _noise(how.draw, x), _attention_blocks(H, F)
    grad_x, grad_left, grad_right, score = (end.new_empty(end.shape) for end in (x, left, right, alpha))
    inputs, sizes = ((pattern.rowptr, pattern.col), (x, left, right, alpha), how.slope, noise), (pattern.nnz, H, F)
    _call(attention.attend_backward_scores, (n, R), *inputs, (grad, score, grad_left), sizes, **blocks)
    transposed, grads = (pattern.t_rowptr, pattern.t_col, pattern.perm), (grad, score, grad_x, grad_right)
    _call(attention.attend_backward_sources, (n, R), transposed, alpha, noise, grads, sizes, **blocks)
    return grad_x, grad_left, grad_right


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    R = parameter.shape[0]
    size = parameter.numel() // R
    shared = (step.lr, step.decay, step.corrections, step.fresh)
    numbers = (parameter, gradient, first, second, *shared, best, size, *step.betas, step.epsilon)
    _call(kernels.adam, (triton.cdiv(size, _BLOCK), R), *numbers)


def _parts(R: int, n: int) -> tuple[int, int]:
    """The number of parts into which n rows are split, and the rows in each."""
    size = max(64, triton.cdiv(n, max(1, _PROGRAMS // R)))
    return triton.cdiv(n, size), size


def row_products(x: Tensor, grad: Tensor) -> Tensor:
    """(R, h, K) = x_r' grad_r. Where h and K are small, a library product would run one program per replica, which
    leaves most of a GPU idle."""
    (R, n, h), K = x.shape, grad.shape[2]
    if h * K >= _WIDE_PRODUCT:
        return torch.bmm(x.mT, grad)
    parts, size = _parts(R, n)
    out = x.new_empty(R, parts, h, K)
    lanes = _lanes(K)
    units = max(1, min(16, _lanes(h), 512 // lanes))
    rows = max(1, min(16, 2048 // (units * lanes)))
    blocks = {"ROWS": rows, "UNITS": units, "LANES": lanes}
    _call(node_kernels.row_products, (R, parts, triton.cdiv(h, units)), x, grad, out, n, h, K, size, **blocks)
    return out.sum(1)


def column_sums(grad: Tensor) -> Tensor:
    """(R, h): the sum over rows."""
    R, n, h = grad.shape
    parts, size = _parts(R, n)
    out = grad.new_empty(R, parts, h)
    lanes = _lanes(h)
    rows = max(1, min(64, 2048 // lanes))
    _call(node_kernels.column_sums, (R, parts), grad, out, n, h, size, ROWS=rows, LANES=lanes)
    return out.sum(1)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    R, n, h = x.shape
    out = x.new_empty(x.shape)
    _call(node_kernels.rectify, (triton.cdiv(n * h, _BLOCK), R), x, bias, _noise(draw, x), out, n * h, h)
    return out


def rectify_backward(grad: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    out = kept.new_empty(kept.shape)
    size = kept.numel()
    _call(node_kernels.rectify_backward, (triton.cdiv(size, _BLOCK),), grad, kept, scale, out, size)
    return out, column_sums(out)


def _rows(K: int) -> dict[str, int]:
    return {"ROWS": max(1, 512 // _lanes(K)), "LANES": _lanes(K)}


def node_terms(answers: NodeAnswers) -> tuple[Tensor, Tensor]:
    log_q, log_p, label, of_posterior, shares = answers
    (R, n, K), shape = log_q.shape, _rows(log_q.shape[2])
    blocks = triton.cdiv(n, shape["ROWS"])
    sums, soft = log_q.new_empty(R, blocks, 4), log_q.new_empty(R, n, K)
    numbers = ((log_q, log_p, label), shares, sums, soft, n, K)
    _call(node_kernels.node_terms, (blocks, R), *numbers, OF_POSTERIOR=of_posterior, **shape)
    return sums.sum(1), soft


def node_terms_backward(grad_sums: Tensor, grad_soft: Tensor, answers: NodeAnswers) -> tuple[Tensor, Tensor]:
    log_q, log_p, label, of_posterior, shares = answers
    (R, n, K), shape = log_q.shape, _rows(log_q.shape[2])
    grad_q, grad_p = (log_q.new_empty(R, n, K) for _ in range(2))
    numbers = ((log_q, log_p, label), shares, (grad_sums, grad_soft, grad_q, grad_p), n, K)
    grid = (triton.cdiv(n, shape["ROWS"]), R)
    _call(node_kernels.node_terms_backward, grid, *numbers, OF_POSTERIOR=of_posterior, **shape)
    return grad_q, grad_p


def validation(log_q: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    (R, n, K), count = log_q.shape, nodes.numel()
    parts = min(_PROGRAMS, triton.cdiv(count, 4096))
    out = log_q.new_empty(parts, 2, R)
    blocks = {"NODES": max(1, 1024 // _lanes(K)), "LANES": _lanes(K)}
    sizes = (n, K, count, triton.cdiv(count, parts))
    _call(node_kernels.validation, (parts, R), log_q, labels, nodes, out, *sizes, **blocks)
    return out[0] if parts == 1 else out.sum(0)


def keep_book(
    losses: Tensor, val_loss: Tensor, val_accuracy: Tensor, books: tuple[Tensor, ...], limit: int, patience: int
) -> None:
    """`books`: clock, best loss, accuracy and epoch, epochs, active, diverged, fresh; all changed in place."""
    R = losses.shape[0]
    numbers = (losses, val_loss, val_accuracy, books, limit, patience, R)
    _call(node_kernels.keep_book, (1,), *numbers, BLOCK=min(1024, _lanes(R)))


def _pair_blocks(P: int, K: int) -> tuple[int, dict[str, int]]:
    pairs = max(1, 2048 // _lanes(K) ** 2)
    return triton.cdiv(P, pairs), {"PAIRS": pairs, "LANES": _lanes(K)}


def _pairs_at_once(R: int, K: int) -> int:
    """The gradient of a table takes K x K numbers for each block of pairs, so there may not be too many."""
    each = 1 if K > _MOST_CLASSES else _pair_blocks(1, K)[1]["PAIRS"]
    return each * max(1, _MOST_CELLS // (R * K * K))


def expected_logistic(pairs: LogisticPairs) -> Tensor:
    R, P, K = pairs.left.shape
    if K > _MOST_CLASSES:
        return torch.cat([reference.expected_logistic(part) for _, part in pairs.parts(_pairs_at_once(R, K))], dim=1)
    out = pairs.left.new_empty(R, P)
    blocks, shape = _pair_blocks(P, K)
    _call(node_kernels.expected_logistic, (blocks, R), pairs, out, P, K, **shape)
    return out


def expected_logistic_backward(grad: Tensor, pairs: LogisticPairs) -> tuple[Tensor | None, ...]:
    R, _, K = pairs.left.shape
    backward = reference.expected_logistic_backward if K > _MOST_CLASSES else _some_logistic_backward
    found = [backward(grad[:, here], part) for here, part in pairs.parts(_pairs_at_once(R, K))]
    *ends, tables = zip(*found, strict=True)
    return *(None if end[0] is None else torch.cat(end, dim=1) for end in ends), sum(tables)


def _some_logistic_backward(grad: Tensor, pairs: LogisticPairs) -> tuple[Tensor | None, ...]:
    R, P, K = pairs.left.shape
    blocks, shape = _pair_blocks(P, K)
    inputs = (pairs.left, pairs.right, pairs.base, pairs.target, pairs.source)
    grads = [None if end is None else torch.empty_like(end, memory_format=torch.contiguous_format) for end in inputs]
    table = pairs.table.new_empty(R, blocks, K, K)
    _call(node_kernels.expected_logistic_backward, (blocks, R), grad, pairs, (*grads, table), P, K, **shape)
    return *grads, table.sum(1)
