"""CUDA kernels in Triton for nodes: dense layers, terms of the loss, evaluation, and the bookkeeping of training.

As in `g3nn.kernels.gpu_kernels`, every sum has a fixed order. In a sum over nodes each program writes the sum of its
block, and these few sums are added afterwards.
"""

from __future__ import annotations

import triton
import triton.language as tl

from g3nn.kernels.gpu_kernels import BLOCK, _draw_key, _dropped, places


@triton.jit
def row_products(x, grad, out, n, h, K, rows_per_part, ROWS: tl.constexpr, UNITS: tl.constexpr, LANES: tl.constexpr):
    """out (R, parts, h, K): sum over the rows i of a part of x_i grad_i', for UNITS of the h columns of x."""
    r = tl.program_id(0).to(tl.int64)
    part, parts = tl.program_id(1), tl.num_programs(1)
    unit = tl.program_id(2) * UNITS + tl.arange(0, UNITS)
    lane = tl.arange(0, LANES)
    total = tl.zeros((ROWS, UNITS, LANES), dtype=out.dtype.element_ty)
    start = part.to(tl.int64) * rows_per_part
    stop = tl.minimum(start + rows_per_part, n)
    for block in range(start, stop, ROWS):
        i = block + tl.arange(0, ROWS)
        here = i < stop
        row = (r * n + i)[:, None]
        left = tl.load(x + row * h + unit[None, :], mask=here[:, None] & (unit < h)[None, :], other=0.0)
        right = tl.load(grad + row * K + lane[None, :], mask=here[:, None] & (lane < K)[None, :], other=0.0)
        total += left[:, :, None] * right[:, None, :]
    place = ((r * parts + part) * h + unit)[:, None] * K + lane[None, :]
    tl.store(out + place, tl.sum(total, axis=0), mask=(unit < h)[:, None] & (lane < K)[None, :])


@triton.jit
def column_sums(grad, out, n, h, rows_per_part, ROWS: tl.constexpr, LANES: tl.constexpr):
    """out (R, parts, h): sum over the rows of a part."""
    r = tl.program_id(0).to(tl.int64)
    part, parts = tl.program_id(1), tl.num_programs(1)
    lane = tl.arange(0, LANES)
    total = tl.zeros((ROWS, LANES), dtype=out.dtype.element_ty)
    start = part.to(tl.int64) * rows_per_part
    stop = tl.minimum(start + rows_per_part, n)
    for block in range(start, stop, ROWS):
        i = block + tl.arange(0, ROWS)
        inside = (i < stop)[:, None] & (lane < h)[None, :]
        total += tl.load(grad + (r * n + i)[:, None] * h + lane[None, :], mask=inside, other=0.0)
    tl.store(out + (r * parts + part) * h + lane, tl.sum(total, axis=0), mask=lane < h)


@triton.jit
def rectify(x, bias, noise, out, size, h):
    """out (R, size) = dropout(max(0, x + bias)), with size = n h and bias (R, h)."""
    r = tl.program_id(1)
    p = places(BLOCK)
    inside = p < size
    at = r.to(tl.int64) * size + p
    value = tl.load(x + at, mask=inside, other=0.0) + tl.load(bias + r * h + p % h, mask=inside, other=0.0)
    value = tl.where(value > 0.0, value, 0.0 * value)  # a NaN stays one
    value = _dropped(value, _draw_key(noise, r), p, noise)
    tl.store(out + at, value, mask=inside)


@triton.jit
def rectify_backward(grad, kept, scale, out, size):
    """out = grad * scale where the forward result `kept` is positive: neither rectified nor dropped."""
    p = places(BLOCK)
    inside = p < size
    value = tl.load(grad + p, mask=inside, other=0.0) * scale
    tl.store(out + p, tl.where(tl.load(kept + p, mask=inside, other=0.0) > 0.0, value, 0.0), mask=inside)


@triton.jit
def _answers(answers, r, i, n, K, LANES: tl.constexpr):
    """For a block of nodes: log q, log p, which class is the label, which nodes are in U, their places and a mask."""
    log_q, log_p, label = answers
    k = tl.arange(0, LANES)
    inside = (i < n)[:, None] & (k < K)[None, :]
    y = tl.load(label + i, mask=i < n, other=-2)[:, None]
    at = (r * n + i)[:, None] * K + k[None, :]
    lq = tl.load(log_q + at, mask=inside, other=0.0)
    lp = tl.load(log_p + at, mask=inside, other=0.0)
    return lq, lp, y == k[None, :], y == -1, at, inside


@triton.jit
def node_terms(answers, shares, sums, soft, n, K, OF_POSTERIOR: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr):
    """sums (R, blocks, 4) over each block of nodes, and soft (R, n, K); see `g3nn.kernels.nodes`."""
    share_l, share_u = shares
    r = tl.program_id(1).to(tl.int64)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    i = places(ROWS)
    lq, lp, observed, free, at, inside = _answers(answers, r, i, n, K, LANES)
    free = inside & free
    q = tl.where(free, tl.exp(lq), 0.0)
    place = sums + (r * blocks + block) * 4
    tl.store(place, -share_l * tl.sum(tl.sum(tl.where(observed, lq, 0.0), axis=1), axis=0))
    tl.store(place + 1, -share_l * tl.sum(tl.sum(tl.where(observed, lp, 0.0), axis=1), axis=0))
    tl.store(place + 2, -share_u * tl.sum(tl.sum(q * lp, axis=1), axis=0))
    tl.store(place + 3, -share_u * tl.sum(tl.sum(q * lq, axis=1), axis=0))
    known = tl.where(observed, 1.0, 0.0)
    tl.store(soft + at, tl.where(free, q if OF_POSTERIOR else tl.exp(lp), known), mask=inside)


@triton.jit
def node_terms_backward(
    answers, shares, grads, n, K, OF_POSTERIOR: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr
):
    share_l, share_u = shares
    grad_sums, grad_soft, grad_q, grad_p = grads
    r = tl.program_id(1).to(tl.int64)
    i = places(ROWS)
    lq, lp, observed, free, at, inside = _answers(answers, r, i, n, K, LANES)
    slope = tl.load(grad_soft + at, mask=inside, other=0.0)
    supervised, prior = share_l * tl.load(grad_sums + r * 4), share_l * tl.load(grad_sums + r * 4 + 1)
    cross, entropy = share_u * tl.load(grad_sums + r * 4 + 2), share_u * tl.load(grad_sums + r * 4 + 3)
    q = tl.exp(lq)
    dq = -q * (cross * lp + entropy * (lq + 1.0))
    dp = -q * cross
    if OF_POSTERIOR:
        dq += slope * q
    else:
        dp += slope * tl.exp(lp)
    tl.store(grad_q + at, tl.where(free, dq, tl.where(observed, -supervised, 0.0)), mask=inside)
    tl.store(grad_p + at, tl.where(free, dp, tl.where(observed, -prior, 0.0)), mask=inside)


@triton.jit
def validation(log_q, labels, nodes, out, n, K, count, nodes_per_part, NODES: tl.constexpr, LANES: tl.constexpr):
    """out (parts, 2, R): what a part adds to the mean of - log q(label) over `nodes`, and to the share of them whose
    most probable class is the label."""
    part, r, R = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64), tl.num_programs(1)
    k = tl.arange(0, LANES)
    loss = tl.zeros((NODES,), dtype=out.dtype.element_ty)
    right = tl.zeros((NODES,), dtype=out.dtype.element_ty)
    stop = tl.minimum((part + 1) * nodes_per_part, count)
    for start in range(part * nodes_per_part, stop, NODES):
        v = start + tl.arange(0, NODES)
        here = v < stop
        i = tl.load(nodes + v, mask=here, other=0)
        y = tl.load(labels + i, mask=here, other=0)
        inside = here[:, None] & (k < K)[None, :]
        row = tl.load(log_q + (r * n + i)[:, None] * K + k[None, :], mask=inside, other=-float("inf"))
        own = tl.sum(tl.where(k[None, :] == y[:, None], row, 0.0), axis=1)
        loss += tl.where(here, own, 0.0)
        right += tl.where(here & (tl.argmax(row, axis=1) == y), 1.0, 0.0)
    tl.store(out + 2 * part * R + r, -tl.sum(loss, axis=0) / count)
    tl.store(out + (2 * part + 1) * R + r, tl.sum(right, axis=0) / count)


@triton.jit
def keep_book(losses, val_loss, val_accuracy, books, limit, patience, R, BLOCK: tl.constexpr):
    """`Track.update` in one program."""
    clock, best_loss, best_accuracy, best_epoch, epochs, active, diverged, fresh = books
    now = tl.load(clock) + 1
    for start in range(0, R, BLOCK):
        r = start + tl.arange(0, BLOCK)
        here = r < R
        loss = tl.load(losses + r, mask=here, other=0.0)
        found = tl.load(val_loss + r, mask=here, other=0.0)
        # NaN differs from itself, infinity minus itself is NaN.
        finite = (loss - loss == 0.0) & (found - found == 0.0)
        going = tl.load(active + r, mask=here, other=0) != 0
        improved = here & going & finite & (found < tl.load(best_loss + r, mask=here, other=0.0))
        tl.store(best_loss + r, found, mask=improved)
        tl.store(best_accuracy + r, tl.load(val_accuracy + r, mask=here, other=0.0), mask=improved)
        since = tl.where(improved, now, tl.load(best_epoch + r, mask=here, other=0))
        tl.store(best_epoch + r, since, mask=improved)
        tl.store(epochs + r, now + tl.zeros((BLOCK,), dtype=tl.int64), mask=here & going)
        tl.store(diverged + r, tl.full((BLOCK,), 1, tl.int1), mask=here & going & ~finite)
        tl.store(active + r, going & finite & (now - since < patience) & (now < limit), mask=here)
        tl.store(fresh + r, improved, mask=here)
    tl.store(clock, now)


@triton.jit
def _log_sigmoid(x):
    return tl.minimum(x, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _pair_logits(pairs, r, p, P, K, LANES: tl.constexpr):
    """For a block of pairs: beliefs at both ends, logits (PAIRS, LANES, LANES), and the places and masks of the former
    and of the table."""
    left, right, base, target, source, table, _ = pairs
    k = tl.arange(0, LANES)
    live = p < P
    at = (r * P + p)[:, None] * K + k[None, :]
    inside = live[:, None] & (k < K)[None, :]
    a = tl.load(left + at, mask=inside, other=0.0)
    b = tl.load(right + at, mask=inside, other=0.0)
    square = (k < K)[:, None] & (k < K)[None, :]
    cell = k[:, None] * K + k[None, :]
    logit = tl.load(table + r * K * K + cell, mask=square, other=0.0)[None, :, :]
    logit = logit + tl.load(base + r * P + p, mask=live, other=0.0)[:, None, None]
    if target is not None:
        logit += tl.load(target + at, mask=inside, other=0.0)[:, None, :]
        logit += tl.load(source + at, mask=inside, other=0.0)[:, :, None]
    return a, b, logit, at, inside, cell, square


@triton.jit
def expected_logistic(pairs, out, P, K, PAIRS: tl.constexpr, LANES: tl.constexpr):
    """out (R, P): sum_kl left_k right_l log sigmoid(sign (base + target_l + source_k + table_kl))."""
    r = tl.program_id(1).to(tl.int64)
    p = places(PAIRS)
    a, b, logit, _, _, _, _ = _pair_logits(pairs, r, p, P, K, LANES)
    score = a[:, :, None] * b[:, None, :] * _log_sigmoid(pairs[6] * logit)
    tl.store(out + r * P + p, tl.sum(tl.sum(score, axis=2), axis=1), mask=p < P)


@triton.jit
def expected_logistic_backward(grad, pairs, grads, P, K, PAIRS: tl.constexpr, LANES: tl.constexpr):
    """Gradients for every pair, and grad_table (R, blocks, K, K) for each block of pairs."""
    grad_left, grad_right, grad_base, grad_target, grad_source, grad_table = grads
    sign = pairs[6]
    r = tl.program_id(1).to(tl.int64)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    p = places(PAIRS)
    a, b, logit, at, inside, cell, square = _pair_logits(pairs, r, p, P, K, LANES)
    g = tl.load(grad + r * P + p, mask=p < P, other=0.0)
    score = g[:, None, None] * _log_sigmoid(sign * logit)
    tl.store(grad_left + at, tl.sum(score * b[:, None, :], axis=2), mask=inside)
    tl.store(grad_right + at, tl.sum(score * a[:, :, None], axis=1), mask=inside)
    slope = a[:, :, None] * b[:, None, :] * g[:, None, None] * sign / (1.0 + tl.exp(sign * logit))
    by_source = tl.sum(slope, axis=2)
    tl.store(grad_base + r * P + p, tl.sum(by_source, axis=1), mask=p < P)
    if grad_target is not None:
        tl.store(grad_target + at, tl.sum(slope, axis=1), mask=inside)
        tl.store(grad_source + at, by_source, mask=inside)
    tl.store(grad_table + (r * blocks + block) * K * K + cell, tl.sum(slope, axis=0), mask=square)
