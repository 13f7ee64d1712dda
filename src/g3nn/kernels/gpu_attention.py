"""Attention for CUDA, in Triton: a program owns a node of one replica and walks over its neighbours."""

from __future__ import annotations

import triton
import triton.language as tl

from g3nn.kernels.gpu_kernels import _draw_key, _dropped


@triton.jit
def _node(rowptr, H, F, HEADS: tl.constexpr, UNITS: tl.constexpr):
    """The replica and the node of a program, the range of its entries, its heads and units; where its numbers of shape
    (H,) and (H, F) are, and a mask for the latter."""
    i, n = tl.program_id(0), tl.num_programs(0)
    r = tl.program_id(1).to(tl.int64)
    heads, units = tl.arange(0, HEADS), tl.arange(0, UNITS)
    place = (r * n + i) * H + heads
    inside = (heads < H)[:, None] & (units < F)[None, :]
    start, stop = tl.load(rowptr + i), tl.load(rowptr + i + 1)
    return r, n, start, stop, heads, units, place, place[:, None] * F + units[None, :], inside


@triton.jit
def attend(
    pattern, inputs, slope, noise, alpha, out, sizes, ENTRIES: tl.constexpr, HEADS: tl.constexpr, UNITS: tl.constexpr
):
    """See the kernel of the same name for the CPU. alpha (R, nnz, H) here."""
    rowptr, col, log_weight = pattern
    x, left, right = inputs
    nnz, H, F = sizes
    r, n, start, stop, heads, units, place, at, inside_node = _node(rowptr, H, F, HEADS, UNITS)
    here = heads < H
    own = tl.load(left + place, mask=here, other=0.0)
    top = tl.full((HEADS,), float("-inf"), dtype=out.dtype.element_ty)
    for block in range(start, stop, ENTRIES):
        score, _, _ = _score(col, log_weight, right, own, slope, block, stop, r, n, H, heads, here, ENTRIES)
        top = tl.maximum(top, tl.max(score, axis=0))
    total = tl.zeros((HEADS,), dtype=out.dtype.element_ty)
    for block in range(start, stop, ENTRIES):
        score, _, _ = _score(col, log_weight, right, own, slope, block, stop, r, n, H, heads, here, ENTRIES)
        total += tl.sum(tl.exp(score - top[None, :]), axis=0)
    result = tl.zeros((HEADS, UNITS), dtype=out.dtype.element_ty)
    key = _draw_key(noise, r)
    for block in range(start, stop, ENTRIES):
        score, k, source = _score(col, log_weight, right, own, slope, block, stop, r, n, H, heads, here, ENTRIES)
        weight = tl.exp(score - top[None, :]) / total[None, :]
        inside = (k < stop)[:, None] & here[None, :]
        tl.store(alpha + (r * nnz + k)[:, None] * H + heads[None, :], weight, mask=inside)
        weight = _dropped(weight, key, heads.to(tl.int64)[None, :] * nnz + k[:, None], noise)
        result += tl.sum(weight[:, :, None] * _sources(x, source, k < stop, r, n, H, F, heads, units), axis=0)
    tl.store(out + at, result, mask=inside_node)


@triton.jit
def _score(col, log_weight, right, own, slope, block, stop, r, n, H, heads, here, ENTRIES: tl.constexpr):
    """(ENTRIES, HEADS) scores of the entries from `block` on, -inf past the end; their numbers and sources."""
    k = block + tl.arange(0, ENTRIES)
    source = tl.load(col + k, mask=k < stop, other=0).to(tl.int64)
    inside = (k < stop)[:, None] & here[None, :]
    other = tl.load(right + (r * n + source)[:, None] * H + heads[None, :], mask=inside, other=0.0)
    score = own[None, :] + other
    score = tl.where(score > 0, score, slope * score)
    if log_weight is not None:
        score += tl.load(log_weight + k, mask=k < stop, other=0.0)[:, None]
    return tl.where((k < stop)[:, None], score, float("-inf")), k, source


@triton.jit
def _sources(x, source, live, r, n, H, F, heads, units):
    """(ENTRIES, HEADS, UNITS) rows of x at the sources."""
    at = ((r * n + source)[:, None, None] * H + heads[None, :, None]) * F + units[None, None, :]
    inside = live[:, None, None] & (heads < H)[None, :, None] & (units < F)[None, None, :]
    return tl.load(x + at, mask=inside, other=0.0)


@triton.jit
def attend_backward_scores(
    pattern, inputs, slope, noise, grads, sizes, ENTRIES: tl.constexpr, HEADS: tl.constexpr, UNITS: tl.constexpr
):
    rowptr, col = pattern
    x, left, right, alpha = inputs
    nnz, H, F = sizes
    grad, grad_score, grad_left = grads
    r, n, start, stop, heads, units, place, at, inside_node = _node(rowptr, H, F, HEADS, UNITS)
    here = heads < H
    key = _draw_key(noise, r)
    g = tl.load(grad + at, mask=inside_node, other=0.0)
    own = tl.load(left + place, mask=here, other=0.0)
    mean = tl.zeros((HEADS,), dtype=grad_left.dtype.element_ty)
    for block in range(start, stop, ENTRIES):
        k = block + tl.arange(0, ENTRIES)
        weight, dot, _ = _weights_and_dots(col, x, alpha, g, key, noise, k, stop, r, n, nnz, H, F, heads, units)
        mean += tl.sum(weight * dot, axis=0)
    total = tl.zeros((HEADS,), dtype=grad_left.dtype.element_ty)
    for block in range(start, stop, ENTRIES):
        k = block + tl.arange(0, ENTRIES)
        weight, dot, source = _weights_and_dots(col, x, alpha, g, key, noise, k, stop, r, n, nnz, H, F, heads, units)
        inside = (k < stop)[:, None] & here[None, :]
        other = tl.load(right + (r * n + source)[:, None] * H + heads[None, :], mask=inside, other=0.0)
        score = weight * (dot - mean[None, :])
        score = tl.where(own[None, :] + other > 0, score, slope * score)
        tl.store(grad_score + (r * nnz + k)[:, None] * H + heads[None, :], score, mask=inside)
        total += tl.sum(score, axis=0)
    tl.store(grad_left + place, total, mask=here)


@triton.jit
def _weights_and_dots(col, x, alpha, g, key, noise, k, stop, r, n, nnz, H, F, heads, units):
    """(ENTRIES, HEADS): attention weights, and the gradient of each as grad_i . x_j with its dropout."""
    live = k < stop
    source = tl.load(col + k, mask=live, other=0).to(tl.int64)
    inside = live[:, None] & (heads < H)[None, :]
    weight = tl.load(alpha + (r * nnz + k)[:, None] * H + heads[None, :], mask=inside, other=0.0)
    dot = tl.sum(g[None, :, :] * _sources(x, source, live, r, n, H, F, heads, units), axis=2)
    return weight, _dropped(dot, key, heads.to(tl.int64)[None, :] * nnz + k[:, None], noise), source


@triton.jit
def attend_backward_sources(
    transposed, alpha, noise, grads, sizes, ENTRIES: tl.constexpr, HEADS: tl.constexpr, UNITS: tl.constexpr
):
    t_rowptr, t_col, perm = transposed
    nnz, H, F = sizes
    grad, grad_score, grad_x, grad_right = grads
    r, n, start, stop, heads, units, place, at, inside_node = _node(t_rowptr, H, F, HEADS, UNITS)
    here = heads < H
    key = _draw_key(noise, r)
    result = tl.zeros((HEADS, UNITS), dtype=grad_x.dtype.element_ty)
    total = tl.zeros((HEADS,), dtype=grad_x.dtype.element_ty)
    for block in range(start, stop, ENTRIES):
        t = block + tl.arange(0, ENTRIES)
        live = t < stop
        k = tl.load(perm + t, mask=live, other=0).to(tl.int64)
        target = tl.load(t_col + t, mask=live, other=0).to(tl.int64)
        inside = live[:, None] & here[None, :]
        entry = (r * nnz + k)[:, None] * H + heads[None, :]
        weight = tl.load(alpha + entry, mask=inside, other=0.0)
        weight = _dropped(weight, key, heads.to(tl.int64)[None, :] * nnz + k[:, None], noise)
        result += tl.sum(weight[:, :, None] * _sources(grad, target, live, r, n, H, F, heads, units), axis=0)
        total += tl.sum(tl.load(grad_score + entry, mask=inside, other=0.0), axis=0)
    tl.store(grad_x + at, result, mask=inside_node)
    tl.store(grad_right + place, total, mask=here)
