"""A latent space model on the outcomes themselves: nodes with close values are linked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.kernels import gather, linear, logistic_bound, pair_dot, pair_sum
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import choice
from g3nn.outcomes.poisson import Poisson
from g3nn.replicas import Replicas, Sizes


@dataclass(frozen=True)
class NearOptions:
    expectation: str = choice(
        "samples",
        ("samples", "bound"),
        "of real values: unbiased samples of q, or a closed bound",
    )


class NearValues(GraphLikelihood):
    """p(e_ij = 1) = sigmoid(b - sum_t w_t (g(y_it) - g(y_jt))^2 / s_t^2) with learned b and w > 0.

    g(y) = y for real values, sqrt(min(y, cap)) for counts; s_t is the standard deviation of g(y) at the training nodes.
    Real values of unlabelled nodes are sampled from q. Counts of one column are summed over, exactly. Otherwise the
    bound of Jaakkola and Jordan (2000) needs the mean and the variance of the log-odds, which follow from the first
    four cumulants of either end: if d = g(y_i) - g(y_j) has mean m, variance v and cumulants k3 and k4, then
    E d^2 = m^2 + v and Var d^2 = 4 m^2 v + 4 m k3 + k4 + 2 v^2.
    """

    Options = NearOptions
    uses_features: ClassVar[bool] = False
    outcomes: ClassVar[tuple[str, ...]] = ("gaussian", "poisson")

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NearOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or NearOptions()
        self.b = replicas.zeros(1)
        self.log_w = replicas.zeros(sizes.classes)
        spread = torch.tensor(sizes.outcome.spread or (1.0,) * sizes.classes)
        self.spread = nn.Parameter(spread.expand(replicas.size, -1).clone(), requires_grad=False)
        """(R, T): s, fixed."""

    @property
    def expectation(self) -> str:
        if self.sizes.outcome.name == "gaussian":
            return self.options.expectation
        return "exact" if self.sizes.classes == 1 else "bound"

    def _weights(self) -> Tensor:
        """(R, 1, T): w / s^2."""
        return (self.log_w.exp() / self.spread.square()).unsqueeze(1)

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        outcome = self.sizes.outcome
        g = values.clamp_max(outcome.cap).sqrt() if isinstance(outcome, Poisson) else values
        weighted = self._weights() * g
        length = (weighted * g).sum(2)
        distance = pair_sum(length, length, *pairs.index) - 2 * pair_dot(weighted, g, *pairs.index)
        return self.b - distance

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """q (R, n, 2T): mean and variance of each value. Samples come as values without variance."""
        if self.expectation == "samples":
            logit = self.log_odds(state, q[:, :, : self.sizes.classes], pairs)
            return logsigmoid(logit if pairs.present else -logit)
        if self.expectation == "exact":
            return self._summed(q, pairs)
        left, right = (gather(self._cumulants(q), end).chunk(4, dim=2) for end in (pairs.i, pairs.j))
        m, v, third, fourth = (x + (-1) ** k * y for k, (x, y) in enumerate(zip(left, right, strict=True), start=1))
        w = self._weights()
        mean = self.b - (w * (m.square() + v)).sum(2)
        variance = w.square() * (4 * m * (m * v + third) + fourth + 2 * v.square())
        return logistic_bound(mean, mean.square() + variance.sum(2).clamp_min(0.0), pairs.present)

    def _summed(self, q: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): the sum over the counts of both ends."""
        assert isinstance(self.sizes.outcome, Poisson)
        probability, g = self.sizes.outcome.levels(q)
        odds = self.b.unsqueeze(2) - self._weights() * (g.unsqueeze(1) - g).square()
        log_p = logsigmoid(odds if pairs.present else -odds)
        probability = probability.squeeze(2)
        return pair_dot(linear(probability, log_p), probability, *pairs.index)

    def _cumulants(self, q: Tensor) -> Tensor:
        """(R, n, 4T): the first four cumulants of g(y)."""
        if not isinstance(self.sizes.outcome, Poisson):
            return torch.cat([q, torch.zeros_like(q)], dim=2)
        probability, g = self.sizes.outcome.levels(q)
        mean = probability @ g
        around = g - mean.unsqueeze(3)
        second, third, fourth = ((probability * around**power).sum(3) for power in (2, 3, 4))
        return torch.cat([mean, second, third, fourth - 3 * second.square()], dim=2)
