"""Attention for the CPU, in numba; letters and conventions as in `g3nn.kernels.cpu_kernels`."""

from __future__ import annotations

import numpy as np
from numba import prange

from g3nn.kernels.compiled import kernel
from g3nn.kernels.cpu_kernels import _bits, _key
from g3nn.kernels.prefetch import AHEAD, prefetch


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def attend(rowptr, col, log_weight, x, left, right, slope, seeds, counter, threshold, scale, alpha, out):
    """Attention of each node over its in-neighbours.

    alpha (R, H, nnz) = softmax over j of leaky_relu(left_i + right_j) + log_weight_ij; out (R, n, H, F) = sum_j
    drop(alpha_ij) x_j. x (R, n, H, F), left and right (R, n, H). log_weight (nnz,), None for zeros. threshold 0 means
    no dropout.
    """
    R, n, H, F = x.shape
    nnz = col.shape[0]
    for job in prange(R * n):
        r = job // n
        i = job % n
        key = _key(seeds[r], counter)
        start, stop = rowptr[i], rowptr[i + 1]
        for head in range(H):
            weights = alpha[r, head]
            top = -np.inf
            for k in range(start, stop):
                score = left[r, i, head] + right[r, col[k], head]
                score = score if score > 0 else slope * score
                if log_weight is not None:
                    score += log_weight[k]
                weights[k] = score
                top = max(top, score)
            total = 0.0
            for k in range(start, stop):
                weights[k] = np.exp(weights[k] - top)
                total += weights[k]
            target = out[r, i, head]
            target[:] = 0.0
            for k in range(start, stop):
                weights[k] = weights[k] / total
                if threshold == 0 or _bits(key, head * nnz + k) >= threshold:
                    weight = weights[k] * scale
                    source = x[r, col[k], head]
                    for c in range(F):
                        target[c] += weight * source[c]


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def attend_backward_scores(
    rowptr, col, x, left, right, slope, seeds, counter, threshold, scale, alpha, grad, grad_score, grad_left
):
    """First half of the gradient of `attend`: for every score (R, H, nnz), and for `left`."""
    R, n, H, F = x.shape
    nnz = col.shape[0]
    for job in prange(R * n):
        r = job // n
        i = job % n
        key = _key(seeds[r], counter)
        start, stop = rowptr[i], rowptr[i + 1]
        for head in range(H):
            weights = alpha[r, head]
            scores = grad_score[r, head]
            g = grad[r, i, head]
            mean = 0.0
            for k in range(start, stop):
                dot = 0.0
                if threshold == 0 or _bits(key, head * nnz + k) >= threshold:
                    source = x[r, col[k], head]
                    for c in range(F):
                        dot += g[c] * source[c]
                    dot *= scale
                scores[k] = dot
                mean += weights[k] * dot
            total = 0.0
            for k in range(start, stop):
                score = weights[k] * (scores[k] - mean)
                if left[r, i, head] + right[r, col[k], head] <= 0:
                    score *= slope
                scores[k] = score
                total += score
            grad_left[r, i, head] = total


@kernel(parallel=True, fastmath={"contract", "reassoc", "nsz"})
def attend_backward_sources(
    t_rowptr, t_col, perm, seeds, counter, threshold, scale, alpha, grad, grad_score, grad_x, grad_right
):
    """Second half: for `x` and `right`, gathered over the transposed pattern so that no two threads share a row."""
    R, n, H, F = grad_x.shape
    nnz = perm.shape[0]
    for job in prange(R * n):
        r = job // n
        j = job % n
        key = _key(seeds[r], counter)
        for head in range(H):
            weights = alpha[r, head]
            target = grad_x[r, j, head]
            target[:] = 0.0
            total = 0.0
            for t in range(t_rowptr[j], t_rowptr[j + 1]):
                if t + AHEAD < nnz:
                    prefetch(grad_score, (r, head, perm[t + AHEAD]))
                    prefetch(weights, (perm[t + AHEAD],))
                    prefetch(grad, (r, t_col[t + AHEAD], head))
                k = perm[t]
                total += grad_score[r, head, k]
                if threshold == 0 or _bits(key, head * nnz + k) >= threshold:
                    weight = weights[k] * scale
                    g = grad[r, t_col[t], head]
                    for c in range(F):
                        target[c] += weight * g[c]
            grad_right[r, j, head] = total
