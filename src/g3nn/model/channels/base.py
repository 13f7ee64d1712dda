"""The contract of a channel: what was observed is emitted by what is true."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.graph.outcomes import Outcome, Targets
from g3nn.kernels import linear, pair_dot
from g3nn.model.components import Component, Declared
from g3nn.model.likelihoods.base import ClassLikelihood, GraphLikelihood, NodeState, Pairs, expected_over_labels
from g3nn.model.replicas import Replicas, Sizes

NEVER = -1e30
"""Stands for the logarithm of zero: a stack may hold replicas in which something never happens, and is saved."""


class Channel(Component[Declared], ABC):
    """p(seen | true). All other parts of a model speak of what is true.

    A component is a `LabelChannel` or an `EdgeChannel`.
    """

    clear: ClassVar[Mapping[str, float]]
    """The options with which what is seen is what is true. A model then has no such channel."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Declared | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.outcome = sizes.outcome

    def log_prior(self) -> Tensor | None:
        """(R,): the log-probability of what is learned, up to a constant; None if nothing is."""
        return None

    @classmethod
    def is_clear(cls, options: object) -> bool:
        """Whether what is seen is what is true, in all replicas."""
        values = {name: getattr(options, name) for name in cls.clear}
        each = {name: value if isinstance(value, Sequence) else (value,) for name, value in values.items()}
        return all(one == cls.clear[name] for name, own in each.items() for one in own)

    def averaged(self, members: int) -> Self:
        """One channel for each `members` replicas in a row, with the means of their parameters."""
        if members == 1:
            return self
        mean = copy.deepcopy(self)
        for parameter in mean.parameters():
            parameter.data = parameter.data.unflatten(0, (-1, members)).mean(1)
        return mean


class LabelChannel(Channel[Declared]):
    """p(s_i | y_i): the label s_i that was seen of a node, given its true one.

    With q_i the answer of the network, log Z_i = log sum_y q_i(y) p(s_i | y), and the belief about a labelled node is
    b_i(y) = q_i(y) p(s_i | y) / Z_i. It stands in the bound where the paper has the observed label. What the objective
    and validation need of labels has the names that it has in `Outcome`. C is the number of columns, 1 for classes.
    """

    @abstractmethod
    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, m, C): log Z of seen values, (m,) classes or (m, T) numbers, for answers q (R, m, width)."""

    @abstractmethod
    def log_joint(self, q: Tensor, p: Tensor, values: Tensor) -> Tensor:
        """(R, m, C): E_b[log p(y) + log p(s | y)] + H(b), at most log sum_y p(y) p(s | y), for answers q and p."""

    @abstractmethod
    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """What enters the graph term, as the outcome has it: b where training sees a label, else the answer."""

    def supervised(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, |L|): log Z."""
        return _observed(self.log_prob(_rows(answer, targets), targets.values[targets.train]), targets)

    def observed_prior(self, q: Tensor, p: Tensor, targets: Targets) -> Tensor:
        """(R, |L|): minus what each training node adds to the prior term."""
        rows = self.log_joint(_rows(q, targets), _rows(p, targets), targets.values[targets.train])
        return _observed(rows, targets)

    def node_terms(
        self, q: Tensor, p: Tensor, targets: Targets, of_posterior: bool, shares: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        """As `Outcome.node_terms`, with the beliefs of q or of p. What it sums over U is that of the outcome."""
        sums, _ = self.outcome.node_terms(q, p, targets, of_posterior, shares)
        seen = torch.stack([self.supervised(q, targets).sum(1), self.observed_prior(q, p, targets).sum(1)], dim=1)
        return torch.cat([-shares[0] * seen, sums[:, 2:]], dim=1), self.beliefs(q if of_posterior else p, targets)

    def validation(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(2, R): the mean of - log Z over what was seen of `nodes`, and the score of the answer by it."""
        score = self.outcome.validation(answer, targets, nodes)[1]
        return torch.stack([self._loss(answer.index_select(1, nodes), targets, nodes), score])

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(R,): the loss of `validation` after calibration. Without one it is that loss."""
        return self._loss(answer.index_select(1, nodes), targets, nodes)

    def _loss(self, rows: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """(R,): the mean of - log Z for the answers `rows` (R, m, width) at `nodes`, in the caller's unit."""
        log_z, known = self.log_prob(rows, targets.values[nodes]), _columns(targets.known[nodes])
        return (known * (targets.scale_at(nodes)[..., : log_z.shape[2]].log() - log_z)).sum((1, 2)) / known.sum()


Emission = Outcome | LabelChannel
"""The distribution of observed labels: the channel that they came through, or else the outcome."""


class EdgeChannel(Channel[Declared]):
    """p(A_ij | A*_ij): what was seen of a pair, an edge or none, given whether it is truly one.

    True edges are independent given Y, so they are summed out: p(A_ij | y_i, y_j) = sum_a p(A_ij | a) p(a | y_i, y_j).
    For classes the expectation over q of its logarithm stays exact, as a K x K sum. For one tag it does too, and where
    values are samples of q. For other likelihoods E log sum_a p(A, a) >= log sum_a exp E log p(A, a), a lower bound.
    Beyond classes a likelihood is evaluated twice for each pair, as an edge and as none.
    """

    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    @abstractmethod
    def log_emission(self, present: bool) -> tuple[Tensor, Tensor]:
        """(R, 1) each: the log-probability of seeing an edge (or none), if there is one and if there is none."""

    def log_prob(self, log_odds: Tensor, present: bool) -> Tensor:
        """log p(A | y_i, y_j), from the log-odds (R, ...) of a true edge."""
        return torch.logaddexp(*self._joint(log_odds, present))

    def genuine(self, log_odds: Tensor) -> Tensor:
        """p(A* = 1 | A = 1): an observed edge is true, from the log-odds (R, ...) of a true edge."""
        return _is_edge(*self._joint(log_odds, True))

    def missing(self, log_odds: Tensor) -> Tensor:
        """p(A* = 1 | A = 0): there is an edge where none was observed, from the log-odds (R, ...) of a true edge."""
        return _is_edge(*self._joint(log_odds, False))

    def expected_log_prob(self, likelihood: GraphLikelihood, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): E_q log p(A_ij), as `GraphLikelihood.expected_log_prob` with true edges summed out."""
        return self._expected(likelihood, state, q, pairs, torch.logaddexp)

    def expected_edge(self, likelihood: GraphLikelihood, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        """(R, P): E_q p(A*_ij = 1 | A_ij): an edge is genuine, or one is missing. Where `expected_log_prob` is a lower
        bound, it is what the bound takes for it, the best q(A*) beside q(Y)."""
        return self._expected(likelihood, state, q, pairs, _is_edge)

    def _joint(self, log_odds: Tensor, present: bool) -> tuple[Tensor, Tensor]:
        """log p(A, A* = 1) and log p(A, A* = 0)."""
        edge, none = (part.view(-1, *[1] * (log_odds.dim() - 1)) for part in self.log_emission(present))
        return edge + logsigmoid(log_odds), none + logsigmoid(-log_odds)

    def _expected(
        self,
        likelihood: GraphLikelihood,
        state: NodeState,
        q: Tensor,
        pairs: Pairs,
        of: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """(R, P): E_q of a function of log p(A, A* = 1) and log p(A, A* = 0)."""
        if isinstance(likelihood, ClassLikelihood) and self.outcome.exclusive:
            return _over_labels(of(*self._joint(likelihood.logits(state, pairs), pairs.present)), q, pairs)
        if self.outcome.flags and self.outcome.columns == 1 and likelihood.expectation == "exact":
            certain = _certain(state, q, pairs)
            table = of(*self._expected_joint(likelihood, *certain)).unflatten(1, (2, 2, -1)).permute(0, 3, 1, 2)
            return _over_labels(table, torch.cat([1 - q, q], dim=2), pairs)
        return of(*self._expected_joint(likelihood, state, q, pairs))

    def _expected_joint(
        self, likelihood: GraphLikelihood, state: NodeState, q: Tensor, pairs: Pairs
    ) -> tuple[Tensor, Tensor]:
        """(R, P) each: E_q log p(A, A* = 1) and E_q log p(A, A* = 0)."""
        edge, none = self.log_emission(pairs.present)
        there, absent = (
            likelihood.expected_log_prob(state, q, replace(pairs, present=present)) for present in (True, False)
        )
        return edge + there, none + absent


def _columns(values: Tensor) -> Tensor:
    """(m, C) from (m,) or (m, C)."""
    return values.unsqueeze(-1).flatten(1)


def _rows(answer: Tensor, targets: Targets) -> Tensor:
    """(R, |L|, width)."""
    return answer.index_select(1, targets.train)


def _observed(values: Tensor, targets: Targets) -> Tensor:
    """(R, |L|): the sum of values (R, |L|, C) over the columns that were observed."""
    return (values * _columns(targets.observed[targets.train])).sum(2)


def _is_edge(edge: Tensor, none: Tensor) -> Tensor:
    return (edge - none).sigmoid()


def _over_labels(table: Tensor, q: Tensor, pairs: Pairs) -> Tensor:
    """(R, P): sum_kl q_ik q_jl table_kl, for a table (R, P, K, K), or (R, 1, K, K) if all pairs are alike."""
    if table.shape[1] == 1:
        return pair_dot(linear(q, table.squeeze(1)), q, *pairs.index)
    return expected_over_labels(table, q, pairs)


def _certain(state: NodeState, q: Tensor, pairs: Pairs) -> tuple[NodeState, Tensor, Pairs]:
    """Every node twice, first without the tag and then with it, and every pair four times: with no tag, with that of j,
    with that of i, with both."""
    i, j = ([end, end + q.shape[1]] for end in (pairs.i, pairs.j))
    ends = torch.cat([i[0], i[0], i[1], i[1]], dim=-1), torch.cat([j[0], j[1], j[0], j[1]], dim=-1)
    weight = None if pairs.weight is None else torch.cat([pairs.weight] * 4, dim=-1)
    twice = None if state is None else torch.cat([state, state], dim=1)
    return twice, torch.cat([torch.zeros_like(q), torch.ones_like(q)], dim=1), Pairs(*ends, pairs.present, None, weight)
