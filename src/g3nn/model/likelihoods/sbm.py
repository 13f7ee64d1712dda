"""Block models: edges depend on the classes of their ends; the planted partition is the simplest, and the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from g3nn.base.options import flag, number
from g3nn.graph.outcomes import Classes, Outcome, Tags
from g3nn.kernels import expected_logistic, linear, logistic_bound, pair_dot, pair_sum, tag_moments
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import BlockOptions, ClassLikelihood, NodeState, Pairs, planted_odds
from g3nn.model.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class PlantedPartitionOptions:
    p0: Scalar = number(0.9, "probability of an edge within a class", low=0, high=1, open_ends=True, per_replica=True)
    p1: Scalar = number(0.1, "probability of an edge between classes", low=0, high=1, open_ends=True, per_replica=True)
    learn_p: bool = flag(False, "learn p0 and p1 from these initial values instead of keeping them fixed")


class PlantedPartition(ClassLikelihood):
    """e_ij ~ Bernoulli(p0) if y_i = y_j, else Bernoulli(p1).

    The log-likelihood is linear in the agreement a = q_i . q_j, so its expectation has a closed form:
    E_q log p(e_ij = 1) = a log p0 + (1 - a) log p1, and the same with 1 - p0, 1 - p1 for a non-edge.

    One tag is the same as two classes. Several tags may agree in part: the log-odds are then linear in the share of
    tags that agree, from those of p1 (none) to those of p0 (all), and the expectation is the bound of Jaakkola and
    Jordan (2000).
    """

    Options = PlantedPartitionOptions
    uses_features: ClassVar[bool] = False
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Classes, Tags)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PlantedPartitionOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        options = options or PlantedPartitionOptions()
        odds = torch.stack([torch.logit(replicas.scalar(p)) for p in (options.p0, options.p1)], dim=1)
        self.odds = nn.Parameter(odds, requires_grad=options.learn_p)
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
        return isinstance(self.sizes.outcome, Tags)

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


class StochasticBlock(ClassLikelihood):
    """e_ij ~ Bernoulli(P_kl) for y_i = k, y_j = l, with a learned K x K matrix P (symmetric on undirected graphs).

    E_q log p(e_ij) = q_i' log(P) q_j, in closed form. P starts as a planted partition (p0 within classes, p1 between).
    """

    Options = BlockOptions
    uses_features: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: BlockOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.odds = planted_odds(sizes, replicas, options or BlockOptions())
        """(R, K, K): log-odds of P, before it is symmetrised."""

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self.symmetric(self.odds).unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        log_p = pairs.log_prob(self.symmetric(self.odds))
        return pair_dot(linear(q, log_p), q, *pairs.index)


@dataclass(frozen=True)
class DegreeCorrectedOptions(BlockOptions):
    latent_dropout: float = number(0.0, "dropout on the features that the activity depends on", low=0, high=0.95)


class DegreeCorrectedBlock(ClassLikelihood):
    """p(e_ij = 1) = sigmoid(B_kl + a_i + a_j) for y_i = k, y_j = l, with a learned K x K matrix B of log-odds.

    The activity a_i = u' x_i of a node depends on its features, so that new nodes have one too. On a directed graph a
    node has one activity as source and another as target. B starts as a planted partition.
    """

    Options = DegreeCorrectedOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: DegreeCorrectedOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or DegreeCorrectedOptions()
        self.B = planted_odds(sizes, replicas, self.options)
        self.u = replicas.glorot("u", sizes.features, 2 if sizes.directed else 1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, ends): the activity as source and as target."""
        return inputs.x.matmul(self.u, noise, self.options.latent_dropout)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._activity(state, pairs)[:, :, None, None] + self.symmetric(self.B).unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        return expected_logistic(*pairs.ends(q), self._activity(state, pairs), self.symmetric(self.B), pairs.present)

    def _activity(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P): a_i + a_j."""
        assert state is not None
        return pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
