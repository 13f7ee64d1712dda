"""The numba kernels of `cpu_node_kernels` as functions of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.kernels import cpu_node_kernels as kernels
from g3nn.kernels.cpu_arrays import array, noise, number
from g3nn.kernels.draw import Draw


def _chunks(size: int) -> int:
    return -(-size // kernels.CHUNK)


def _total(parts: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(parts.sum(1)).to(like.dtype)


def rectify(x: Tensor, bias: Tensor, draw: Draw | None) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    kernels.rectify(array(x), array(bias), *noise(draw, x), out.numpy())
    return out


def rectify_backward(grad: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    R, n, h = kept.shape
    out, sums = torch.empty(kept.shape, dtype=kept.dtype), np.empty((R, _chunks(n), h))
    kernels.rectify_backward(array(grad), array(kept), number(scale, kept), out.numpy(), sums)
    return out, _total(sums, kept)


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    R, n, _ = log_q.shape
    sums, soft = np.empty((R, _chunks(n), 4)), torch.empty(log_q.shape, dtype=log_q.dtype)
    kernels.node_terms(array(log_q), array(log_p), array(label), of_posterior, sums, soft.numpy())
    return _total(sums * np.repeat(shares, 2), log_q), soft


def node_terms_backward(
    log_q: Tensor,
    log_p: Tensor,
    label: Tensor,
    of_posterior: bool,
    shares: tuple[float, float],
    grad_sums: Tensor,
    grad_soft: Tensor,
) -> tuple[Tensor, Tensor]:
    grad_q, grad_p = (torch.empty(log_q.shape, dtype=log_q.dtype) for _ in range(2))
    slopes = array(grad_sums) * np.repeat(np.array(shares, dtype=array(grad_sums).dtype), 2)
    inputs = (array(log_q), array(log_p), array(label), of_posterior, slopes, array(grad_soft))
    kernels.node_terms_backward(*inputs, grad_q.numpy(), grad_p.numpy())
    return grad_q, grad_p


def _ends(target: Tensor | None, source: Tensor | None, like: Tensor) -> tuple[np.ndarray, ...]:
    """Arrays of the two; without pairs where there are none, which the kernels understand."""
    none = np.empty((like.shape[0], 0, like.shape[2]), dtype=array(like).dtype)
    return tuple(none if end is None else array(end) for end in (target, source))


def expected_logistic(
    left: Tensor, right: Tensor, base: Tensor, target: Tensor | None, source: Tensor | None, table: Tensor, sign: float
) -> Tensor:
    out = torch.empty(base.shape, dtype=base.dtype)
    ends = _ends(target, source, left)
    kernels.expected_logistic(
        array(left), array(right), array(base), *ends, array(table), number(sign, base), out.numpy()
    )
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
    tables = np.empty((R, _chunks(P), K, K))
    inputs: tuple[Any, ...] = (array(grad), array(left), array(right), array(base))
    inputs = (*inputs, *_ends(target, source, left), array(table), number(sign, base))
    grad_left, grad_right, grad_target, grad_source = (torch.empty(left.shape, dtype=left.dtype) for _ in range(4))
    grad_base = torch.empty(base.shape, dtype=base.dtype)
    outputs = (grad_left, grad_right, grad_base, grad_target, grad_source)
    kernels.expected_logistic_backward(*inputs, *(tensor.numpy() for tensor in outputs), tables)
    ends = (None, None) if target is None else (grad_target, grad_source)
    return grad_left, grad_right, grad_base, *ends, _total(tables, table)
