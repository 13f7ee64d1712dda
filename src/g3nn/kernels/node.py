"""Sums over the nodes of a graph that the loss and the evaluation are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import fast

UNLABELLED = -1


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    """What the loss needs of the answers q and p at each node. log_q, log_p (R, n, K); label (n,), -1 in U.

    Returns sums (R, 4): over L of - log q(y) and of - log p(y), over U of - sum_k q_k log p_k and of H(q), where a node
    of L counts with the first share and one of U with the second; and the labels (R, n, K) that enter the graph term:
    the observed one in L, in U those of q if `of_posterior`, else those of p.
    """
    if fast(log_q) is None:
        return _node_terms(log_q, log_p, label, of_posterior, shares)
    sums, soft = _NodeTerms.apply(log_q, log_p, label, of_posterior, shares)
    return sums, soft


def _node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    labelled = (label != UNLABELLED).unsqueeze(1)
    observed = torch.nn.functional.one_hot(label.clamp_min(0), log_q.shape[2]).to(log_q.dtype) * labelled
    q = log_q.exp()
    over_labelled = [-shares[0] * (observed * answer).sum((1, 2)) for answer in (log_q, log_p)]
    over_unlabelled = [-shares[1] * torch.where(labelled, 0.0, q * answer).sum((1, 2)) for answer in (log_p, log_q)]
    soft = torch.where(labelled, observed, q if of_posterior else log_p.exp())
    return torch.stack([*over_labelled, *over_unlabelled], dim=1), soft


class _NodeTerms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_q: Tensor, log_p: Tensor, label: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(log_q, log_p, label)
        ctx.how = how
        return fast(log_q).node_terms(log_q, log_p, label, *how)  # type: ignore[union-attr]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        kernels: Any = fast(grads[0])
        return *kernels.node_terms_backward(*ctx.saved_tensors, *ctx.how, *grads), None, None, None
