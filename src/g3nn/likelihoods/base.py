"""The contract of a random-graph model p(G | X, Y)."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.inputs import Inputs
from g3nn.kernels import Pattern, gather
from g3nn.options import NoOptions
from g3nn.outcomes import Classes, Outcome
from g3nn.replicas import Noise, Replicas, Sizes

NodeState = Tensor | None
"""What a likelihood computes once per step for each node, e.g. U x_i as (R, n, u); None where features play no part."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes (i, j), all of them edges or all of them non-edges. i, j: (P,), or (R, P) if replicas differ.

    pattern: the same pairs as a sparse pattern, in the same order, where they do not change from step to step.
    weight: of the shape of i: how much each pair counts in a mean over all of its kind; None where all count alike.
    """

    i: Tensor
    j: Tensor
    present: bool
    pattern: Pattern | None = None
    weight: Tensor | None = None

    @property
    def index(self) -> tuple[Tensor, Tensor, Pattern | None]:
        return self.i, self.j, self.pattern


class GraphLikelihood(nn.Module, ABC):
    """p(G | X, Y) = prod_ij p(e_ij | x_i, y_i, x_j, y_j): edges are independent given features and labels.

    A component states the log-odds of an edge for each of the K x K labels of its two ends; everything else follows.
    On an undirected graph every pair is one variable, and a likelihood must not tell its two ends apart.

    A component for another outcome than classes states `log_odds` and `expected_log_prob` instead.
    """

    Options: ClassVar[type] = NoOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Classes,)
    """Which outcomes can explain a graph by it."""
    uses_features: ClassVar[bool]
    """Whether p(e_ij) depends on x_i and x_j."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Any = None) -> None:
        super().__init__()
        self.sizes = sizes

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """Per-node quantities shared by all pairs of a step."""
        return None

    @property
    def expectation(self) -> str:
        """How `expected_log_prob` is taken: "exact", a closed "bound" from below, or "samples" of unlabelled nodes."""
        return "exact"

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P, K, K), or (R, 1, K, K) if all pairs are alike: log-odds of e_ij = 1 when y_i = k and y_j = l."""
        raise TypeError(f"{type(self).__name__} has no table of classes; ask for log_odds at given outcomes")

    def log_odds(self, state: NodeState, values: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): log-odds of e_ij = 1 at given outcomes, (R, n, K) one-hot or (R, n, T) numbers."""
        left, right = gather(values, pairs.i), gather(values, pairs.j)
        return torch.einsum("rpk,rpkl,rpl->rp", left, _each_pair(self.logits(state, pairs), left), right)

    def log_prob(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P, K, K) or (R, 1, K, K): log p(e_ij | x, y_i = k, y_j = l) of what was observed of the pair."""
        logits = self.logits(state, pairs)
        return logsigmoid(logits if pairs.present else -logits)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): E_q log p(e_ij) = sum_kl q_ik q_jl log p(e_ij | k, l), exact. q (R, n, K), rows sum to one.

        With another outcome q are its beliefs; where the expectation is by samples they are a sample.
        """
        left, right = gather(q, pairs.i), gather(q, pairs.j)
        return torch.einsum("rpk,rpkl,rpl->rp", left, _each_pair(self.log_prob(state, pairs), left), right)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): the score of the authors' code, which puts soft labels (R, n, K) straight into the log-odds.

        Not an expectation: log sigmoid(sum_kl s_ik s_jl logit_kl) instead of sum_kl s_ik s_jl log sigmoid(logit_kl).
        """
        logit = self.log_odds(state, soft, pairs)
        return logsigmoid(logit if pairs.present else -logit)


def _each_pair(table: Tensor, left: Tensor) -> Tensor:
    return table.expand(-1, left.shape[1], -1, -1)
