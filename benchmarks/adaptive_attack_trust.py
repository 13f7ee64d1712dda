"""How far edges are believed (`g3nn.queries.genuine`), as a differentiable function of a graph.

The same steps in the same order as in the library, on pairs that are edges in part: a pair of presence 0 is no edge,
and one of presence 1 an edge like any other. So the gradient says what it would change to add or remove an edge. Dense
matrices (n, n) are held, which suits graphs of a few thousand nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.parse import Matrix
from g3nn.queries import genuine
from g3nn.queries.genuine import coordinates, unit_rows
from g3nn.queries.messages import _TINY, PSEUDO_EDGES
from g3nn.queries.scores import ObservedEdges

_NEWTON_STEPS = 10
_DAMPING = 0.5
"""As in `NoisyEdges.propagate`."""


@dataclass(frozen=True, eq=False)
class PartGraph:
    """n nodes, and pairs (2, P), each once, that are edges to the extent of their presence (P,), from 0 to 1."""

    pairs: Tensor
    presence: Tensor
    n: int

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """(2 P,) each: every message goes from a node to a node; its opposite is P places away."""
        i, j = self.pairs
        return torch.cat([i, j]), torch.cat([j, i])

    @cached_property
    def codes(self) -> Tensor:
        return self.pairs[0] * self.n + self.pairs[1]

    def adjacency(self, weights: Tensor) -> Tensor:
        """(n, n), symmetric: the weights (P,) of the pairs, as far as they are edges."""
        half = weights.new_zeros(self.n * self.n).index_add(0, self.codes, self.presence * weights)
        return half.view(self.n, self.n) + half.view(self.n, self.n).T

    def mean(self, values: Tensor) -> Tensor:
        """Of values (P, ...), as far as the pairs are edges."""
        return torch.tensordot(self.presence, values, 1) / self.presence.sum()


def chance_pairs(edges: np.ndarray, n: int, seed: int) -> np.ndarray:
    """(2, C): pairs that stand for false edges, as `Evidence` draws them first from its seed."""
    return genuine.pairs_by_chance(ObservedEdges(edges, n, directed=False), seed)


class Trusted(NamedTuple):
    """probability: (P,), that pairs are genuine edges, if they are edges. beliefs: (n, K) about labels."""

    probability: Tensor
    beliefs: Tensor


@dataclass(frozen=True, eq=False)
class SoftTrust:
    """The probability that edges are genuine.

    prior: (n, K), what features say about labels, and one-hot where they are known. alike: (n, n), from the cosine of
    the features of all nodes. reduced: (n, r), features in few directions. floor: neighbourhoods that weigh less than
    about this say little about whom they are like; the library has none, but then the first trace of an edge at a node
    would change everything, and gradients would be without bounds.
    """

    prior: Tensor
    alike: Tensor
    reduced: Tensor
    floor: float = 0.05

    @classmethod
    def of(cls, features: Matrix, prior: np.ndarray, device: str, dtype: torch.dtype = torch.float32) -> SoftTrust:
        rows = unit_rows(features)
        rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        cosine = rows.astype(np.float64) @ rows.astype(np.float64).T
        parts = prior, np.sign(cosine) * np.sqrt(abs(cosine)), coordinates(features, genuine._COORDINATES)
        return cls(*(torch.from_numpy(np.asarray(part)).to(device, dtype) for part in parts))

    def __call__(self, graph: PartGraph, chance: Tensor, shares: Sequence[float]) -> list[Trusted]:
        """For each share of edges that may be genuine. chance: (2, C), pairs that are no edges."""
        K = self.prior.shape[1]
        start = genuine._SURE * self.prior + (1 - genuine._SURE) / K
        nothing = self.prior.new_zeros(chance.shape[1])
        believed = torch.full_like(graph.presence, shares[0])
        table, messages = self._begun(graph, start, believed)
        found = []
        for share in shares:
            bias = math.log(share / (1 - share))
            for _ in range(genuine._ROUNDS):
                around = _Neighbourhoods.of(graph.adjacency(believed), self.reduced, self.floor)
                edges = self._attributes(around, graph.pairs, graph.presence * believed)
                pairs = self._attributes(around, chance, nothing)
                alike = _log_density_ratio(edges, pairs, believed, graph)
                beliefs, messages = propagate(graph, start, table, torch.sigmoid(alike + bias), messages)
                by_beliefs = beliefs[chance].flatten(0, 1)
                odds = _log_density_ratio(
                    torch.column_stack([edges, agreement(messages, table).log()]),
                    torch.column_stack([pairs, agreement(by_beliefs, table).log()]),
                    believed,
                    graph,
                )
                believed = torch.sigmoid(odds + bias)
                table = mixing(graph, messages, table, believed)
            found.append(Trusted(believed, beliefs))
        return found

    def _attributes(self, around: _Neighbourhoods, pairs: Tensor, own: Tensor) -> Tensor:
        """(P, 3)"""
        shared, like = around.of_pairs(pairs, own)
        return torch.stack([_at(self.alike, pairs), shared, like], dim=1)

    def _begun(self, graph: PartGraph, prior: Tensor, believed: Tensor) -> tuple[Tensor, Tensor]:
        K, source = prior.shape[1], graph.ends[0]
        known = 1 + (prior * prior.log()).sum(1) / math.log(K)
        first = prior.index_select(0, source)
        i, j = graph.pairs
        seen = mixing(graph, first, prior.new_ones(K, K), known[i] * known[j])
        like = (1 - genuine._ALIKE) + genuine._ALIKE * K * torch.eye(K, dtype=prior.dtype, device=prior.device)
        found = []
        for table in (seen, like):
            messages = propagate(graph, prior, table, believed, first, genuine._FIRST_ROUNDS)[1]
            suggested = mixing(graph, messages, table, believed)
            explained = graph.mean(torch.log1p(believed * (agreement(messages, suggested) - 1)))
            found.append((float(explained.detach()), suggested, messages))
        return max(found, key=lambda one: one[0])[1:]


@dataclass(frozen=True, eq=False)
class _Neighbourhoods:
    """`Evidence.around`. shared: (n, n), how many neighbours two nodes have in common, rare ones counting more;
    near: (n, r), the sum of the neighbours' features."""

    shared: Tensor
    near: Tensor
    reduced: Tensor
    floor: float

    @classmethod
    def of(cls, adjacency: Tensor, reduced: Tensor, floor: float) -> _Neighbourhoods:
        rare = 1 / torch.log(2 + adjacency.sum(1))
        return cls((adjacency * rare) @ adjacency, adjacency @ reduced, reduced, floor)

    def of_pairs(self, pairs: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """(P,) each. own: (P,), the weight of the edge between the two, which has no say."""
        (x, y), (near_x, near_y) = (
            [matrix.index_select(0, end) for end in pairs] for matrix in (self.reduced, self.near)
        )
        own = own.unsqueeze(1)
        left, right = self._unit(near_x - own * y), self._unit(near_y - own * x)
        return torch.log1p(_at(self.shared, pairs)), (left * y + right * x).sum(1)

    def _unit(self, rows: Tensor) -> Tensor:
        return rows * (rows.square().sum(1, keepdim=True) + self.floor**2).rsqrt()


def _at(matrix: Tensor, pairs: Tensor) -> Tensor:
    """(P,): the entries at these pairs."""
    return matrix.reshape(-1).index_select(0, pairs[0] * matrix.shape[1] + pairs[1])


def propagate(
    graph: PartGraph, prior: Tensor, table: Tensor, believed: Tensor, messages: Tensor, rounds: int = 4
) -> tuple[Tensor, Tensor]:
    """`NoisyEdges.propagate`: what is heard along a pair counts as far as it is an edge."""
    source, target = graph.ends
    start, g = prior.log(), torch.cat([believed, believed]).unsqueeze(1)
    presence = torch.cat([graph.presence, graph.presence]).unsqueeze(1)
    total = start
    for _ in range(rounds):
        heard = presence * torch.log(g * (messages @ table) + 1 - g)
        total = start.index_add(0, target, heard)
        cavity = total.index_select(0, source) - heard.roll(len(believed), 0)
        messages = _DAMPING * messages + (1 - _DAMPING) * cavity.softmax(1)
    return total.softmax(1), messages


def agreement(messages: Tensor, table: Tensor) -> Tensor:
    """(P,)"""
    return _expected(messages, table).clamp_min(_TINY)


def _expected(messages: Tensor, table: Tensor) -> Tensor:
    from_source, from_target = messages.chunk(2)
    return ((from_source @ table) * from_target).sum(1)


def mixing(graph: PartGraph, messages: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    """(K, K): `g3nn.queries.messages.mixing`."""
    from_source, from_target = messages.chunk(2)
    met = _met(graph, messages, table, weights)
    share = graph.mean((from_source + from_target) / 2)
    chance = torch.outer(share, share)
    return (met + PSEUDO_EDGES * chance) / ((met.sum() + PSEUDO_EDGES) * chance)


def _met(graph: PartGraph, messages: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    from_source, from_target = messages.chunk(2)
    scale = graph.presence * weights / _expected(messages, table).clamp_min(_TINY)
    met = table * ((from_source * scale.unsqueeze(1)).T @ from_target)
    return (met + met.T) / 2


def _log_density_ratio(edges: Tensor, chance: Tensor, weights: Tensor, graph: PartGraph) -> Tensor:
    """(P,): a logistic regression as in the library, and its decision for the pairs with attributes (P, A)."""
    centre, size, count = chance.mean(0), graph.presence.sum(), len(chance)
    total = size + count
    mean = (graph.presence @ edges + chance.sum(0)) / total
    squares = graph.presence @ (edges - mean).square() + (chance - mean).square().sum(0)
    spread = (squares / total).sqrt() + 1e-9
    edges, chance = (edges - centre) / spread, (chance - centre) / spread
    counted = graph.presence * weights
    counts = torch.cat([counted * (size / counted.sum()), (size / count).expand(count)])
    rows = torch.cat([edges, chance])
    rows = torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
    kind = torch.cat([torch.ones_like(weights), weights.new_zeros(count)])
    return rows[: len(edges)] @ _logistic(rows, kind, counts)


def _logistic(rows: Tensor, kind: Tensor, counts: Tensor) -> Tensor:
    """(A + 1,): coefficients and intercept, the last, of a logistic regression with an L2 penalty on the former.

    Newton's method finds them without a gradient. One more step from there, of which the Hessian is a constant, has the
    derivative of the optimum.
    """
    penalty = torch.ones_like(rows[0])
    penalty[-1] = 0

    def step(found: Tensor, rows: Tensor, counts: Tensor) -> Tensor:
        p = torch.sigmoid(rows @ found)
        gradient = rows.T @ (counts * (p - kind)) + penalty * found
        with torch.no_grad():
            hessian = (rows * (counts * p * (1 - p)).unsqueeze(1)).T @ rows + torch.diag(penalty)
        # Without a check of the result, which would wait for the device.
        return found - torch.linalg.solve_ex(hessian, gradient)[0]

    with torch.no_grad():
        found = torch.zeros_like(penalty)
        for _ in range(_NEWTON_STEPS):
            found = step(found, rows, counts)
    return step(found, rows, counts)
