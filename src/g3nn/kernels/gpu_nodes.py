"""The Triton kernels of `gpu_node_kernels` as functions of CUDA tensors."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from g3nn.kernels import gpu_node_kernels as kernels
from g3nn.kernels.arguments import Draw, on_device

_BLOCK = 1024
_PROGRAMS = 2048
"""The number of programs that fills the device; sums over nodes are split into parts to reach it."""


def _parts(R: int, n: int) -> tuple[int, int]:
    """The number of parts into which n rows are split, and the rows in each."""
    size = max(64, triton.cdiv(n, max(1, _PROGRAMS // R)))
    return triton.cdiv(n, size), size


def row_products(x: Tensor, grad: Tensor) -> Tensor:
    """(R, h, K) = x_r' grad_r. A library product would run one program per replica, which leaves most of a GPU idle."""
    (R, n, h), K = x.shape, grad.shape[2]
    parts, size = _parts(R, n)
    out = torch.empty(R, parts, h, K, dtype=x.dtype, device=x.device)
    lanes = triton.next_power_of_2(K)
    units = max(1, min(16, triton.next_power_of_2(h), 512 // lanes))
    rows = max(1, min(16, 2048 // (units * lanes)))
    kernels.row_products[(R, parts, triton.cdiv(h, units))](
        x.contiguous(), grad.contiguous(), out, n, h, K, parts, size, ROWS=rows, UNITS=units, LANES=lanes
    )
    return out.sum(1)


def column_sums(grad: Tensor) -> Tensor:
    """(R, h): the sum over rows."""
    R, n, h = grad.shape
    parts, size = _parts(R, n)
    out = torch.empty(R, parts, h, dtype=grad.dtype, device=grad.device)
    lanes = triton.next_power_of_2(h)
    rows = max(1, min(64, 2048 // lanes))
    kernels.column_sums[(R, parts)](grad.contiguous(), out, n, h, parts, size, ROWS=rows, LANES=lanes)
    return out.sum(1)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    R, n, h = x.shape
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    counter = x if draw is None else on_device(draw.counter, x.device)
    kernels.rectify[(R, triton.cdiv(n * h, _BLOCK))](
        x.contiguous(),
        bias.contiguous(),
        x if draw is None else draw.seeds,
        counter,
        0 if draw is None else draw.threshold,
        1.0 if draw is None else draw.scale,
        out,
        n * h,
        h,
        DROP=draw is not None,
        BLOCK=_BLOCK,
    )
    return out


def rectify_backward(grad: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    out = torch.empty_like(kept)
    size = kept.numel()
    kernels.rectify_backward[(triton.cdiv(size, _BLOCK),)](grad.contiguous(), kept, scale, out, size, BLOCK=_BLOCK)
    return out, column_sums(out)


def _rows(K: int) -> dict[str, int]:
    lanes = triton.next_power_of_2(K)
    return {"ROWS": max(1, 512 // lanes), "LANES": lanes}


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    R, n, K = log_q.shape
    shape = _rows(K)
    blocks = triton.cdiv(n, shape["ROWS"])
    sums = torch.empty(R, blocks, 4, dtype=log_q.dtype, device=log_q.device)
    soft = torch.empty(R, n, K, dtype=log_q.dtype, device=log_q.device)
    inputs = (log_q.contiguous(), log_p.contiguous(), label)
    kernels.node_terms[(R, blocks)](*inputs, *shares, sums, soft, n, K, blocks, OF_POSTERIOR=of_posterior, **shape)
    return sums.sum(1), soft


def node_terms_backward(
    log_q: Tensor,
    log_p: Tensor,
    label: Tensor,
    of_posterior: bool,
    shares: tuple[float, float],
    grad_sums: Tensor,
    grad_soft: Tensor,
) -> tuple[Tensor, Tensor]:
    R, n, K = log_q.shape
    shape = _rows(K)
    grad_q, grad_p = (torch.empty(R, n, K, dtype=log_q.dtype, device=log_q.device) for _ in range(2))
    inputs = (log_q.contiguous(), log_p.contiguous(), label, grad_sums.contiguous(), grad_soft.contiguous())
    kernels.node_terms_backward[(R, triton.cdiv(n, shape["ROWS"]))](
        *inputs, *shares, grad_q, grad_p, n, K, OF_POSTERIOR=of_posterior, **shape
    )
    return grad_q, grad_p


def validation(log_q: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    R, n, K = log_q.shape
    out = torch.empty(2, R, dtype=log_q.dtype, device=log_q.device)
    lanes = triton.next_power_of_2(K)
    kernels.validation[(R,)](
        log_q.contiguous(), labels, nodes, out, n, K, nodes.numel(), R, NODES=max(1, 1024 // lanes), LANES=lanes
    )
    return out


def keep_book(
    losses: Tensor, val_loss: Tensor, val_accuracy: Tensor, books: tuple[Tensor, ...], limit: int, patience: int
) -> None:
    """`books`: clock, best loss, accuracy and epoch, epochs, active, diverged, fresh; all changed in place."""
    R = losses.shape[0]
    block = min(1024, triton.next_power_of_2(R))
    kernels.keep_book[(1,)](losses, val_loss, val_accuracy, *books, limit, patience, R, BLOCK=block)


def _pair_blocks(P: int, K: int) -> tuple[int, dict[str, int]]:
    lanes = triton.next_power_of_2(K)
    pairs = max(1, 2048 // (lanes * lanes))
    return triton.cdiv(P, pairs), {"PAIRS": pairs, "LANES": lanes}


def expected_logistic(
    left: Tensor, right: Tensor, base: Tensor, target: Tensor | None, source: Tensor | None, table: Tensor, sign: float
) -> Tensor:
    R, P, K = left.shape
    out = torch.empty(R, P, dtype=left.dtype, device=left.device)
    blocks, shape = _pair_blocks(P, K)
    ends = (left if target is None else target.contiguous(), left if source is None else source.contiguous())
    inputs = (left.contiguous(), right.contiguous(), base.contiguous(), *ends, table.contiguous())
    kernels.expected_logistic[(blocks, R)](*inputs, sign, out, P, K, ENDS=target is not None, **shape)
    return out


def expected_logistic_backward(
    grad: Tensor,
    left: Tensor,
    right: Tensor,
    base: Tensor,
    target: Tensor | None,
    source: Tensor | None,
    table: Tensor,
    sign: float,
) -> tuple[Tensor | None, ...]:
    R, P, K = left.shape
    blocks, shape = _pair_blocks(P, K)
    grad_left, grad_right = torch.empty_like(left), torch.empty_like(left)
    grad_base = torch.empty(R, P, dtype=left.dtype, device=left.device)
    grad_ends = (None, None) if target is None else (torch.empty_like(left), torch.empty_like(left))
    grad_table = torch.empty(R, blocks, K, K, dtype=left.dtype, device=left.device)
    ends = (left if target is None else target.contiguous(), left if source is None else source.contiguous())
    inputs = (grad.contiguous(), left.contiguous(), right.contiguous(), base.contiguous(), *ends, table.contiguous())
    unused = tuple(left if end is None else end for end in grad_ends)
    kernels.expected_logistic_backward[(blocks, R)](
        *inputs,
        sign,
        grad_left,
        grad_right,
        grad_base,
        *unused,
        grad_table,
        P,
        K,
        blocks,
        ENDS=target is not None,
        **shape,
    )
    return grad_left, grad_right, grad_base, *grad_ends, grad_table.sum(1)
