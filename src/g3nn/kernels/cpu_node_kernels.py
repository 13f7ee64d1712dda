"""CPU kernels in numba for nodes and for logistic pairs; conventions as in `g3nn.kernels.cpu_kernels`.

Sums run over chunks of fixed size in double precision, so they depend neither on threads nor on other replicas.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from g3nn.kernels.compiled import kernel
from g3nn.kernels.cpu_kernels import _bits, _key, _span

CHUNK = 512


@kernel(parallel=True)
def rectify(x, bias, seeds, counter, threshold, scale, out):
    """out = dropout(max(0, x + bias)); x, out (R, n, h), bias (R, h)."""
    R, n, h = x.shape
    chunks = (n + CHUNK - 1) // CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, n)
        key = _key(seeds[r], counter)
        for i in range(start, stop):
            for c in range(h):
                value = x[r, i, c] + bias[r, c]
                if value <= 0.0 or (threshold > 0 and _bits(key, i * h + c) < threshold):
                    value = bias.dtype.type(0.0)
                out[r, i, c] = value * scale


@kernel(parallel=True)
def rectify_backward(grad, kept, scale, out, sums):
    """out = grad * scale where kept > 0; sums (R, chunks, h): the sum over each chunk of nodes."""
    R, n, h = kept.shape
    chunks = sums.shape[1]
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, n)
        total = np.zeros(h)
        for i in range(start, stop):
            for c in range(h):
                value = grad[r, i, c] * scale if kept[r, i, c] > 0.0 else grad.dtype.type(0.0)
                out[r, i, c] = value
                total[c] += value
        sums[r, start // CHUNK] = total


@kernel(parallel=True)
def node_terms(log_q, log_p, label, of_posterior, sums, soft):
    """sums (R, chunks, 4) over each chunk of nodes, and soft (R, n, K); see `g3nn.kernels.node_terms`."""
    R, n, K = log_q.shape
    chunks = sums.shape[1]
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, n)
        total = np.zeros(4)
        for i in range(start, stop):
            y = label[i]
            if y >= 0:
                total[0] -= log_q[r, i, y]
                total[1] -= log_p[r, i, y]
                soft[r, i] = 0.0
                soft[r, i, y] = 1.0
                continue
            for k in range(K):
                q = np.exp(log_q[r, i, k])
                total[2] -= q * log_p[r, i, k]
                total[3] -= q * log_q[r, i, k]
                soft[r, i, k] = q if of_posterior else np.exp(log_p[r, i, k])
        sums[r, start // CHUNK] = total


@kernel(parallel=True)
def node_terms_backward(log_q, log_p, label, of_posterior, grad_sums, grad_soft, grad_q, grad_p):
    R, n, K = log_q.shape
    chunks = (n + CHUNK - 1) // CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, n)
        cross = grad_sums[r, 2]
        entropy = grad_sums[r, 3]
        for i in range(start, stop):
            y = label[i]
            if y >= 0:
                grad_q[r, i] = 0.0
                grad_p[r, i] = 0.0
                grad_q[r, i, y] = -grad_sums[r, 0]
                grad_p[r, i, y] = -grad_sums[r, 1]
                continue
            for k in range(K):
                q = np.exp(log_q[r, i, k])
                grad_q[r, i, k] = -q * (cross * log_p[r, i, k] + entropy * (log_q[r, i, k] + 1.0))
                grad_p[r, i, k] = -q * cross
                if of_posterior:
                    grad_q[r, i, k] += grad_soft[r, i, k] * q
                else:
                    grad_p[r, i, k] += grad_soft[r, i, k] * np.exp(log_p[r, i, k])


NEAR = 80.0
"""Up to this log-odds, exponentials of the parts of a logit can be multiplied without overflow in single precision."""


@njit(inline="always")
def _parts(r, p, base, target, source, largest, sign, by_target, by_source):
    """exp(-sign part) for the parts of the logits of a pair, with base in by_target. Returns a bound on |logit|.

    largest: the largest absolute value in the table.
    """
    by_target[:] = np.exp(-sign * base[r, p])
    by_source[:] = 1.0
    of_target = base.dtype.type(0.0)
    of_source = base.dtype.type(0.0)
    if target.shape[1] > 0:
        for k in range(by_target.size):
            by_target[k] *= np.exp(-sign * target[r, p, k])
            by_source[k] = np.exp(-sign * source[r, p, k])
            of_target = max(of_target, abs(target[r, p, k]))
            of_source = max(of_source, abs(source[r, p, k]))
    return abs(base[r, p]) + of_target + of_source + largest


@njit(inline="always")
def _far(logit):
    """log sigmoid(logit) and sigmoid(-logit) for any logit."""
    decay = np.exp(-abs(logit))
    return min(logit, 0.0) - np.log1p(decay), (decay if logit > 0.0 else 1.0) / (1.0 + decay)


@njit(inline="always")
def _score(near, r, p, k, c, base, target, source, table, sign, by_target, by_source, by_table):
    """log sigmoid(sign logit) and sigmoid(-sign logit) of a pair with labels k and c. near: whether exponentials of the
    parts may be multiplied."""
    if near:
        odds = by_target[c] * by_source[k] * by_table[k, c]
        above = base.dtype.type(1.0) + odds
        return -np.log(above), odds / above
    logit = base[r, p] + table[r, k, c]
    if target.shape[1] > 0:
        logit += target[r, p, c] + source[r, p, k]
    return _far(sign * logit)


@kernel(parallel=True)
def expected_logistic(pairs, out):
    """out (R, P): sum_kl left_k right_l log sigmoid(sign (base + target_l + source_k + table_kl))."""
    left, right, base, target, source, table, sign = pairs
    R, P, K = left.shape
    chunks = (P + CHUNK - 1) // CHUNK
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, P)
        by_table = np.exp(-sign * table[r])
        by_target = np.empty(K, base.dtype)
        by_source = np.empty(K, base.dtype)
        largest = np.abs(table[r]).max()
        for p in range(start, stop):
            near = _parts(r, p, base, target, source, largest, sign, by_target, by_source) < NEAR
            total = base.dtype.type(0.0)
            for k in range(K):
                if left[r, p, k] == 0.0:
                    continue
                row = base.dtype.type(0.0)
                for c in range(K):
                    score, _ = _score(
                        near, r, p, k, c, base, target, source, table, sign, by_target, by_source, by_table
                    )
                    row += right[r, p, c] * score
                total += left[r, p, k] * row
            out[r, p] = total


@kernel(parallel=True)
def expected_logistic_backward(grad, pairs, grads, grad_table):
    """Gradients for every pair, and grad_table (R, chunks, K, K) for each chunk of pairs."""
    left, right, base, target, source, table, sign = pairs
    grad_left, grad_right, grad_base, grad_target, grad_source = grads
    R, P, K = left.shape
    chunks = grad_table.shape[1]
    ends = target.shape[1] > 0
    for job in prange(R * chunks):
        r, start, stop = _span(job, chunks, CHUNK, P)
        tables = np.zeros((K, K))
        by_table = np.exp(-sign * table[r])
        by_target = np.empty(K, base.dtype)
        by_source = np.empty(K, base.dtype)
        largest = np.abs(table[r]).max()
        for p in range(start, stop):
            near = _parts(r, p, base, target, source, largest, sign, by_target, by_source) < NEAR
            g = grad[r, p]
            whole = base.dtype.type(0.0)
            grad_right[r, p] = 0.0
            if ends:
                grad_target[r, p] = 0.0
            for k in range(K):
                to_left = base.dtype.type(0.0)
                to_source = base.dtype.type(0.0)
                for c in range(K):
                    score, share = _score(
                        near, r, p, k, c, base, target, source, table, sign, by_target, by_source, by_table
                    )
                    to_left += right[r, p, c] * score
                    grad_right[r, p, c] += left[r, p, k] * g * score
                    slope = left[r, p, k] * right[r, p, c] * g * sign * share
                    to_source += slope
                    tables[k, c] += slope
                    if ends:
                        grad_target[r, p, c] += slope
                grad_left[r, p, k] = g * to_left
                whole += to_source
                if ends:
                    grad_source[r, p, k] = to_source
            grad_base[r, p] = whole
        grad_table[r, start // CHUNK] = tables
