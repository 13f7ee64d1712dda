"""A mixture in which either the labels or the features of two nodes explain their edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.inputs import Inputs
from g3nn.kernels import linear, pair_dot
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import integer, number
from g3nn.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class MixtureOptions:
    p0: Scalar = number(
        0.9, "where the probability within a class starts", low=0, high=1, open_ends=True, per_replica=True
    )
    p1: Scalar = number(
        0.1, "where the probability between classes starts", low=0, high=1, open_ends=True, per_replica=True
    )
    latent: int = integer(8, "number of rows of U, the size of the latent space", low=1)
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)
    by_labels: Scalar = number(
        0.5, "where the share of pairs that labels explain starts", low=0, high=1, open_ends=True, per_replica=True
    )


class LabelsOrFeatures(GraphLikelihood):
    """p(e_ij = 1) = m sigmoid(B_kl) + (1 - m) sigmoid((U x_i)' S (U x_j) + b) for y_i = k, y_j = l.

    With probability m a pair is decided by its labels, else by its features; m, B, U, S and b are learned. B and S are
    symmetric on undirected graphs. An edge between classes need not cost the labels anything if features explain it.
    """

    Options = MixtureOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: MixtureOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or MixtureOptions()
        within, between = (torch.logit(replicas.scalar(p)).view(-1, 1, 1) for p in (self.options.p0, self.options.p1))
        same = torch.eye(sizes.classes)
        self.B = nn.Parameter(within * same + between * (1 - same))
        self.U = replicas.glorot("U", sizes.features, self.options.latent)
        self.S = replicas.glorot("S", self.options.latent, self.options.latent)
        self.b = replicas.zeros(1)
        self.m = nn.Parameter(torch.logit(replicas.scalar(self.options.by_labels)).unsqueeze(1))
        """(R, 1): log-odds of the share that labels explain."""

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, u): U x_i."""
        return inputs.x.matmul(self.U, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """The log-odds of the mixture, from the probabilities of an edge and of none."""
        return self._log_mixture(state, pairs, 1.0) - self._log_mixture(state, pairs, -1.0)

    def log_prob(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._log_mixture(state, pairs, 1.0 if pairs.present else -1.0)

    def _log_mixture(self, state: NodeState, pairs: Pairs, sign: float) -> Tensor:
        """(R, P, K, K): log of the probability of an edge (sign 1) or of none (sign -1)."""
        assert state is not None
        B, S = (self._even(matrix) for matrix in (self.B, self.S))
        features = pair_dot(linear(state, S), state, *pairs.index) + self.b
        by_labels = (logsigmoid(self.m).unsqueeze(2) + logsigmoid(sign * B)).unsqueeze(1)
        by_features = (logsigmoid(-self.m) + logsigmoid(sign * features))[:, :, None, None]
        return torch.logaddexp(by_labels, by_features)

    def _even(self, matrix: Tensor) -> Tensor:
        return matrix if self.sizes.directed else (matrix + matrix.transpose(1, 2)) / 2
