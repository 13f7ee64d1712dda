"""CPU kernels in numba. Rows run in parallel, results do not depend on the number of threads, compiled code is cached.

Letters: R replicas, n rows, m columns, h channels, H attention heads, P pairs. A dimension of 1 where R is expected
means "the same for every replica". `perm[k]` is where the k-th entry of a transposed pattern sits in the original.

Random bits are a hash of (seed of the replica, counter of the draw, position), so a mask is never stored: the backward
pass draws it again. `g3nn.kernels.reference` has the same hash in torch.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from g3nn.kernels.compiled import kernel
from g3nn.kernels.prefetch import AHEAD, prefetch

_CHUNK = 4096
_SEGMENT = 256


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def _mixed(z):
    """The finaliser of SplitMix64."""
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    z = np.uint64((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64(z ^ (z >> np.uint64(31)))


@njit(inline="always")
def _key(seed, counter):
    """64 well-mixed bits for one draw of one replica: two steps of SplitMix64."""
    z = np.uint64(seed) * GOLDEN + np.uint64(counter)
    return _mixed(np.uint64(_mixed(np.uint64(z + GOLDEN)) + GOLDEN))


@njit(inline="always")
def _bits(key, position):
    """32 random bits at `position` of the stream `key`: three multiply-and-shift rounds, the key enters twice, and
    after the first round the upper half of the position."""
    page = np.uint32(np.uint64(position) >> np.uint64(32))
    return _bits_of_page(np.uint32(key), np.uint32(key >> np.uint64(32)), page, np.uint32(position))


@njit(inline="always")
def _bits_of_page(low, high, page, position):
    """The same with 32 bits for each half of the key and of the position: a loop over these runs in wide registers."""
    x = np.uint32(position * np.uint32(0x9E3779B1) + low)
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D) + page * np.uint32(0x85EBCA77))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    x = np.uint32(x + high)
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    return np.uint32(x ^ (x >> np.uint32(16)))


@njit(inline="always")
def _of_replica(index, r):
    """The row of replica r, or the one that all replicas share."""
    return index[0] if index.shape[0] == 1 else index[r]


@njit(inline="always")
def _span(job, chunks, length, size):
    """The replica of a job, and the range of positions in its chunk."""
    start = (job % chunks) * length
    return job // chunks, start, min(start + length, size)


@kernel(parallel=True)
def uniform_bits(seeds, counter, out):
    """out (R, P) uint32: random bits."""
    R, size = out.shape
    for r in prange(R):
        key = _key(seeds[r], counter)
        for p in range(size):
            out[r, p] = _bits(key, p)


@kernel(parallel=True)
def uniform_integers(seeds, counter, high, out):
    """out (R, P) int64 in 0 .. high - 1: 32 bits from position p, 21 more from position P + p."""
    R, size = out.shape
    chunks = (size + _CHUNK - 1) // _CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, _CHUNK, size)
        key = _key(seeds[r], counter)
        for p in range(start, stop):
            bits = (np.int64(_bits(key, p)) << 21) | np.int64(_bits(key, size + p) >> np.uint32(11))
            out[r, p] = min(np.int64(bits * 2.0**-53 * high), high - 1)


@kernel(parallel=True)
def dropout(x, seeds, counter, threshold, scale, first, out):
    """out (R, size) = x * scale where the bits, from position `first` on, reach the threshold, else 0.

    x (R or 1, size)
    """
    R, size = out.shape
    chunks = (size + _CHUNK - 1) // _CHUNK
    least, zero = np.uint32(threshold), out.dtype.type(0.0)
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, _CHUNK, size)
        key = _key(seeds[r], counter)
        low, high = np.uint32(key), np.uint32(key >> np.uint64(32))
        while start < stop:
            # As far as the upper half of the position stays the same.
            page = (first + start) >> 32
            end = min(stop, ((page + 1) << 32) - first)
            values, target = _of_replica(x, r)[start:end], out[r, start:end]
            upper, position = np.uint32(page), np.uint32(first + start)
            for p in range(end - start):
                value = values[p] * scale
                bits = _bits_of_page(low, high, upper, np.uint32(position + np.uint32(p)))
                target[p] = value if bits >= least else zero
            start = end


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def spmm(rowptr, col, perm, values, left, dense, out):
    """out (R, n, h) = A_r @ dense_r, A_r with the given pattern and values (R or 1, nnz).

    Without values, all those of row i are left_i; left (n,), None for ones.
    """
    R, n, h = out.shape
    for job in prange(R * n):
        r = job // n
        i = job % n
        if values is not None:
            v = _of_replica(values, r)
        target = out[r, i]
        target[:] = 0.0
        for k in range(rowptr[i], rowptr[i + 1]):
            if k + AHEAD < rowptr[n]:
                prefetch(dense, (r, col[k + AHEAD]))
                if perm is not None:
                    prefetch(v, (perm[k + AHEAD],))
            source = dense[r, col[k]]
            if values is None:
                for c in range(h):
                    target[c] += source[c]
            else:
                weight = v[k] if perm is None else v[perm[k]]
                for c in range(h):
                    target[c] += weight * source[c]
        if left is not None:
            for c in range(h):
                target[c] *= left[i]


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def spmm_dropout(rowptr, col, position, values, dense, seeds, counter, threshold, scale, out):
    """As `spmm`, with dropout on the stored values (nnz,), drawn for each replica on the fly.

    `position` is where the random bits of each entry are read (`perm` for a transposed pattern, None for the order of
    the entries). The entries that survive are first packed into a small buffer, since a branch would be mispredicted on
    every other entry.
    """
    R, n, h = out.shape
    rows = max(1, min(64, n // 8))
    blocks = (n + rows - 1) // rows
    for job in prange(R * blocks):
        r = job // blocks
        block = job % blocks
        key = _key(seeds[r], counter)
        weights = np.empty(_SEGMENT, values.dtype)
        sources = np.empty(_SEGMENT, col.dtype)
        for i in range(block * rows, min((block + 1) * rows, n)):
            target = out[r, i]
            target[:] = 0.0
            for start in range(rowptr[i], rowptr[i + 1], _SEGMENT):
                kept = 0
                for k in range(start, min(start + _SEGMENT, rowptr[i + 1])):
                    weights[kept] = values[k] * scale
                    sources[kept] = col[k]
                    kept += _bits(key, k if position is None else position[k]) >= threshold
                for k in range(kept):
                    weight = weights[k]
                    source = dense[r, sources[k]]
                    for c in range(h):
                        target[c] += weight * source[c]


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def pair_dot(left, right, i, j, out):
    """out (R, P) = left_i . right_j for pairs (i, j); left, right (R, n, h); i, j (R or 1, P)."""
    R, P = out.shape
    h = left.shape[2]
    chunks = (P + _CHUNK - 1) // _CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, _CHUNK, P)
        first, second = _of_replica(i, r), _of_replica(j, r)
        for p in range(start, stop):
            if p + AHEAD < stop:
                prefetch(left, (r, first[p + AHEAD]))
                prefetch(right, (r, second[p + AHEAD]))
            a = left[r, first[p]]
            b = right[r, second[p]]
            total = 0.0
            for c in range(h):
                total += a[c] * b[c]
            out[r, p] = total


@kernel(parallel=True)
def pair_sum(left, right, i, j, out):
    """out (R, P) = left_i + right_j for pairs (i, j); left, right (R, n); i, j (R or 1, P)."""
    R, P = out.shape
    chunks = (P + _CHUNK - 1) // _CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, _CHUNK, P)
        first, second = _of_replica(i, r), _of_replica(j, r)
        for p in range(start, stop):
            out[r, p] = left[r, first[p]] + right[r, second[p]]


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def scatter(grad, rows, source, target, parts, out):
    """Adds grad_p * rows[source_p] to out (R, n, h) at target_p, in the order of the pairs p; without grad, rows_p.

    The nodes of each replica are split into `parts` ranges. A thread walks over all pairs and handles the targets in
    its range, so no two threads share a row and the sums do not depend on the number of threads.
    """
    (R, n, h), P = out.shape, target.shape[1]
    for job in prange(R * parts):
        r = job // parts
        low = n * (job % parts) // parts
        high = n * (job % parts + 1) // parts
        places = _of_replica(target, r)
        if grad is not None:
            origins = _of_replica(source, r)
        for p in range(P):
            if p + AHEAD < P:
                following = places[p + AHEAD]
                # Without a branch, which would be mispredicted for every other pair.
                own = (following >= low) & (following < high)
                prefetch(out, (r, following if own else low))
                if grad is not None:
                    prefetch(rows, (r, origins[p + AHEAD] if own else low))
            if low <= places[p] < high:
                total = out[r, places[p]]
                if grad is None:
                    row = rows[r, p]
                    for c in range(h):
                        total[c] += row[c]
                else:
                    row, g = rows[r, origins[p]], grad[r, p]
                    for c in range(h):
                        total[c] += g * row[c]


@kernel(parallel=True)
def unrank_free(rank, rowptr, col, n, first, second):
    """The pairs (first, second) whose rank among all free pairs, in the order of first * n + second, is given.

    A pattern (n, n) marks the taken pairs. i n - rowptr[i] pairs before row i are free, at least i n - nnz and at most
    i n, so the row of a rank is at least rank // n and at most (rank + nnz) // n.
    """
    P, nnz = rank.shape[0], rowptr[n]
    chunks = (P + _CHUNK - 1) // _CHUNK
    for job in prange(chunks):
        for p in range(job * _CHUNK, min((job + 1) * _CHUNK, P)):
            u = rank[p]
            low, high = u // n, min((u + nnz) // n + 1, n)
            while high - low > 1:
                middle = (low + high) // 2
                if middle * n - rowptr[middle] <= u:
                    low = middle
                else:
                    high = middle
            rest = u - (low * n - rowptr[low])
            start = rowptr[low]
            a, b = start, rowptr[low + 1]
            while a < b:
                middle = (a + b) // 2
                if col[middle] - (middle - start) <= rest:
                    a = middle + 1
                else:
                    b = middle
            first[p] = low
            second[p] = rest + (a - start)


@kernel(parallel=True)
def adam(parameter, gradient, first, second, lr, decay, correction1, correction2, beta1, beta2, epsilon, fresh, best):
    """One Adam update in place; parameter, gradient and moments (R, size), lr and decay (R,).

    For replicas that are `fresh` (R,), the parameter before the update is copied to `best`.
    """
    R, size = parameter.shape
    chunks = (size + _CHUNK - 1) // _CHUNK
    number = parameter.dtype.type
    b1, b2, one = number(beta1), number(beta2), number(1.0)
    root, tiny = number(np.sqrt(correction2)), number(epsilon)
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, _CHUNK, size)
        rate, shrink = number(lr[r] / correction1), number(decay[r])
        if fresh[r]:
            best[r, start:stop] = parameter[r, start:stop]
        for p in range(start, stop):
            slope = parameter[r, p] * shrink
            if gradient is not None:
                slope += gradient[r, p]
            mean = first[r, p] + (slope - first[r, p]) * (one - b1)
            square = second[r, p] * b2 + slope * slope * (one - b2)
            first[r, p] = mean
            second[r, p] = square
            parameter[r, p] -= rate * mean / (np.sqrt(square) / root + tiny)
