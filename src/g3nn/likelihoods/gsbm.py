"""The general stochastic block model: one learned probability for each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.kernels import linear, pair_dot
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import number
from g3nn.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class BlockOptions:
    p0: Scalar = number(
        0.9, "where the probability within a class starts", low=0, high=1, open_ends=True, per_replica=True
    )
    p1: Scalar = number(
        0.1, "where the probability between classes starts", low=0, high=1, open_ends=True, per_replica=True
    )


class StochasticBlock(GraphLikelihood):
    """e_ij ~ Bernoulli(P_kl) for y_i = k, y_j = l, with a learned K x K matrix P (symmetric on undirected graphs).

    E_q log p(e_ij) = q_i' log(P) q_j, closed. Starts from the planted partition (p0 within, p1 between).
    """

    Options = BlockOptions
    uses_features: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: BlockOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        options = options or BlockOptions()
        within, between = (torch.logit(replicas.scalar(p)).view(-1, 1, 1) for p in (options.p0, options.p1))
        same = torch.eye(sizes.classes)
        self.odds = nn.Parameter(within * same + between * (1 - same))
        """(R, K, K): log-odds of P, before it is made symmetric."""

    def _odds(self) -> Tensor:
        return self.odds if self.sizes.directed else (self.odds + self.odds.transpose(1, 2)) / 2

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._odds().unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        odds = self._odds()
        log_p = logsigmoid(odds if pairs.present else -odds)
        return pair_dot(linear(q, log_p), q, *pairs.index)
