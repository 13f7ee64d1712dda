"""A mixture in which either the labels or the features of two nodes explain their edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import integer, number
from g3nn.kernels import linear, pair_dot
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import BlockOptions, ClassLikelihood, NodeState, Pairs, planted_odds
from g3nn.model.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class MixtureOptions(BlockOptions):
    latent: int = integer(8, "dimension of the latent space, the number of rows of U", low=1)
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)
    by_labels: Scalar = number(
        0.5, "initial share of pairs that labels explain", low=0, high=1, open_ends=True, per_replica=True
    )


class LabelsOrFeatures(ClassLikelihood):
    """p(e_ij = 1) = m sigmoid(B_kl) + (1 - m) sigmoid((U x_i)' S (U x_j) + b) for y_i = k, y_j = l.

    Labels decide about a pair with probability m, features otherwise; m, B, U, S and b are learned. B and S are
    symmetric on undirected graphs. An edge between two classes is no evidence against them if features explain it.
    """

    Options = MixtureOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: MixtureOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or MixtureOptions()
        self.B = planted_odds(sizes, replicas, self.options)
        self.U = replicas.glorot("U", sizes.features, self.options.latent)
        self.S = replicas.glorot("S", self.options.latent, self.options.latent)
        self.b = replicas.zeros(1)
        self.m = nn.Parameter(torch.logit(replicas.scalar(self.options.by_labels)).unsqueeze(1))
        """(R, 1): log-odds of the share that labels explain."""

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, u): U x_i."""
        return inputs.x.matmul(self.U, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """The log-odds of the mixture, from the probabilities of an edge and of no edge."""
        return self._log_mixture(state, pairs, 1.0) - self._log_mixture(state, pairs, -1.0)

    def log_prob(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._log_mixture(state, pairs, 1.0 if pairs.present else -1.0)

    def _log_mixture(self, state: NodeState, pairs: Pairs, sign: float) -> Tensor:
        """(R, P, K, K): log-probability of an edge (sign 1) or of no edge (sign -1)."""
        assert state is not None
        B, S = self.symmetric(self.B), self.symmetric(self.S)
        features = pair_dot(linear(state, S), state, *pairs.index) + self.b
        by_labels = (logsigmoid(self.m).unsqueeze(2) + logsigmoid(sign * B)).unsqueeze(1)
        by_features = (logsigmoid(-self.m) + logsigmoid(sign * features))[:, :, None, None]
        return torch.logaddexp(by_labels, by_features)
