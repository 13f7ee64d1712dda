"""The Triton kernels as functions of CUDA tensors: grids, block sizes and output buffers."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from g3nn.kernels import gpu_attention as attention
from g3nn.kernels import gpu_kernels as kernels
from g3nn.kernels.adam import AdamStep
from g3nn.kernels.draw import Draw
from g3nn.kernels.pattern import Pattern

_BLOCK = 1024
_FIXED_POINT = 2.0**36
"""The largest summand of an integer sum; leaves room for 2^27 of them, and resolves 1e-11 of the largest."""


def _counter(counter: int | Tensor, device: torch.device) -> Tensor:
    return counter if isinstance(counter, Tensor) else torch.tensor(counter, device=device)


def _noise(draw: Draw | None, like: Tensor) -> tuple[Tensor, Tensor, int, float]:
    if draw is None:
        unused = torch.zeros(like.shape[0], dtype=torch.int64, device=like.device)
        return unused, unused, 0, 1.0
    return draw.seeds, _counter(draw.counter, like.device), draw.threshold, draw.scale


def _lanes(h: int) -> int:
    return triton.next_power_of_2(h)


def _entries(h: int) -> int:
    """Entries walked over at once: tiles of about 128 numbers suit one warp."""
    return max(1, min(16, 128 // _lanes(h)))


def _product_blocks(R: int, entries_per_row: float) -> dict[str, int]:
    """Found by trying all sizes on an H200: many replicas share one walk over a short row; a long row is taken many
    entries at a time."""
    if entries_per_row > 256:
        return {"REPLICAS": 1, "ENTRIES": 256, "num_warps": 4}
    if R == 1 or (R < 16 and entries_per_row > 24):
        return {"REPLICAS": 1, "ENTRIES": 32, "num_warps": 1}
    if R < 16:
        return {"REPLICAS": 4, "ENTRIES": 8, "num_warps": 1}
    if entries_per_row > 24:
        return {"REPLICAS": 16, "ENTRIES": 8, "num_warps": 2}
    return {"REPLICAS": 32, "ENTRIES": 1, "num_warps": 1}


def _stride(index: Tensor) -> int:
    return 0 if index.dim() == 1 else index.shape[1]


def uniform_bits(seeds: Tensor, counter: int | Tensor, size: int) -> Tensor:
    out = torch.empty(seeds.shape[0], size, dtype=torch.int64, device=seeds.device)
    grid = (seeds.shape[0], triton.cdiv(size, _BLOCK))
    kernels.uniform_bits[grid](seeds, _counter(counter, seeds.device), out, size, BLOCK=_BLOCK)
    return out


def uniform_integers(seeds: Tensor, counter: int | Tensor, high: int, count: int) -> Tensor:
    out = torch.empty(seeds.shape[0], count, dtype=torch.int64, device=seeds.device)
    grid = (seeds.shape[0], triton.cdiv(count, _BLOCK))
    kernels.uniform_integers[grid](seeds, _counter(counter, seeds.device), out, count, high, BLOCK=_BLOCK)
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
    blocks = _product_blocks(R, pattern.nnz / n)
    kernels.spmm[(n, triton.cdiv(R, blocks["REPLICAS"]))](
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
        LANES=_lanes(h),
        **blocks,
    )
    return out


def entry_dots(pattern: Pattern, rows: Tensor, dense: Tensor) -> Tensor:
    R, m, h = dense.shape
    out = torch.empty(R, pattern.nnz, dtype=dense.dtype, device=dense.device)
    entries = 4 * _entries(h)
    kernels.entry_dots[(triton.cdiv(pattern.nnz, entries), R)](
        pattern.row,
        pattern.col,
        rows.contiguous(),
        dense.contiguous(),
        out,
        pattern.shape[0],
        m,
        h,
        pattern.nnz,
        ENTRIES=entries,
        LANES=_lanes(h),
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
    return _scatter(grad, right, j, i, left.shape[1]), _scatter(grad, left, i, j, right.shape[1])


def scatter_rows(rows: Tensor, index: Tensor, n: int) -> Tensor:
    return _scatter(None, rows, None, index, n)


def _scatter(grad: Tensor | None, rows: Tensor, source: Tensor | None, target: Tensor, n: int) -> Tensor:
    """(R, n, h): adds grad_p * rows[source_p] at target_p. The sums are of integers, so their order does not matter."""
    R, m, h = rows.shape
    P = target.shape[-1]
    largest = rows.abs().amax((1, 2)) * (1.0 if grad is None else grad.abs().amax(1))
    scale = _FIXED_POINT / largest.clamp_min(torch.finfo(rows.dtype).tiny * _FIXED_POINT)
    sums = torch.zeros(R, n, h, dtype=torch.int64, device=rows.device)
    pairs = 4 * _entries(h)
    kernels.scatter[(triton.cdiv(P, pairs), R)](
        rows if grad is None else grad,
        rows.contiguous(),
        target if source is None else source.contiguous(),
        target.contiguous(),
        sums,
        scale,
        m,
        n,
        h,
        P,
        _stride(target),
        PRODUCTS=grad is not None,
        PAIRS=pairs,
        LANES=_lanes(h),
    )
    return (sums / scale.double().view(-1, 1, 1)).to(rows.dtype)


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
