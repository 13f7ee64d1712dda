"""Pairs of nodes for the graph term: the observed edges, and sampled or enumerated non-edges."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from g3nn.base.parse import relative_weights
from g3nn.kernels import FreePairs, Pattern
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import Pairs
from g3nn.model.likelihoods.base import ByType, GraphLikelihood
from g3nn.model.replicas import Noise

OBSERVED, MISSING = "observed", "missing"
"""Isolated nodes truly have no edges, or their edges may be missing from the data."""


class DrawsPairs(Protocol):
    """What the objective reads: edges and non-edges, of a whole graph or of a batch."""

    @property
    def num_edges(self) -> int: ...

    @property
    def num_non_edges(self) -> int: ...

    @property
    def edges(self) -> Pairs: ...

    def observed(self, noise: Noise, count: int) -> Pairs:
        """`count` edges, or all of them if it is 0."""

    def absent(self, noise: Noise, count: int, how: str) -> Pairs:
        """Non-edges: all of them, or `count`, or as many as there are edges if it is 0, drawn as `how` says."""


class PairSource:
    """The edges of a graph, and samples of its non-edges.

    isolated_nodes: if "missing", pairs with an isolated node do not count as non-edges and are left out. among: (m,)
    nodes; pairs of others are no non-edges either.
    """

    def __init__(self, inputs: Inputs, isolated_nodes: str = OBSERVED, among: np.ndarray | None = None) -> None:
        self.n = inputs.n
        self.directed = inputs.task.directed
        self.inputs, self._isolated_nodes = inputs, isolated_nodes
        self._nodes = None if among is None or len(among) == self.n else torch.from_numpy(among).to(inputs.device)
        """The nodes whose pairs count, None for all of them. `_arcs` and `_free` hold positions in it."""
        if isolated_nodes == MISSING and bool(inputs.isolated.any()):
            linked = (~inputs.isolated).squeeze(1)
            self._nodes = linked.nonzero().squeeze(1) if self._nodes is None else self._nodes[linked[self._nodes]]
        self._size = self.n if self._nodes is None else int(self._nodes.numel())

    @cached_property
    def edges(self) -> Pairs:
        pattern, weight = self.inputs.edge_pattern
        return Pairs(pattern.row, pattern.col, present=True, pattern=pattern, weight=weight)

    @cached_property
    def _free(self) -> FreePairs:
        taken = self.inputs.taken
        return FreePairs(taken if self._nodes is None else _among(taken, self._nodes))

    @cached_property
    def by_type(self) -> tuple[PairSource, ...]:
        """Of each type of edges alone, with non-edges between nodes of the kinds that these join."""
        relations, found = self.inputs.task.relations, []
        assert relations is not None
        for type, way in enumerate(relations.directed):
            (source, target), edges = relations.ends(type), relations.of(type)
            weights = relative_weights(edges.weights)
            how: dict[str, Any] = {"edges": edges.pairs, "weights": weights, "directed": bool(way)}
            own = replace(self.inputs, task=replace(self.inputs.task, **how, relations=None))
            if self._isolated_nodes == MISSING:  # Without an edge of any type.
                linked = ~self.inputs.task.isolated
                source, target = source[linked[source]], target[linked[target]]
            same = np.array_equal(source, target)
            made = PairSource(own, among=source) if same else BetweenKinds(own, source, target)
            found.append(made)
        return tuple(found)

    @property
    def num_edges(self) -> int:
        return self.inputs.task.num_edges

    @property
    def num_non_edges(self) -> int:
        """Counts unordered pairs on an undirected graph and ordered pairs on a directed one, without self-pairs."""
        return len(self._free) if self.directed else len(self._free) // 2

    def observed(self, noise: Noise, count: int) -> Pairs:
        if count == 0 or count >= self.num_edges:
            return self.edges
        return replace(self.sample_edges(noise, count), repeats=self.num_edges / count)

    def absent(self, noise: Noise, count: int, how: str) -> Pairs:
        if how == "all":
            return self.all_non_edges
        sample = {"non-edges": self.sample_non_edges, "uniform": self.sample_uniform, "degrees": self.sample_by_degree}
        count = min(count or self.num_edges, self.num_edges)
        return replace(sample[how](noise, count), repeats=self.num_non_edges / count)

    def sample_edges(self, noise: Noise, count: int) -> Pairs:
        """`count` edges for each replica, uniform and independent; an edge may be drawn twice."""
        drawn = noise.integers(self.num_edges, count)
        weight = None if self.edges.weight is None else self.edges.weight[drawn]
        return Pairs(self.edges.i[drawn], self.edges.j[drawn], present=True, weight=weight)

    def sample_non_edges(self, noise: Noise, count: int) -> Pairs:
        """`count` true non-edges for each replica, uniform and independent."""
        return Pairs(*self._nodes_at(*self._free.pairs(_numbers(noise, len(self._free), count))), present=False)

    def sample_uniform(self, noise: Noise, count: int) -> Pairs:
        """`count` uniform pairs treated as non-edges, as in the authors' code: some are edges or self-pairs."""
        number = _numbers(noise, self._size * self._size, count)
        return Pairs(*self._nodes_at(number // self._size, number % self._size), present=False)

    def sample_by_degree(self, noise: Noise, count: int) -> Pairs:
        """`count` pairs for each replica, whose ends are drawn in proportion to 1 + degree.

        A model in which nodes with many neighbours have more edges has most of its mass on such pairs. Importance
        weights correct for the choice; a pair that is no non-edge has weight 0.
        """
        i, j = (end[noise.integers(end.numel(), count)] for end in self._ends)
        chance = self._chances[0][i] * self._chances[1][j]
        ordered = self._free.contains(i, j) / (chance * len(self._free))
        return Pairs(*self._nodes_at(i, j), present=False, weight=ordered.to(self.inputs.dtype))

    def _nodes_at(self, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        """The nodes at these positions."""
        return (i, j) if self._nodes is None else (self._nodes[i], self._nodes[j])

    @cached_property
    def _arcs(self) -> Tensor:
        """(2, A): both directions of every edge, unless it is directed."""
        arcs = self.inputs.arcs
        return arcs if self._nodes is None else torch.searchsorted(self._nodes, arcs)

    @cached_property
    def _ends(self) -> tuple[Tensor, Tensor]:
        """Every node 1 + out-degree times as a source, and 1 + in-degree times as a target."""
        nodes = torch.arange(self._size, device=self._arcs.device)
        source, target = (torch.cat([end, nodes]) for end in self._arcs)
        return source, target

    @cached_property
    def _chances(self) -> tuple[Tensor, Tensor]:
        """The probability that each position is drawn as source and as target."""
        source, target = (end.bincount(minlength=self._size).double() / end.numel() for end in self._ends)
        return source, target

    @cached_property
    def all_non_edges(self) -> Pairs:
        """Every non-edge once: about n^2 of them, so only for small graphs."""
        i, j = self._free.pairs(torch.arange(len(self._free), device=self.edges.i.device))
        once = torch.ones_like(i, dtype=torch.bool) if self.directed else i < j
        return Pairs(*self._nodes_at(i[once], j[once]), present=False)


class BetweenKinds(PairSource):
    """Edges from nodes of some kinds to nodes of others, and pairs of such nodes without one. Sampled pairs are any; an
    edge among them has weight 0, and the others weigh so much more."""

    def __init__(self, inputs: Inputs, source: np.ndarray, target: np.ndarray) -> None:
        super().__init__(inputs)
        self._source, self._target = (torch.from_numpy(end).to(inputs.device) for end in (source, target))

    @property
    def num_non_edges(self) -> int:
        return self._source.numel() * self._target.numel() - self.num_edges

    def sample_non_edges(self, noise: Noise, count: int) -> Pairs:
        return self._of_source_and_target(
            noise.integers(self._source.numel(), count), noise.integers(self._target.numel(), count)
        )

    def sample_uniform(self, noise: Noise, count: int) -> Pairs:
        return replace(self.sample_non_edges(noise, count), weight=None)

    def sample_by_degree(self, noise: Noise, count: int) -> Pairs:
        return self.sample_non_edges(noise, count)

    @cached_property
    def all_non_edges(self) -> Pairs:
        i, j = torch.cartesian_prod(self._source, self._target).unbind(1)
        free = self._free.contains(i, j)
        return Pairs(i[free], j[free], present=False)

    def _of_source_and_target(self, source: Tensor, target: Tensor) -> Pairs:
        i, j = self._source[source], self._target[target]
        every = self._source.numel() * self._target.numel()
        weight = self._free.contains(i, j) * (every / max(self.num_non_edges, 1))
        return Pairs(i, j, present=False, weight=weight.to(self.inputs.dtype))


def _numbers(noise: Noise, high: int, count: int) -> Tensor:
    """(R, count) uniform in 0 .. high - 1. Their order does not matter; a CPU finds sorted ones close in memory."""
    numbers = noise.integers(high, count)
    return torch.from_numpy(np.sort(numbers.numpy(), axis=1)) if numbers.device.type == "cpu" else numbers


def _among(pattern: Pattern, nodes: Tensor) -> Pattern:
    """The rows and columns of some nodes, of which the others have no entries but in their own row."""
    keep = torch.zeros(pattern.shape[0], dtype=torch.bool, device=nodes.device)
    keep[nodes] = True
    number, rowptr = keep.cumsum(0) - 1, torch.zeros(len(nodes) + 1, dtype=torch.int64, device=nodes.device)
    torch.cumsum(pattern.rowptr.diff()[nodes], 0, out=rowptr[1:])
    return Pattern.from_rows(rowptr, number[pattern.col[keep[pattern.row]]], len(nodes), pattern.symmetric)


class OfType(NamedTuple):
    """What explains the edges of one type, or all edges. share: of the graph term."""

    likelihood: GraphLikelihood
    source: DrawsPairs
    inputs: Inputs
    share: float = 1.0


def of_types(
    likelihood: GraphLikelihood | ByType | None, source: DrawsPairs, inputs: Inputs, is_mean: bool
) -> list[OfType]:
    """is_mean: whether terms are means over pairs; that of all edges is that of each type, by its share of them."""
    assert likelihood is not None
    if not isinstance(likelihood, ByType):
        return [OfType(likelihood, source, inputs)]
    assert isinstance(source, PairSource)
    total, found = max(sum(own.num_edges for own in source.by_type), 1), list[OfType]()
    for part, own in zip(likelihood.parts, source.by_type, strict=True):
        assert isinstance(part, GraphLikelihood)
        found.append(OfType(part, own, own.inputs, own.num_edges / total if is_mean else 1.0))
    return found


def drawn_pairs(source: DrawsPairs, noise: Noise, count: int, how: str) -> list[Pairs]:
    """Edges, and non-edges if there are any."""
    edges = source.observed(noise, count)
    return [edges, source.absent(noise, count, how)] if source.num_non_edges > 0 else [edges]
