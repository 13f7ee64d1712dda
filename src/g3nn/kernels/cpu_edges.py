"""Kernels in numba for similarities, messages and matchings along edges, on arrays of numpy. As in `cpu_kernels`,
results do not depend on the number of threads."""

from __future__ import annotations

import numpy as np
from numba import prange

from g3nn.kernels.compiled import kernel


@kernel(parallel=True)
def row_dots(indptr, indices, values, scale, left, right, out):
    """out (P,): sum_k A[left, k] A[right, k] scale[k] for rows of a sparse matrix whose columns are sorted."""
    for p in prange(left.shape[0]):
        a, b = indptr[left[p]], indptr[right[p]]
        end_a, end_b = indptr[left[p] + 1], indptr[right[p] + 1]
        total = 0.0
        while a < end_a and b < end_b:
            if indices[a] == indices[b]:
                total += values[a] * values[b] * scale[indices[a]]
                a += 1
                b += 1
            elif indices[a] < indices[b]:
                a += 1
            else:
                b += 1
        out[p] = total


@kernel(parallel=True)
def ends_around(near, own, left, right, weight, least, out):
    """out (P,): how alike each end of a pair is to the neighbours of the other, without the pair itself.

    near (n, h): the sum of `own` (n, h) over the neighbours of a node; weight (P,): how much the other end has in it.
    The rest of a sum is scaled to length one, or set to zero if its length is at most `least`.
    """
    for p in prange(left.shape[0]):
        i, j = left[p], right[p]
        length_i, length_j, toward_i, toward_j = 0.0, 0.0, 0.0, 0.0
        for c in range(own.shape[1]):
            x, y = float(own[i, c]), float(own[j, c])
            around_i, around_j = near[i, c] - weight[p] * y, near[j, c] - weight[p] * x
            length_i += around_i * around_i
            length_j += around_j * around_j
            toward_j += around_i * y
            toward_i += around_j * x
        length_i, length_j = np.sqrt(length_i), np.sqrt(length_j)
        total = 0.0
        if length_i > least:
            total += toward_j / length_i
        if length_j > least:
            total += toward_i / length_j
        out[p] = total


@kernel(parallel=True)
def hear(messages, genuine, table, out):
    """out (2 E, K): the log-likelihood of each label of the target, given the message (2 E, K) of beliefs about its
    source, if the edge is genuine with this probability (E,). table: (K, K), how often genuine edges join labels."""
    E, K = genuine.shape[0], messages.shape[1]
    for m in prange(messages.shape[0]):
        g = genuine[m % E]
        for label in range(K):
            likely = messages[m, 0] * table[0, label]
            for k in range(1, K):
                likely += messages[m, k] * table[k, label]
            out[m, label] = np.log(g * likely + (1 - g))


@kernel(parallel=True)
def arrive(indptr, indices, heard, start, out):
    """out (n, K): start (n, K) and the sum of `heard` over the messages to a node, which are indices[indptr[i] ...]."""
    for i in prange(start.shape[0]):
        for label in range(start.shape[1]):
            total = start[i, label]
            for at in range(indptr[i], indptr[i + 1]):
                total += heard[indices[at], label]
            out[i, label] = total


@kernel(parallel=True)
def send(total, heard, source, stays, messages):
    """messages (2 E, K): beliefs about a node without what arrived along the same edge. stays: the share of the
    previous messages that stays. `heard` is overwritten."""
    M, K = messages.shape
    for m in prange(M):
        i, back = source[m], (m + M // 2) % M
        highest = total[i, 0] - heard[back, 0]
        for label in range(1, K):
            highest = max(highest, total[i, label] - heard[back, label])
        whole = messages[m, 0] * 0
        for label in range(K):
            heard[back, label] = np.exp(total[i, label] - heard[back, label] - highest)
            whole += heard[back, label]
        for label in range(K):
            messages[m, label] = stays * messages[m, label] + (1 - stays) * heard[back, label] / whole


@kernel()
def match(ends, order, partner):
    """partner (n,): pairs (2, P) taken in this order if neither end has a partner yet; -1 so far."""
    for place in range(order.shape[0]):
        i, j = ends[0, order[place]], ends[1, order[place]]
        if partner[i] < 0 and partner[j] < 0:
            partner[i], partner[j] = j, i
