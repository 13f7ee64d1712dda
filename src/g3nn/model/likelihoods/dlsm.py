"""A latent space model in which close nodes are linked (Hoff, Raftery and Handcock, 2002)."""

from __future__ import annotations

from torch import Tensor

from g3nn.kernels import expected_logistic, linear
from g3nn.model.likelihoods.base import NodeState, Pairs
from g3nn.model.likelihoods.latent import LatentOptions, LatentSpace
from g3nn.model.replicas import Replicas, Sizes


class DistanceLatentSpace(LatentSpace):
    """p(e_ij = 1) = sigmoid(b - |z_i - z_j|^2): the position z = U x + V y of a node follows from features and label.

    With D = U x_i - U x_j the logit for labels (k, l) is b - |D|^2 - 2 D' v_k + 2 D' v_l - |v_k - v_l|^2.
    A distance has no direction, so on a directed graph both arcs between two nodes are equally likely.
    """

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.V = replicas.glorot("V", self.options.latent, sizes.classes)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        return base[:, :, None, None] + pull.unsqueeze(2) - pull.unsqueeze(3) + table.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        return expected_logistic(*pairs.ends(q), base, table, pairs.present, pull, -pull)

    def _parts(self, state: NodeState, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """b - |D|^2 as (R, P), 2 D' v as (R, P, K), and - |v_k - v_l|^2 as (R, K, K)."""
        assert state is not None
        distance = pairs.squared_distance(state)
        towards = 2 * linear(state, self.V)
        left, right = pairs.ends(towards)
        apart = (self.V.unsqueeze(3) - self.V.unsqueeze(2)).square().sum(1)
        return self.b - distance, left - right, -apart
