"""The Triton kernels as functions of CUDA tensors: grids, block sizes and output buffers."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from g3nn.kernels import gpu_attention as attention
from g3nn.kernels import gpu_kernels as kernels
from g3nn.kernels.arguments import AdamStep, Draw, on_device
from g3nn.kernels.gpu_nodes import (
    column_sums,
    expected_logistic,
    expected_logistic_backward,
    keep_book,
    node_terms,
    node_terms_backward,
    rectify,
    rectify_backward,
    row_products,
    validation,
)
from g3nn.kernels.pattern import Pattern

__all__ = [
    "adam",
    "attend",
    "attend_backward",
    "column_sums",
    "dropout",
    "expected_logistic",
    "expected_logistic_backward",
    "keep_book",
    "node_terms",
    "node_terms_backward",
    "pair_dot",
    "pair_dot_backward",
    "pair_sum",
    "pair_sum_backward",
    "rectify",
    "rectify_backward",
    "row_products",
    "scatter_rows",
    "spmm",
    "uniform_bits",
    "uniform_integers",
    "validation",
]

_BLOCK = 1024
_FIXED_POINT = 2.0**36
"""The largest summand of an integer sum: leaves room for 2^27 summands, with a resolution of 1e-11 of the largest."""


def _noise(draw: Draw | None, like: Tensor) -> tuple[Tensor, Tensor, int, float]:
    """Seeds, counter, threshold and scale; without a draw none of them is read, so any pointer will do."""
    if draw is None:
        return like, like, 0, 1.0
    return draw.seeds, on_device(draw.counter, like.device), draw.threshold, draw.scale


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
    out = torch.empty(seeds.shape[0], size, dtype=torch.int64, device=seeds.device)
    grid = (seeds.shape[0], triton.cdiv(size, _BLOCK))
    kernels.uniform_bits[grid](seeds, on_device(counter, seeds.device), out, size, BLOCK=_BLOCK)
    return out


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = torch.empty(seeds.shape[0], count, dtype=torch.int64, device=seeds.device)
    grid = (seeds.shape[0], triton.cdiv(count, _BLOCK))
    kernels.uniform_integers[grid](seeds, on_device(counter, seeds.device), out, count, high, BLOCK=_BLOCK)
    return out


def dropout(x: Tensor, draw: Draw) -> Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = (x.shape[0], triton.cdiv(x.shape[1], _BLOCK))
    kernels.dropout[grid](x, *_noise(draw, x), out, x.shape[1], BLOCK=_BLOCK)
    return out


def spmm(pattern: Pattern, values: Tensor, dense: Tensor, draw: Draw | None, transpose: bool) -> Tensor:
    n, m = pattern.shape[::-1] if transpose else pattern.shape
    R, _, h = dense.shape
    out = torch.empty(R, n, h, dtype=dense.dtype, device=dense.device)
    rowptr, col = (pattern.t_rowptr, pattern.t_col) if transpose else (pattern.rowptr, pattern.col)
    stride = 0 if values.shape[0] == 1 else values.shape[1]
    lanes = min(_WIDEST, _lanes(h))
    blocks = _product_blocks(R, pattern.nnz / n, lanes)
    kernels.spmm[(n, triton.cdiv(R, blocks["REPLICAS"]), triton.cdiv(h, lanes))](
        rowptr,
        col,
        pattern.perm,
        values.contiguous(),
        dense.contiguous(),
        *_noise(draw, dense),
        out,
        R,
        n,
        m,
        h,
        stride,
        TRANSPOSED=transpose,
        DROP=draw is not None,
        LANES=lanes,
        **blocks,
    )
    return out


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    R, n, h = left.shape
    P = i.shape[-1]
    out = torch.empty(R, P, dtype=left.dtype, device=left.device)
    pairs = 4 * _entries(h)
    kernels.pair_dot[(triton.cdiv(P, pairs), R)](
        left.contiguous(),
        right.contiguous(),
        i.contiguous(),
        j.contiguous(),
        out,
        n,
        h,
        P,
        _stride(i),
        PAIRS=pairs,
        LANES=_lanes(h),
    )
    return out


def pair_dot_backward(grad: Tensor, left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    grad = grad.contiguous()
    largest = _largest(grad)
    ends = ((right, j, i, left), (left, i, j, right))
    results = [_scatter(grad, largest, rows, source, target, end.shape[1]) for rows, source, target, end in ends]
    return results[0], results[1]


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor) -> Tensor:
    R, n = left.shape
    P = i.shape[-1]
    out = torch.empty(R, P, dtype=left.dtype, device=left.device)
    ends = (left.contiguous(), right.contiguous(), i.contiguous(), j.contiguous())
    kernels.pair_sum[(triton.cdiv(P, _BLOCK), R)](*ends, out, n, P, _stride(i), BLOCK=_BLOCK)
    return out


def pair_sum_backward(grad: Tensor, i: Tensor, j: Tensor, n: int) -> tuple[Tensor, Tensor]:
    rows = grad.unsqueeze(2)
    first, second = (_scatter(None, _largest(rows), rows, None, index, n).squeeze(2) for index in (i, j))
    return first, second


def scatter_rows(rows: Tensor, index: Tensor, n: int) -> Tensor:
    return _scatter(None, _largest(rows), rows, None, index, n)


def _largest(values: Tensor) -> Tensor:
    """(R,): the largest absolute value of each replica."""
    return torch.linalg.vector_norm(values.flatten(1), torch.inf, 1)


def _scatter(
    grad: Tensor | None, largest: Tensor, rows: Tensor, source: Tensor | None, target: Tensor, n: int
) -> Tensor:
    """(R, n, h): adds grad_p * rows[source_p] at target_p, or rows_p without grad. largest (R,): of the first factor.

    Sums are of integers, so their order does not matter.
    """
    R, m, h = rows.shape
    P = target.shape[-1]
    # The largest possible summand sets the scale of the integers.
    bounds = (largest, largest if grad is None else _largest(rows))
    sums = torch.zeros(R, n, h, dtype=torch.int64, device=rows.device)
    out = torch.empty(R, n, h, dtype=rows.dtype, device=rows.device)
    pairs = 4 * _entries(h)
    kernels.scatter[(triton.cdiv(P, pairs), R)](
        rows if grad is None else grad,
        rows.contiguous(),
        target if source is None else source.contiguous(),
        target.contiguous(),
        sums,
        *bounds,
        _FIXED_POINT,
        m,
        n,
        h,
        P,
        _stride(target),
        PRODUCTS=grad is not None,
        PAIRS=pairs,
        LANES=_lanes(h),
    )
    grid = (triton.cdiv(n * h, _BLOCK), R)
    kernels.from_fixed[grid](sums, out, *bounds, _FIXED_POINT, n * h, PRODUCTS=grad is not None, BLOCK=_BLOCK)
    return out


def _attention_blocks(H: int, F: int) -> dict[str, int]:
    heads, units = triton.next_power_of_2(H), triton.next_power_of_2(F)
    warps = 1 if heads * units <= 128 else 4
    return {"ENTRIES": 4, "HEADS": heads, "UNITS": units, "num_warps": warps}


def attend(
    pattern: Pattern, x: Tensor, left: Tensor, right: Tensor, slope: float, draw: Draw | None
) -> tuple[Tensor, Tensor]:
    R, n, H, F = x.shape
    x = x.contiguous()
    alpha = torch.empty(R, pattern.nnz, H, dtype=x.dtype, device=x.device)
    out = torch.empty_like(x)
    attention.attend[(n, R)](
        pattern.rowptr,
        pattern.col,
        x,
        left.contiguous(),
        right.contiguous(),
        slope,
        *_noise(draw, x),
        alpha,
        out,
        n,
        pattern.nnz,
        H,
        F,
        DROP=draw is not None,
        **_attention_blocks(H, F),
    )
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
    R, n, H, F = x.shape
    x, left, right, grad = (tensor.contiguous() for tensor in (x, left, right, grad))
    grad_x, grad_left, grad_right = torch.empty_like(x), torch.empty_like(left), torch.empty_like(right)
    grad_score = torch.empty_like(alpha)
    noise, sizes = _noise(draw, x), (n, pattern.nnz, H, F)
    shape = {"DROP": draw is not None, **_attention_blocks(H, F)}
    attention.attend_backward_scores[(n, R)](
        pattern.rowptr, pattern.col, x, left, right, slope, *noise, alpha, grad, grad_score, grad_left, *sizes, **shape
    )
    transposed = (pattern.t_rowptr, pattern.t_col, pattern.perm)
    attention.attend_backward_sources[(n, R)](
        *transposed, *noise, alpha, grad, grad_score, grad_x, grad_right, *sizes, **shape
    )
    return grad_x, grad_left, grad_right


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    R = parameter.shape[0]
    size = parameter.numel() // R
    kernels.adam[(R, triton.cdiv(size, _BLOCK))](
        parameter,
        parameter if gradient is None else gradient.contiguous(),
        first,
        second,
        step.lr,
        step.decay,
        step.corrections,
        step.fresh,
        best,
        size,
        *step.betas,
        step.epsilon,
        HAS_GRADIENT=gradient is not None,
        BLOCK=_BLOCK,
    )
