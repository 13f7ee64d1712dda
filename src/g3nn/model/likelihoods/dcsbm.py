"""A stochastic block model in which some nodes are more active than others (Karrer and Newman, 2011)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import number
from g3nn.kernels import expected_logistic, pair_sum
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import BlockOptions, ClassLikelihood, NodeState, Pairs, planted_odds
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class DegreeCorrectedOptions(BlockOptions):
    latent_dropout: float = number(0.0, "dropout on the features that the activity depends on", low=0, high=0.95)


class DegreeCorrectedBlock(ClassLikelihood[DegreeCorrectedOptions]):
    """p(e_ij = 1) = sigmoid(B_kl + a_i + a_j) for y_i = k, y_j = l, with a learned K x K matrix B of log-odds.

    The activity a_i = u' x_i of a node depends on its features, so that new nodes have one too. On a directed graph a
    node has one activity as source and another as target. B starts as a planted partition.
    """

    Options = DegreeCorrectedOptions
    uses_features = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: DegreeCorrectedOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.B = planted_odds(sizes, replicas, self.options)
        self.u = replicas.glorot("u", sizes.features, 2 if sizes.directed else 1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, ends): the activity as source and as target."""
        return inputs.x.matmul(self.u, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._activity(state, pairs)[:, :, None, None] + self.symmetric(self.B).unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        return expected_logistic(*pairs.ends(q), self._activity(state, pairs), self.symmetric(self.B), pairs.present)

    def _activity(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P): a_i + a_j."""
        assert state is not None
        return pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
