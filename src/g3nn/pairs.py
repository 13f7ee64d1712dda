"""Pairs of nodes for the graph term: the observed edges, and sampled or enumerated non-edges."""

from __future__ import annotations

from functools import cached_property

import torch

from g3nn.inputs import Inputs
from g3nn.kernels import FreePairs
from g3nn.likelihoods import Pairs
from g3nn.replicas import Noise


class PairSource:
    """The edges of a graph and draws from its non-edges."""

    def __init__(self, inputs: Inputs) -> None:
        self.n = inputs.n
        self.directed = inputs.task.directed
        pattern = inputs.edge_pattern
        self.edges = Pairs(pattern.row.long(), pattern.col.long(), present=True, pattern=pattern)
        self._free = FreePairs(inputs.arcs, inputs.n)

    @property
    def num_edges(self) -> int:
        return int(self.edges.i.numel())

    @property
    def num_non_edges(self) -> int:
        """Unordered pairs on an undirected graph, ordered ones on a directed graph; never a self-pair."""
        return len(self._free) if self.directed else len(self._free) // 2

    def sample_edges(self, noise: Noise, count: int) -> Pairs:
        """`count` edges for each replica, uniform and independent, so that one may come twice."""
        drawn = noise.integers(self.num_edges, count)
        return Pairs(self.edges.i[drawn], self.edges.j[drawn], present=True)

    def sample_non_edges(self, noise: Noise, count: int) -> Pairs:
        """`count` true non-edges for each replica, uniform and independent."""
        return Pairs(*self._free.pairs(noise.integers(len(self._free), count)), present=False)

    def sample_uniform(self, noise: Noise, count: int) -> Pairs:
        """`count` uniform pairs treated as non-edges, as the authors' code does: some are edges or self-pairs."""
        number = noise.integers(self.n * self.n, count)
        return Pairs(number // self.n, number % self.n, present=False)

    def all_non_edges(self) -> Pairs:
        """Every non-edge once; n^2 of them, so for small graphs."""
        return self._every_non_edge

    @cached_property
    def _every_non_edge(self) -> Pairs:
        i, j = self._free.pairs(torch.arange(len(self._free), device=self.edges.i.device))
        once = torch.ones_like(i, dtype=torch.bool) if self.directed else i < j
        return Pairs(i[once], j[once], present=False)
