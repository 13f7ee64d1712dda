"""The paper's latent space model: logistic regression on the two ends of a pair, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.inputs import Inputs
from g3nn.kernels import expected_logistic, gather, linear, pair_sum, rectify
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import choice, integer, number
from g3nn.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LatentSpaceOptions:
    latent: int = integer(8, "number of rows of U, the size of the latent space", low=1)
    encoder: str = choice(
        "linear", ("linear", "relu"), "linear: Ux, as in the paper; relu: max(0, Ux + b), as in the authors' code"
    )
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class AdditiveLatentSpace(GraphLikelihood):
    """p(e_ij = 1) = sigmoid([(U x_i)', y_i', (U x_j)', y_j'] w).

    On an undirected graph a pair has no first end, so both halves of w are the same. The logit is additive in the two
    ends: it can say "this class has many edges", never "same class" (`blsm` can). No intercept is needed: the labels
    are one-hot, so their weights contain one.
    """

    Options = LatentSpaceOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentSpaceOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or LatentSpaceOptions()
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
        left, right = gather(q, pairs.i), gather(q, pairs.j)
        return expected_logistic(left, right, features, self._label_part(), pairs.present)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """The logit is additive, so soft labels enter one end at a time and no K x K table is needed."""
        assert state is not None
        scores = state + linear(soft, self.w_y)
        logit = pair_sum(scores[:, :, 0], scores[:, :, -1], *pairs.index)
        return logsigmoid(logit if pairs.present else -logit)
