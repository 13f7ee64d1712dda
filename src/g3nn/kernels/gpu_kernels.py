"""CUDA kernels in Triton: the same operations and the same random bits as `g3nn.kernels.cpu_kernels`.

A program owns a row of one replica and walks over its entries in blocks, so sums have a fixed order and a run can be
repeated bit for bit; only the gradient of sampled pairs uses atomics, and it adds integers. Arguments that belong
together come as one tuple, such as `noise`: seeds, counter, threshold and scale. An argument that is None is absent,
and a kernel is compiled without what needs it.
"""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = tl.constexpr(1024)
"""The numbers of one program, where every number is computed on its own."""


@triton.jit
def places(COUNT: tl.constexpr):
    """The COUNT numbers of a program, one after the other; there may be more than 2^31 in all."""
    return tl.program_id(0).to(tl.int64) * COUNT + tl.arange(0, COUNT)


@triton.jit
def _key(seed, counter):
    z = seed.to(tl.uint64) * 0x9E3779B97F4A7C15 + counter.to(tl.uint64)
    for _ in tl.static_range(2):
        z = z + 0x9E3779B97F4A7C15
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        z = z ^ (z >> 31)
    return z


@triton.jit
def _bits(key, position):
    page = (position.to(tl.uint64) >> 32).to(tl.uint32)
    x = position.to(tl.uint32) * 0x9E3779B1 + key.to(tl.uint32)
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D + page * 0x85EBCA77
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    x = x + (key >> 32).to(tl.uint32)
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    return x ^ (x >> 16)


@triton.jit
def _draw_key(noise, r):
    """The keys of these replicas, if there is a draw."""
    key = 0
    if noise is not None:
        key = _key(tl.load(noise[0] + r), tl.load(noise[1]))
    return key


@triton.jit
def _dropped(value, key, position, noise):
    """Dropout on values, if there is a draw."""
    if noise is not None:
        value = tl.where(_bits(key, position) >= noise[2].to(tl.uint32), value * noise[3], 0.0)
    return value


@triton.jit
def uniform_bits(seeds, counter, out, size):
    r = tl.program_id(1)
    p = places(BLOCK)
    key = _key(tl.load(seeds + r), tl.load(counter))
    tl.store(out + r.to(tl.int64) * size + p, _bits(key, p).to(tl.int64), mask=p < size)


@triton.jit
def uniform_integers(seeds, counter, out, size, high):
    """Integers in 0 .. high - 1 from 53 random bits. `high` is an integer, since a float argument has only 24 bits."""
    r = tl.program_id(1)
    p = places(BLOCK)
    key = _key(tl.load(seeds + r), tl.load(counter))
    bits = (_bits(key, p).to(tl.int64) << 21) | (_bits(key, size + p) >> 11).to(tl.int64)
    unit = bits.to(tl.float64) * 1.1102230246251565e-16
    limit = tl.zeros((BLOCK,), dtype=tl.int64) + high
    number = tl.minimum((unit * limit.to(tl.float64)).to(tl.int64), limit - 1)
    tl.store(out + r.to(tl.int64) * size + p, number, mask=p < size)


@triton.jit
def dropout(x, noise, out, size, stride, start):
    """x (R, size), or with stride 0 the same (size,) for every replica; random bits from position `start` on."""
    r = tl.program_id(1).to(tl.int64)
    p = places(BLOCK)
    value = tl.load(x + r * stride + p, mask=p < size, other=0.0)
    tl.store(out + r * size + p, _dropped(value, _draw_key(noise, r), start + p, noise), mask=p < size)


@triton.jit
def spmm(matrix, dense, noise, out, sizes, REPLICAS: tl.constexpr, ENTRIES: tl.constexpr, LANES: tl.constexpr):
    """out (R, n, h): row i of replica r is sum_k values_k dense[col_k], or without values sum_k left_i right_j dense_j
    with j = col_k.

    A program owns LANES columns of row i of REPLICAS replicas, which share the positions of its entries, and processes
    ENTRIES at a time.
    """
    rowptr, col, perm, values, left, right = matrix
    R, m, h, value_stride = sizes
    i, n = tl.program_id(0), tl.num_programs(0)
    r = tl.program_id(1) * REPLICAS + tl.arange(0, REPLICAS)
    here = r < R
    r = r.to(tl.int64)
    start, stop = tl.load(rowptr + i), tl.load(rowptr + i + 1)
    lanes = tl.program_id(2) * LANES + tl.arange(0, LANES)
    total = tl.zeros((REPLICAS, LANES), dtype=out.dtype.element_ty)
    key = _draw_key(noise, tl.where(here, r, 0)[:, None])
    for block in range(start, stop, ENTRIES):
        k = block + tl.arange(0, ENTRIES)
        live = k < stop
        inside = here[:, None] & live[None, :]
        source = tl.load(col + k, mask=live, other=0).to(tl.int64)
        if values is not None:
            position = k if perm is None else tl.load(perm + k, mask=live, other=0)
            weight = tl.load(values + (r * value_stride)[:, None] + position[None, :], mask=inside, other=0.0)
            weight = _dropped(weight, key, position[None, :], noise)
        elif right is not None:
            weight = tl.load(right + source[None, :] + 0 * r[:, None], mask=inside, other=0.0)
        else:
            weight = tl.where(inside, 1.0, 0.0).to(out.dtype.element_ty)
        at = ((r * m)[:, None] + source[None, :])[:, :, None] * h + lanes[None, None, :]
        # A dropped entry is not even read.
        tile = tl.load(dense + at, mask=(weight != 0.0)[:, :, None] & (lanes < h)[None, None, :], other=0.0)
        total += tl.sum(weight[:, :, None] * tile, axis=1)
    if left is not None:
        total *= tl.load(left + i)
    place = (r * n + i)[:, None] * h + lanes[None, :]
    tl.store(out + place, total, mask=here[:, None] & (lanes < h)[None, :])


@triton.jit
def pair_dot(left, right, i, j, out, n, h, P, index_stride, PAIRS: tl.constexpr, LANES: tl.constexpr):
    """out (R, P) = left_i . right_j."""
    r = tl.program_id(1).to(tl.int64)
    p = places(PAIRS)
    live = p < P
    lanes = tl.arange(0, LANES)
    inside = live[:, None] & (lanes < h)[None, :]
    first = tl.load(i + r * index_stride + p, mask=live, other=0)
    second = tl.load(j + r * index_stride + p, mask=live, other=0)
    a = tl.load(left + (r * n + first)[:, None] * h + lanes[None, :], mask=inside, other=0.0)
    b = tl.load(right + (r * n + second)[:, None] * h + lanes[None, :], mask=inside, other=0.0)
    tl.store(out + r * P + p, tl.sum(a * b, axis=1), mask=live)


@triton.jit
def adam(parameter, gradient, first, second, lr, decay, corrections, fresh, best, size, beta1, beta2, epsilon):
    """One Adam update of a parameter (R, size) with a learning rate and weight decay for each replica.

    For replicas that are `fresh` (R,), the parameter before the update is copied to `best`.
    """
    r = tl.program_id(1)
    p = places(BLOCK)
    inside = p < size
    at = r.to(tl.int64) * size + p
    rate = tl.load(lr + r) / tl.load(corrections)
    root = tl.sqrt(tl.load(corrections + 1))
    value = tl.load(parameter + at, mask=inside, other=0.0)
    tl.store(best + at, value, mask=inside & (tl.load(fresh + r) != 0))
    slope = value * tl.load(decay + r)
    if gradient is not None:
        slope += tl.load(gradient + at, mask=inside, other=0.0)
    mean = tl.load(first + at, mask=inside, other=0.0)
    square = tl.load(second + at, mask=inside, other=0.0)
    mean = mean + (slope - mean) * (1.0 - beta1)
    square = square * beta2 + slope * slope * (1.0 - beta2)
    tl.store(parameter + at, value - rate * mean / (tl.sqrt(square) / root + epsilon), mask=inside)
    tl.store(first + at, mean, mask=inside)
    tl.store(second + at, square, mask=inside)


@triton.jit
def pair_sum(left, right, i, j, out, n, P, index_stride):
    """out (R, P) = left_i + right_j for left, right (R, n)."""
    r = tl.program_id(1).to(tl.int64)
    p = places(BLOCK)
    live = p < P
    first = tl.load(i + r * index_stride + p, mask=live, other=0)
    second = tl.load(j + r * index_stride + p, mask=live, other=0)
    total = tl.load(left + r * n + first, mask=live, other=0.0) + tl.load(right + r * n + second, mask=live, other=0.0)
    tl.store(out + r * P + p, total, mask=live)


@triton.jit
def unrank_free(rank, rowptr, col, first, second, n, nnz, P, ROW_STEPS: tl.constexpr, STEPS: tl.constexpr):
    """See the kernel of the same name for the CPU. Its two searches take these numbers of steps at most."""
    p = places(BLOCK)
    live = p < P
    u = tl.load(rank + p, mask=live, other=0)
    low, high = u // n, tl.minimum((u + nnz) // n + 1, n)
    for _ in range(ROW_STEPS):
        middle = (low + high) // 2
        before = middle * n - tl.load(rowptr + middle, mask=live, other=0) <= u
        low, high = tl.where(before, middle, low), tl.where(before, high, middle)
    start, stop = tl.load(rowptr + low, mask=live, other=0), tl.load(rowptr + low + 1, mask=live, other=0)
    rest, a = u - (low * n - start), start
    for _ in range(STEPS):
        middle = (a + stop) // 2
        there = live & (a < stop)
        before = there & (tl.load(col + middle, mask=there, other=0) - (middle - start) <= rest)
        a, stop = tl.where(before, middle + 1, a), tl.where(before, stop, middle)
    tl.store(first + p, low.to(first.dtype.element_ty), mask=live)
    tl.store(second + p, (rest + a - start).to(second.dtype.element_ty), mask=live)


@triton.jit
def _fixed_scale(bounds, r):
    """How many integer units make 1, such that the largest possible summand of replica r becomes `units`."""
    first, second, units = bounds
    largest = tl.load(first + r).to(tl.float64)
    if second is not None:
        largest *= tl.load(second + r).to(tl.float64)
    return units / tl.maximum(largest, 1e-30)


@triton.jit
def from_fixed(sums, out, bounds, size):
    """Converts the integer sums back to floating point."""
    r = tl.program_id(1).to(tl.int64)
    p = places(BLOCK)
    value = tl.load(sums + r * size + p, mask=p < size, other=0).to(tl.float64)
    value = value / _fixed_scale(bounds, r)
    tl.store(out + r * size + p, value.to(out.dtype.element_ty), mask=p < size)


@triton.jit
def scatter(inputs, out, bounds, sizes, PAIRS: tl.constexpr, LANES: tl.constexpr):
    """out (R, n, h) int64 += amount in units at row target_p: integer sums do not depend on their order.

    The amount is grad_p * rows[source_p], with rows (R, m, h), or without grad rows_p, with rows (R, P, h).
    """
    grad, rows, source, target = inputs
    m, n, h, P, index_stride = sizes
    r = tl.program_id(1).to(tl.int64)
    p = places(PAIRS)
    live = p < P
    lanes = tl.arange(0, LANES)
    inside = live[:, None] & (lanes < h)[None, :]
    place = tl.load(target + r * index_stride + p, mask=live, other=0).to(tl.int64)
    factor = _fixed_scale(bounds, r)
    if grad is not None:
        origin = tl.load(source + r * index_stride + p, mask=live, other=0).to(tl.int64)
        amount = tl.load(rows + (r * m + origin)[:, None] * h + lanes[None, :], mask=inside, other=0.0)
        amount = amount * tl.load(grad + r * P + p, mask=live, other=0.0)[:, None]
    else:
        amount = tl.load(rows + (r * P + p)[:, None] * h + lanes[None, :], mask=inside, other=0.0)
    fixed = (amount.to(tl.float64) * factor).to(tl.int64)
    tl.atomic_add(out + (r * n + place)[:, None] * h + lanes[None, :], fixed, mask=inside, sem="relaxed")
