"""The paper's latent space model: logistic regression on the concatenated ends of a pair."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import choice, integer, number
from g3nn.kernels import expected_logistic, linear, pair_sum, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import ClassLikelihood, NodeState, Pairs
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LatentSpaceOptions:
    latent: int = integer(8, "dimension of the latent space, the number of rows of U", low=1)
    encoder: str = choice(
        "linear", ("linear", "relu"), "linear: Ux, as in the paper; relu: max(0, Ux + b), as in the authors' code"
    )
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class AdditiveLatentSpace(ClassLikelihood[LatentSpaceOptions]):
    """p(e_ij = 1) = sigmoid([(U x_i)', y_i', (U x_j)', y_j'] w).

    On an undirected graph a pair has no first end, so both halves of w are equal. The logit is a sum over the two ends:
    it can express "this class has many edges" but not "both have the same class" (`blsm` can). It needs no intercept:
    labels are one-hot, so their weights contain one.
    """

    Options = LatentSpaceOptions
    uses_features = True
    cost = 4.0

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentSpaceOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        u, K = self.options.latent, sizes.classes
        ends = 2 if sizes.directed else 1
        self.U = replicas.glorot("U", sizes.features, u)
        if self.options.encoder == "relu":
            self.bias = replicas.zeros(u)
        self.w_x = replicas.glorot("w_x", 2 * (u + K), 1, u, ends)
        self.w_y = replicas.glorot("w_y", 2 * (u + K), 1, K, ends)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, ends): what the features of a node add to the logit, as source and as target."""
        latent = inputs.x.matmul(self.U, noise, self.options.latent_dropout)
        if self.options.encoder == "relu":
            latent = rectify(latent, self.bias, None)
        return linear(latent, self.w_x)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        assert state is not None
        features = pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
        return features[:, :, None, None] + self._label_part().unsqueeze(1)

    def _label_part(self) -> Tensor:
        """(R, K, K): what the labels of the two ends add to the logit."""
        return self.w_y[:, :, :1] + self.w_y[:, :, -1:].transpose(1, 2)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        assert state is not None
        features = pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
        return expected_logistic(*pairs.ends(q), features, self._label_part(), pairs.present)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """The logit is a sum over the ends, so soft labels enter each end separately and need no K x K table."""
        assert state is not None
        scores = state + linear(soft, self.w_y)
        return pairs.log_prob(pair_sum(scores[:, :, 0], scores[:, :, -1], *pairs.index))
