"""Sums over the nodes of a graph, of which the loss is made."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from g3nn.kernels.arguments import NodeAnswers
from g3nn.kernels.backend import fast

UNLABELLED = -1


class NodeSums(NamedTuple):
    """The columns of the sums that `node_terms` returns, in this order; (R,) each."""

    supervised: Tensor
    """over L: - log q(y)"""
    prior: Tensor
    """over L: - log p(y)"""
    cross_entropy: Tensor
    """over U: - sum_k q_k log p_k"""
    entropy: Tensor
    """over U: H(q)"""


def node_terms(
    log_q: Tensor, log_p: Tensor, label: Tensor, of_posterior: bool, shares: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    """What the loss needs to know about the answers q and p at each node. log_q, log_p (R, n, K); label (n,), -1 in U.

    Returns the sums (R, 4) of `NodeSums`, in which a node of L has the first share as its weight and a node of U the
    second; and the labels (R, n, K) that enter the graph term: observed in L, those of q (if `of_posterior`) or p in U.
    """
    if fast(log_q) is not None:
        return _NodeTerms.apply(log_q, log_p, label, of_posterior, shares)
    labelled = (label != UNLABELLED).unsqueeze(1)
    observed = torch.nn.functional.one_hot(label.clamp_min(0), log_q.shape[2]).to(log_q.dtype) * labelled
    q = log_q.exp()
    over_labelled = [-shares[0] * (observed * answer).sum((1, 2)) for answer in (log_q, log_p)]
    over_unlabelled = [-shares[1] * torch.where(labelled, 0.0, q * answer).sum((1, 2)) for answer in (log_p, log_q)]
    soft = torch.where(labelled, observed, q if of_posterior else log_p.exp())
    return torch.stack([*over_labelled, *over_unlabelled], dim=1), soft


class _NodeTerms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        *tensors, of_posterior, shares = arguments
        ctx.save_for_backward(*tensors)
        ctx.how = of_posterior, shares
        return fast(tensors[0]).node_terms(NodeAnswers(*arguments))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        answers = NodeAnswers(*ctx.saved_tensors, *ctx.how)
        return *fast(grads[0]).node_terms_backward(*grads, answers), None, None, None
