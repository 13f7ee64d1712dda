"""A block model of tags: nodes that agree in their tags are linked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from g3nn.base.options import choice, flag, number, probability
from g3nn.graph.outcomes import Tags
from g3nn.kernels import Pattern, log_tag_rate, logistic_bound, pair_sum, tag_mean, tag_moments
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import GraphLikelihood, NodeState, Pairs
from g3nn.model.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class TagOptions:
    p0: Scalar = probability(0.9, "initial probability of an edge if all tags agree")
    p1: Scalar = probability(0.1, "initial probability of an edge if no tag agrees")
    degrees: bool = flag(False, "let nodes with many neighbours have more edges, regardless of their tags")
    edges: str = choice(
        "bernoulli",
        ("bernoulli", "poisson"),
        "an edge is present or absent, or a count with rate exp(log-odds)",
    )
    damping: float = number(0.0, "weigh each pair by (1 + degree)^-damping of both ends", low=0, high=1)


class TagBlocks(GraphLikelihood[TagOptions]):
    """p(e_ij = 1) = sigmoid(b + sum_t a_t y_it + r_t y_jt + s_t y_it y_jt): every tag adds to the log-odds, once for
    each end that has it and once more if both do. a = r on undirected graphs.

    With one tag this is the stochastic block model of two classes, and the expectation is exact. With several tags it
    is the bound of Jaakkola and Jordan (2000), in closed form since tags are independent under q. Initially the
    log-odds are linear in the share of tags that agree, from p1 (none) to p0 (all).

    `degrees` adds c (d_i + d_j), where d_i = log(1 + degree), centred over the nodes, and c is learned, initially 1. As
    in the degree-corrected block model, tags then need not explain why some nodes have more edges than others.

    With `damping` g, each pair has weight exp(- g (d_i + d_j)). The many neighbours of a hub are far from independent
    and would outweigh all other evidence about it. The result is a composite likelihood, no longer a bound.

    With `edges="poisson"` the same sum is the logarithm of a rate, and an edge is a count that happens to be 0 or 1:
    log p(1) = log rate - rate, log p(0) = - rate. The two models hardly differ if edges are rare, but with a rate both
    expectations are exact for any number of tags, since E log rate and log E rate are sums over tags. p0 and p1 are
    then initial rates.
    """

    Options = TagOptions
    uses_features = False
    outcomes = (Tags,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: TagOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.counts, self.damping = self.options.edges == "poisson", self.options.damping
        scale = torch.log if self.counts else torch.logit
        equal, opposite = (scale(replicas.scalar(p)).unsqueeze(1) for p in (self.options.p0, self.options.p1))
        step = ((equal - opposite) / sizes.classes).expand(-1, sizes.classes)
        ends = 2 if sizes.directed else 1
        self.b = nn.Parameter(equal.clone())
        self.one = nn.Parameter(-step.unsqueeze(2).repeat(1, 1, ends))
        """(R, T, ends): what a tag adds at the source and at the target."""
        self.both = nn.Parameter(2 * step)
        self.c = nn.Parameter(torch.ones(replicas.size, 1, 1)) if self.options.degrees else None

    @property
    def expectation(self) -> str:
        return "exact" if self.counts or self.sizes.classes == 1 else "bound"

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, 2 ends), with `degrees` or `damping`: what the degree of a node adds to the log-odds, as source and as
        target, and to the logarithm of the weight of a pair."""
        if self.c is None and self.damping == 0:
            return None
        logs = inputs.log_degrees.expand(self.b.shape[0], *inputs.log_degrees.shape)
        added = torch.zeros_like(logs) if self.c is None else self.c * logs
        return torch.cat([added, -self.damping * logs], dim=2)

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        """Holds for counts too: log p(1) - log p(0) is the logarithm of the rate."""
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
        """(R, T) each: what a tag adds at the source, and what it adds if both ends have it; then the pairs."""
        return self.one[:, :, 0], self.both, *pairs.index

    def _base(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P), or (R, 1) if all pairs are alike: log-odds of an edge between two nodes without tags."""
        if state is None:
            return self.b
        source, target, _, _ = _ends(state)
        return self.b + pair_sum(source, target, *pairs.index)

    def _exact(self, base: Tensor, q: Tensor, pairs: Pairs) -> Tensor:
        """The sum over the four possible labels of a pair, as a polynomial in the probabilities of its ends."""
        source, target = self.one[:, 0, :1], self.one[:, 0, -1:]
        odds = torch.stack([base, base + source, base + target, base + source + target + self.both])
        none, left, right, two = pairs.log_prob(odds)
        p, r = (end.squeeze(2) for end in pairs.ends(q))
        return none + (left - none) * p + (right - none) * r + (two - left - right + none) * p * r


def _ends(state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(R, n) each, from a `node_state`: added to the log-odds as source and as target, then to the log-weight."""
    ends = state.shape[2] // 2
    return state[:, :, 0], state[:, :, ends - 1], state[:, :, ends], state[:, :, -1]
