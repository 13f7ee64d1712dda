"""A latent space model that compares the two ends of a pair."""

from __future__ import annotations

from torch import Tensor

from g3nn.kernels import expected_logistic, gather, linear, pair_dot
from g3nn.model.likelihoods.base import NodeState, Pairs
from g3nn.model.likelihoods.latent import LatentOptions, LatentSpace
from g3nn.model.replicas import Replicas, Sizes


class BilinearLatentSpace(LatentSpace):
    """p(e_ij = 1) = sigmoid(z_i' M z_j + b) with z = [U x, y] and M symmetric on undirected graphs.

    With M cut into blocks, the logit for labels (k, l) is
    (Ux_i)' M_uu (Ux_j) + (Ux_i)' M_uy[l] + M_yu[k] (Ux_j) + M_yy[k, l] + b.
    """

    cost = 4.0

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        size = self.options.latent + sizes.classes
        self.M = replicas.glorot("M", size, size)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        features, target, source, constant = self._parts(state, pairs)
        return features[:, :, None, None] + target.unsqueeze(2) + source.unsqueeze(3) + constant.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        features, target, source, constant = self._parts(state, pairs)
        return expected_logistic(*pairs.ends(q), features, constant, pairs.present, target, source)

    def _parts(self, state: NodeState, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four parts of the logit: (R, P), (R, P, K) that depends on l, (R, P, K) that depends on k, (R, K, K)."""
        assert state is not None
        u, M = self.options.latent, self.symmetric(self.M)
        features = pair_dot(linear(state, M[:, :u, :u]), state, *pairs.index)
        target = gather(linear(state, M[:, :u, u:]), pairs.i)
        source = gather(linear(state, M[:, u:, :u].transpose(1, 2)), pairs.j)
        return features, target, source, M[:, u:, u:] + self.b.unsqueeze(2)
