"""The planted partition: the simplest stochastic block model, and the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from g3nn.base.options import flag, probability
from g3nn.graph.outcomes import Classes, Tags
from g3nn.kernels import logistic_bound, pair_dot, tag_moments
from g3nn.model.likelihoods.base import ClassLikelihood, NodeState, Pairs
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class PlantedPartitionOptions:
    p0: Scalar = probability(0.9, "probability of an edge within a class")
    p1: Scalar = probability(0.1, "probability of an edge between classes")
    learn_p: bool = flag(False, "learn p0 and p1 from these initial values instead of keeping them fixed")


class PlantedPartition(ClassLikelihood[PlantedPartitionOptions]):
    """e_ij ~ Bernoulli(p0) if y_i = y_j, else Bernoulli(p1).

    The log-likelihood is linear in the agreement a = q_i . q_j, so its expectation has a closed form:
    E_q log p(e_ij = 1) = a log p0 + (1 - a) log p1, and the same with 1 - p0, 1 - p1 for a non-edge.

    One tag is the same as two classes. Several tags may agree in part: the log-odds are then linear in the share of
    tags that agree, from those of p1 (none) to those of p0 (all), and the expectation is the bound of Jaakkola and
    Jordan (2000).
    """

    Options = PlantedPartitionOptions
    uses_features = False
    outcomes = (Classes, Tags)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PlantedPartitionOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        odds = torch.stack([torch.logit(replicas.scalar(p)) for p in (self.options.p0, self.options.p1)], dim=1)
        self.odds = nn.Parameter(odds, requires_grad=self.options.learn_p)
        """(R, 2): log-odds of p0 and p1."""

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        same = torch.eye(self.sizes.classes, dtype=self.odds.dtype, device=self.odds.device)
        within, between = self.odds[:, 0].view(-1, 1, 1, 1), self.odds[:, 1].view(-1, 1, 1, 1)
        return within * same + between * (1 - same)

    @property
    def expectation(self) -> str:
        return "bound" if self._has_tags and self.sizes.classes > 1 else "exact"

    @property
    def _has_tags(self) -> bool:
        return self.sizes.outcome.flags

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        both = torch.cat([values, 1 - values], dim=2) if self._has_tags else values
        agreement = pair_dot(both, both, *pairs.index) / (self.sizes.classes if self._has_tags else 1)
        return agreement * self.odds[:, :1] + (1 - agreement) * self.odds[:, 1:]

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        if self.expectation == "bound":
            # Tags u and v of the two ends agree if 1 - u - v + 2 u v is 1.
            step = ((self.odds[:, :1] - self.odds[:, 1:]) / self.sizes.classes).expand(-1, self.sizes.classes)
            mean, square = tag_moments(q, self.odds[:, :1], -step, 2 * step, *pairs.index)
            return logistic_bound(mean, square, pairs.present)
        q = torch.cat([q, 1 - q], dim=2) if self._has_tags else q
        agreement = pair_dot(q, q, *pairs.index)
        within, between = self._log_probs(pairs)
        return between + agreement * (within - between)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """a log(p0 / p1), or a log((1 - p0) / (1 - p1)) for a non-edge, divided by K and without constants, as in the
        authors' code."""
        agreement = pair_dot(soft, soft, *pairs.index)
        within, between = self._log_probs(pairs)
        return agreement * (within - between) / self.sizes.classes

    def _log_probs(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Log-probability of the observation within and between classes, each (R, 1)."""
        log_p = pairs.log_prob(self.odds)
        return log_p[:, :1], log_p[:, 1:]
