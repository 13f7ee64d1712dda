"""The contract of a random-graph model p(G | X, Y)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import probability
from g3nn.kernels import Pattern, gather, pair_dot, pair_sum
from g3nn.model.components import Component, Declared
from g3nn.model.inputs import Inputs
from g3nn.model.replicas import Noise, Replicas, Scalar, Sizes

NodeState = Tensor | None
"""What a likelihood computes once per step for each node, e.g. U x_i as (R, n, u); None if it ignores features."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes (i, j), either all edges or all non-edges. i, j: (P,), or (R, P) if replicas differ.

    pattern: the same pairs in the same order as a sparse pattern, if they stay the same from step to step.
    weight: same shape as i; as how many edges or non-edges each pair counts. None: each as one.
    repeats: how many edges or non-edges of the graph each pair stands for, where some were drawn.
    """

    i: Tensor
    j: Tensor
    present: bool
    pattern: Pattern | None = None
    weight: Tensor | None = None
    repeats: float = 1.0

    @property
    def index(self) -> tuple[Tensor, Tensor, Pattern | None]:
        return self.i, self.j, self.pattern

    def ends(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """(R, P, h) each: the rows of nodes (R, n, h) at i and at j."""
        return gather(nodes, self.i), gather(nodes, self.j)

    def log_prob(self, odds: Tensor) -> Tensor:
        """The log-probability of what was observed (an edge, or none), from the log-odds of an edge; any shape."""
        return logsigmoid(odds if self.present else -odds)

    def squared_distance(self, nodes: Tensor) -> Tensor:
        """(R, P): |x_i - x_j|^2 for the rows of nodes (R, n, h)."""
        length = nodes.square().sum(2)
        return pair_sum(length, length, *self.index) - 2 * pair_dot(nodes, nodes, *self.index)

    def weighted(self, scores: Tensor) -> Tensor:
        """(R, P): each score times the weight of its pair."""
        return scores if self.weight is None else scores * self.weight


def among_few(pairs: list[Pairs]) -> tuple[Tensor, list[Pairs]]:
    """The nodes (m,) of these pairs, and the pairs with the nodes numbered by their places there."""
    ends = [end for some in pairs for end in (some.i, some.j)]
    nodes, number = torch.cat([end.flatten() for end in ends]).unique(return_inverse=True)
    places = [part.view_as(end) for part, end in zip(number.split([end.numel() for end in ends]), ends, strict=True)]
    renumbered = zip(pairs, places[::2], places[1::2], strict=True)
    return nodes, [replace(some, i=i, j=j, pattern=None) for some, i, j in renumbered]


class GraphLikelihood(Component[Declared], ABC):
    """p(G | X, Y) = prod_ij p(e_ij | x_i, y_i, x_j, y_j): edges are independent given features and labels.

    A component states the log-odds of an edge and the expected log-probability of a pair. For classes, derive from
    `ClassLikelihood`, where both follow from one table. On an undirected graph every pair is one variable, and a
    likelihood must not tell its two ends apart.
    """

    uses_features: ClassVar[bool]
    """Whether p(e_ij) depends on x_i and x_j."""
    cost: ClassVar[float] = 2.0
    """About how much longer an epoch takes with it on a CPU, as a multiple of an epoch of gcn."""

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """Quantities of each node that all pairs of a step share."""
        return None

    def state_of(self, inputs: Inputs, noise: Noise | None, nodes: Tensor) -> NodeState:
        """The rows of `node_state` of some nodes (m,). Where rows can be computed one by one, do only that."""
        state = self.node_state(inputs, noise)
        return None if state is None else state[:, nodes]

    @property
    def expectation(self) -> str:
        """How `expected_log_prob` is computed: "exact", a closed lower "bound", or from "samples" of q."""
        return "exact"

    def values(self, beliefs: Tensor, noise: Noise) -> Tensor:
        """What `expected_log_prob` takes as q: beliefs (R, n, ...) or, if it wants samples, values drawn from beliefs
        (R, n, 2T), mean and variance, followed by a variance of zero."""
        if self.expectation != "samples":
            return beliefs
        mean, variance = beliefs.chunk(2, dim=2)
        values = mean + variance.sqrt() * noise.normal(mean)
        return torch.cat([values, torch.zeros_like(values)], dim=2)

    @abstractmethod
    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): log-odds of e_ij = 1 for given outcomes, (R, n, K) one-hot or (R, n, T) numbers."""

    @abstractmethod
    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): E_q log p(e_ij). q: the beliefs of the outcome, for classes (R, n, K) with rows that sum to one.

        If the expectation is computed from samples, q is one sample.
        """

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): the score in the authors' code, which puts soft labels (R, n, K) straight into the log-odds.

        Not an expectation: log sigmoid(sum_kl s_ik s_jl logit_kl) instead of sum_kl s_ik s_jl log sigmoid(logit_kl).
        """
        return pairs.log_prob(self.log_odds(state, soft, pairs))

    def symmetric(self, matrix: Tensor) -> Tensor:
        """(R, K, K): the mean of a matrix and its transpose; on a directed graph the matrix itself."""
        return matrix if self.sizes.directed else (matrix + matrix.transpose(1, 2)) / 2


class ByType(nn.Module):
    """A likelihood of its own for the edges of each type: p(G | X, Y) = prod_r p(G_r | X, Y), where the types of edges
    between two nodes are independent given what these are."""

    def __init__(self, parts: list[GraphLikelihood]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)


class ClassLikelihood(GraphLikelihood[Declared]):
    """A likelihood for classes: it states the log-odds of an edge for each of the K x K labels of the two ends."""

    @abstractmethod
    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P, K, K), or (R, 1, K, K) if all pairs are alike: log-odds of e_ij = 1 when y_i = k and y_j = l."""

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        return expected_over_labels(self.logits(state, pairs), values, pairs)

    def log_prob(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P, K, K) or (R, 1, K, K): log p(e_ij | x, y_i = k, y_j = l) of what was observed of the pair."""
        return pairs.log_prob(self.logits(state, pairs))

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """sum_kl q_ik q_jl log p(e_ij | k, l), exact."""
        return expected_over_labels(self.log_prob(state, pairs), q, pairs)


def expected_over_labels(table: Tensor, q: Tensor, pairs: Pairs) -> Tensor:
    """(R, P): sum_kl q_ik q_jl table_kl."""
    left, right = pairs.ends(q)
    return torch.einsum("rpk,rpkl,rpl->rp", left, table.expand(-1, left.shape[1], -1, -1), right)


@dataclass(frozen=True)
class BlockOptions:
    p0: Scalar = probability(0.9, "initial probability of an edge within a class")
    p1: Scalar = probability(0.1, "initial probability of an edge between classes")


def planted_odds(sizes: Sizes, replicas: Replicas, options: BlockOptions) -> nn.Parameter:
    """(R, K, K): log-odds of an edge for each pair of classes, learned from those of the planted partition."""
    within, between = (torch.logit(replicas.scalar(p)).view(-1, 1, 1) for p in (options.p0, options.p1))
    same = torch.eye(sizes.classes)
    return nn.Parameter(within * same + between * (1 - same))
