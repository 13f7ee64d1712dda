"""The general stochastic block model: one learned probability for each pair of classes."""

from __future__ import annotations

from torch import Tensor

from g3nn.kernels import linear, pair_dot
from g3nn.model.likelihoods.base import BlockOptions, ClassLikelihood, NodeState, Pairs, planted_odds
from g3nn.model.replicas import Replicas, Sizes


class StochasticBlock(ClassLikelihood):
    """e_ij ~ Bernoulli(P_kl) for y_i = k, y_j = l, with a learned K x K matrix P (symmetric on undirected graphs).

    E_q log p(e_ij) = q_i' log(P) q_j, in closed form. P starts as a planted partition (p0 within classes, p1 between).
    """

    Options = BlockOptions
    uses_features = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: BlockOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.odds = planted_odds(sizes, replicas, options or BlockOptions())
        """(R, K, K): log-odds of P, before it is symmetrised."""

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self.symmetric(self.odds).unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        log_p = pairs.log_prob(self.symmetric(self.odds))
        return pair_dot(linear(q, log_p), q, *pairs.index)
