"""The exact expectation of a logistic model of a pair over the K x K labels of its two ends."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.kernels import reference
from g3nn.kernels.arguments import LogisticPairs
from g3nn.kernels.backend import fast


def expected_logistic(
    left: Tensor,
    right: Tensor,
    base: Tensor,
    table: Tensor,
    present: bool,
    target: Tensor | None = None,
    source: Tensor | None = None,
) -> Tensor:
    """(R, P): sum_kl left_k right_l log sigmoid(+- logit_kl), with + for edges and - for non-edges, where
    logit_kl = base + table_kl + target_l + source_k.

    left, right (R, P, K): beliefs at the two ends; base (R, P); table (R, K, K); target and source (R, P, K) or None.
    """
    arguments = (left, right, base, target, source, table, 1.0 if present else -1.0)
    if fast(left) is None:
        return reference.expected_logistic(LogisticPairs(*arguments))
    return _ExpectedLogistic.apply(*arguments)


def logistic_bound(mean: Tensor, square: Tensor, present: bool) -> Tensor:
    """The lower bound of Jaakkola and Jordan (2000) on E log sigmoid(+- x), with + for edges and - for non-edges, from
    the mean and the mean square of x: log sigmoid(s) + (+- mean - s) / 2 with s^2 = E x^2. It is tight if x is certain.
    """
    # The root has no derivative at zero, though the bound has one; the small addition only lowers the bound.
    size = (square + 1e-12).clamp_min(1e-12).sqrt()
    return logsigmoid(size) + 0.5 * ((mean if present else -mean) - size)


class _ExpectedLogistic(torch.autograd.Function):
    """Never stores the R x P x K x K table; the gradient recomputes it."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *tensors, ctx.sign = arguments
        ctx.save_for_backward(*tensors)
        return fast(tensors[0]).expected_logistic(LogisticPairs(*arguments))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        pairs = LogisticPairs._make((*ctx.saved_tensors, ctx.sign))
        return *fast(grads[0]).expected_logistic_backward(grads[0], pairs), None
