"""A latent space model on the outcomes themselves: nodes with similar values are linked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from g3nn.base.options import choice
from g3nn.graph.outcomes import NormalOutcome
from g3nn.kernels import logistic_bound, pair_dot, pair_sum
from g3nn.model.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.model.replicas import Replicas, Sizes


@dataclass(frozen=True)
class NearOptions:
    expectation: str = choice(
        "samples",
        ("samples", "bound"),
        "unbiased samples from q, or a closed lower bound",
    )


class NearValues(GraphLikelihood[NearOptions]):
    """p(e_ij = 1) = sigmoid(b - sum_t w_t (g_it - g_jt)^2 / s_t^2) with learned b and w > 0, where g is the value of a
    real outcome or the log-rate of a count, and s_t its standard deviation over the training labels.

    Unobserved g are sampled from q, or the expectation is the bound of Jaakkola and Jordan (2000). The bound needs the
    mean and the variance of the log-odds: if d = g_i - g_j has mean m and variance v, then E d^2 = m^2 + v and
    Var d^2 = 4 m^2 v + 2 v^2. It is loose where q has a large variance and w is large.
    """

    Options = NearOptions
    uses_features = False
    outcomes = (NormalOutcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NearOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.b = replicas.zeros(1)
        self.log_w = replicas.zeros(sizes.classes)
        spread = torch.tensor(sizes.outcome.spread or (1.0,) * sizes.classes)
        self.spread = nn.Parameter(spread.expand(replicas.size, -1).clone(), requires_grad=False)
        """(R, T): s, fixed."""

    @property
    def expectation(self) -> str:
        return self.options.expectation

    def _weights(self) -> Tensor:
        """(R, 1, T): w / s^2."""
        return (self.log_w.exp() / self.spread.square()).unsqueeze(1)

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        weighted = self._weights() * values
        length = (weighted * values).sum(2)
        distance = pair_sum(length, length, *pairs.index) - 2 * pair_dot(weighted, values, *pairs.index)
        return self.b - distance

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """q (R, n, 2T): mean and variance of each g; the variance of a sample is zero."""
        if self.expectation == "samples":
            return pairs.log_prob(self.log_odds(state, q[:, :, : self.sizes.classes], pairs))
        left, right = (end.chunk(2, dim=2) for end in pairs.ends(q))
        m, v, w = left[0] - right[0], left[1] + right[1], self._weights()
        mean = self.b - (w * (m.square() + v)).sum(2)
        variance = w.square() * v * (4 * m.square() + 2 * v)
        return logistic_bound(mean, mean.square() + variance.sum(2), pairs.present)
