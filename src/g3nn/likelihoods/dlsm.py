"""A latent space model in which close nodes are linked (Hoff, Raftery and Handcock, 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.kernels import expected_logistic, gather, linear, pair_dot, pair_sum
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import integer, number
from g3nn.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class DistanceOptions:
    latent: int = integer(8, "number of dimensions of the latent space", low=1)
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class DistanceLatentSpace(GraphLikelihood):
    """p(e_ij = 1) = sigmoid(b - |z_i - z_j|^2): a node sits at z = U x + V y, moved there by features and label.

    With D = U x_i - U x_j the logit for labels (k, l) is b - |D|^2 - 2 D' v_k + 2 D' v_l - |v_k - v_l|^2.
    A distance has no direction, so arcs of a directed graph are as likely either way.
    """

    Options = DistanceOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: DistanceOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or DistanceOptions()
        self.U = replicas.glorot("U", sizes.features, self.options.latent)
        self.V = replicas.glorot("V", self.options.latent, sizes.classes)
        self.b = replicas.zeros(1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, u): U x_i."""
        return inputs.x.matmul(self.U, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        return base[:, :, None, None] + pull.unsqueeze(2) - pull.unsqueeze(3) + table.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        left, right = gather(q, pairs.i), gather(q, pairs.j)
        return expected_logistic(left, right, base, table, pairs.present, pull, -pull)

    def _parts(self, state: NodeState, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """b - |D|^2 as (R, P), 2 D' v as (R, P, K), and - |v_k - v_l|^2 as (R, K, K)."""
        assert state is not None
        length = state.square().sum(2)
        distance = pair_sum(length, length, *pairs.index) - 2 * pair_dot(state, state, *pairs.index)
        towards = 2 * linear(state, self.V)
        pull = gather(towards, pairs.i) - gather(towards, pairs.j)
        apart = (self.V.unsqueeze(3) - self.V.unsqueeze(2)).square().sum(1)
        return self.b - distance, pull, -apart
