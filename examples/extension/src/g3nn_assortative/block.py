"""The assortative block model: every class has a density of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from g3nn.base.options import number
from g3nn.kernels import pair_dot
from g3nn.model.likelihoods import ClassLikelihood, NodeState, Pairs
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class AssortativeOptions:
    p0: Scalar = number(
        0.9, "initial probability of an edge within a class", low=0, high=1, open_ends=True, per_replica=True
    )
    p1: Scalar = number(
        0.1, "initial probability of an edge between classes", low=0, high=1, open_ends=True, per_replica=True
    )


class AssortativeBlock(ClassLikelihood):
    """p(e_ij = 1) = P_k if y_i = y_j = k, else r, with learned P_1 .. P_K and r (Gopalan et al., 2012).

    Some classes are denser than others, but no two of them attract each other: K + 1 numbers, where the planted
    partition `sbm` has two and the general block model `gsbm` has K x K.
    """

    Options = AssortativeOptions
    uses_features: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: AssortativeOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        options = options or AssortativeOptions()
        within, between = (torch.logit(replicas.scalar(p)).unsqueeze(1) for p in (options.p0, options.p1))
        self.within = nn.Parameter(within.repeat(1, sizes.classes))
        """(R, K): log-odds of P."""
        self.between = nn.Parameter(between)
        """(R, 1): log-odds of r."""

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, 1, K, K): all pairs are alike."""
        same = torch.eye(self.sizes.classes, dtype=self.within.dtype, device=self.within.device)
        odds = self.within.unsqueeze(2) * same + self.between.unsqueeze(2) * (1 - same)
        return odds.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """log r + sum_k q_ik q_jk (log P_k - log r), without the table."""
        within, between = pairs.log_prob(self.within), pairs.log_prob(self.between)
        return between + pair_dot(q * (within - between).unsqueeze(1), q, *pairs.index)
