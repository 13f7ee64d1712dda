"""A stochastic block model in which some nodes are more active than others (Karrer and Newman, 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.kernels import expected_logistic, gather, pair_sum
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import number
from g3nn.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class DegreeCorrectedOptions:
    p0: Scalar = number(
        0.9, "where the probability within a class starts", low=0, high=1, open_ends=True, per_replica=True
    )
    p1: Scalar = number(
        0.1, "where the probability between classes starts", low=0, high=1, open_ends=True, per_replica=True
    )
    latent_dropout: float = number(0.0, "dropout on the features before the activity", low=0, high=0.95)


class DegreeCorrectedBlock(GraphLikelihood):
    """p(e_ij = 1) = sigmoid(B_kl + a_i + a_j) for y_i = k, y_j = l, with a learned K x K matrix B of log-odds.

    The activity a_i = u' x_i of a node is learned from its features, so a node that was never seen has one too. On a
    directed graph a node has one activity as source and another as target. B starts from the planted partition.
    """

    Options = DegreeCorrectedOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: DegreeCorrectedOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or DegreeCorrectedOptions()
        within, between = (torch.logit(replicas.scalar(p)).view(-1, 1, 1) for p in (self.options.p0, self.options.p1))
        same = torch.eye(sizes.classes)
        self.B = nn.Parameter(within * same + between * (1 - same))
        self.u = replicas.glorot("u", sizes.features, 2 if sizes.directed else 1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, ends): the activity as source and as target."""
        return inputs.x.matmul(self.u, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._activity(state, pairs)[:, :, None, None] + self._table().unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        left, right = gather(q, pairs.i), gather(q, pairs.j)
        return expected_logistic(left, right, self._activity(state, pairs), self._table(), pairs.present)

    def _table(self) -> Tensor:
        return self.B if self.sizes.directed else (self.B + self.B.transpose(1, 2)) / 2

    def _activity(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P): a_i + a_j."""
        assert state is not None
        return pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
