"""A block model of tags: nodes that share tags, or have none of them, are linked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.inputs import Inputs
from g3nn.kernels import Pattern, gather, log_tag_rate, logistic_bound, pair_sum, tag_mean, tag_moments
from g3nn.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.options import choice, flag, number
from g3nn.outcomes import Outcome, Tags
from g3nn.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class TagOptions:
    p0: Scalar = number(
        0.9, "where the probability for equal tags starts", low=0, high=1, open_ends=True, per_replica=True
    )
    p1: Scalar = number(
        0.1, "where the probability for opposite tags starts", low=0, high=1, open_ends=True, per_replica=True
    )
    degrees: bool = flag(False, "let nodes with many neighbours have more edges, whatever their tags")
    edges: str = choice(
        "bernoulli", ("bernoulli", "poisson"), "an edge has a probability, or is a count of rate exp(log-odds)"
    )
    damping: float = number(
        0.0, "an edge counts the less the more neighbours its ends have, by this power of either number", low=0, high=1
    )


class TagBlocks(GraphLikelihood):
    """p(e_ij = 1) = sigmoid(b + sum_t a_t y_it + c_t y_jt + s_t y_it y_jt): every tag adds to the log-odds, for one end
    that has it and for both. a = c on undirected graphs.

    With one tag this is the stochastic block model of two classes, and its expectation is exact. With several it is the
    bound of Jaakkola and Jordan (2000), closed since tags are independent under q. Starts where the log-odds are linear
    in the share of tags that agree, from p1 (none) to p0 (all).

    With `degrees`, c (d_i + d_j) is added, where d_i is the logarithm of one more than the number of neighbours, less
    its mean over the nodes, and c is learned from 1 on: as in the degree-corrected block model, tags then need not
    explain why some nodes have more edges than others.

    With `damping` g a pair counts as much as exp(- g (d_i + d_j)): the neighbours of a node with very many of them are
    far from independent, and would drown whatever else is known of it. A composite likelihood, no bound any more.

    With `edges="poisson"` the same sum is the logarithm of a rate, and an edge is a count that happens to be 0 or 1:
    log p(1) = log rate - rate, log p(0) = - rate. Where edges are rare the two models hardly differ, but of a rate both
    expectations are exact for any number of tags: E log rate is a sum over tags, and so is log E rate. p1 and p0 are
    then the rates that it starts from.
    """

    Options = TagOptions
    uses_features: ClassVar[bool] = False
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Tags,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: TagOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        options = options or TagOptions()
        self.counts, self.damping = options.edges == "poisson", options.damping
        scale = torch.log if self.counts else torch.logit
        equal, opposite = (scale(replicas.scalar(p)).unsqueeze(1) for p in (options.p0, options.p1))
        step = ((equal - opposite) / sizes.classes).expand(-1, sizes.classes)
        ends = 2 if sizes.directed else 1
        self.b = nn.Parameter(equal.clone())
        self.one = nn.Parameter(-step.unsqueeze(2).repeat(1, 1, ends))
        """(R, T, ends): what a tag of the source and of the target adds."""
        self.both = nn.Parameter(2 * step)
        self.c = nn.Parameter(torch.ones(replicas.size, 1, 1)) if options.degrees else None

    @property
    def expectation(self) -> str:
        return "exact" if self.counts or self.sizes.classes == 1 else "bound"

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, 2 ends) with `degrees` or `damping`: what the number of neighbours adds to the log-odds, as source and
        as target, and to the logarithm of how much a pair counts."""
        if self.c is None and self.damping == 0:
            return None
        logs = inputs.log_degrees.expand(self.b.shape[0], *inputs.log_degrees.shape)
        added = torch.zeros_like(logs) if self.c is None else self.c * logs
        return torch.cat([added, -self.damping * logs], dim=2)

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        """Of counts too: log p(1) - log p(0) is the logarithm of their rate."""
        return self._base(state, pairs) + tag_mean(values, *self._terms(pairs), other=self.one[:, :, -1])

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        expected = self._expected(state, q, pairs)
        if state is None or self.damping == 0:
            return expected
        _, _, source, target = _ends(state)
        return expected * pair_sum(source, target, *pairs.index).exp()

    def _expected(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        base = self._base(state, pairs)
        if self.counts:
            rate = (base + log_tag_rate(q, *self._terms(pairs)[:4], other=self.one[:, :, -1])).exp()
            return self.log_odds(state, q, pairs) - rate if pairs.present else -rate
        if self.sizes.classes == 1:
            return self._exact(base, q, pairs)
        mean, square = tag_moments(q, base, *self._terms(pairs), other=self.one[:, :, -1])
        return logistic_bound(mean, square, pairs.present)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        if not self.counts:
            return super().plug_in_score(state, soft, pairs)
        log_rate = self.log_odds(state, soft, pairs)
        return log_rate - log_rate.exp() if pairs.present else -log_rate.exp()

    def _terms(self, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor, Tensor, Pattern | None]:
        """(R, T) each: what a tag of the source adds, and what a tag of both ends adds on top; and the pairs."""
        return self.one[:, :, 0], self.both, *pairs.index

    def _base(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P), or (R, 1) if all pairs are alike: the log-odds of an edge between nodes without tags."""
        if state is None:
            return self.b
        source, target, _, _ = _ends(state)
        return self.b + pair_sum(source, target, *pairs.index)

    def _exact(self, base: Tensor, q: Tensor, pairs: Pairs) -> Tensor:
        """The sum over the four labels of a pair, as a polynomial in the probabilities of its ends."""
        source, target = self.one[:, 0, :1], self.one[:, 0, -1:]
        odds = torch.stack([base, base + source, base + target, base + source + target + self.both])
        none, left, right, two = logsigmoid(odds if pairs.present else -odds)
        p, r = (gather(q, end).squeeze(2) for end in (pairs.i, pairs.j))
        return none + (left - none) * p + (right - none) * r + (two - left - right + none) * p * r


def _ends(state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(R, n) each, of a `node_state`: added as source and as target, and the same of the logarithm of a weight."""
    ends = state.shape[2] // 2
    return state[:, :, 0], state[:, :, ends - 1], state[:, :, ends], state[:, :, -1]
