"""A mixture in which either the labels or the features of two nodes explain their edge."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import probability
from g3nn.kernels import linear, pair_dot
from g3nn.model.likelihoods.base import BlockOptions, NodeState, Pairs, planted_odds
from g3nn.model.likelihoods.latent import LatentOptions, LatentSpace
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class MixtureOptions(LatentOptions, BlockOptions):
    by_labels: Scalar = probability(0.5, "initial share of pairs that labels explain")


class LabelsOrFeatures(LatentSpace):
    """p(e_ij = 1) = m sigmoid(B_kl) + (1 - m) sigmoid((U x_i)' S (U x_j) + b) for y_i = k, y_j = l.

    Labels decide about a pair with probability m, features otherwise; m, B, U, S and b are learned. B and S are
    symmetric on undirected graphs. An edge between two classes is no evidence against them if features explain it.
    """

    Options = MixtureOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: MixtureOptions | None = None) -> None:
        options = options or MixtureOptions()
        super().__init__(sizes, replicas, options)
        self.B = planted_odds(sizes, replicas, options)
        self.S = replicas.glorot("S", options.latent, options.latent)
        self.m = nn.Parameter(torch.logit(replicas.scalar(options.by_labels)).unsqueeze(1))
        """(R, 1): log-odds of the share that labels explain."""

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
