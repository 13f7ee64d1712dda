"""Pairs of nodes for the graph term: the observed edges, and sampled or enumerated non-edges."""

from __future__ import annotations

import torch
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.likelihoods import Pairs
from g3nn.replicas import Noise


class PairSource:
    """The edges of a graph and draws from its non-edges.

    Non-edges are drawn without rejection. Number all ordered pairs i * n + j and let e_0 < e_1 < ... be those that are
    no candidates (edges and self-pairs). Then e_t - t candidates lie below e_t, so the candidate of rank u has number
    u + t, where t counts the e with e_t - t <= u: one binary search, the same on every device.
    """

    def __init__(self, inputs: Inputs) -> None:
        n, edges = inputs.n, inputs.edges
        self.n = n
        self.directed = inputs.task.directed
        self.edges = Pairs(edges[0], edges[1], present=True)
        taken = inputs.arcs[0] * n + inputs.arcs[1]
        diagonal = torch.arange(n, device=taken.device) * (n + 1)
        taken = torch.cat([taken, diagonal]).sort().values
        self._below = taken - torch.arange(taken.numel(), device=taken.device)
        self._ordered_non_edges = n * n - taken.numel()

    @property
    def num_edges(self) -> int:
        return int(self.edges.i.numel())

    @property
    def num_non_edges(self) -> int:
        """Unordered pairs on an undirected graph, ordered ones on a directed graph; never a self-pair."""
        return self._ordered_non_edges if self.directed else self._ordered_non_edges // 2

    def _unrank(self, rank: Tensor) -> Pairs:
        number = rank + torch.searchsorted(self._below, rank, right=True)
        return Pairs(number // self.n, number % self.n, present=False)

    def sample_non_edges(self, noise: Noise, count: int) -> Pairs:
        """`count` true non-edges for each replica, uniform and independent."""
        return self._unrank(noise.integers(self._ordered_non_edges, count))

    def sample_uniform(self, noise: Noise, count: int) -> Pairs:
        """`count` uniform pairs treated as non-edges, as the authors' code does: some are edges or self-pairs."""
        number = noise.integers(self.n * self.n, count)
        return Pairs(number // self.n, number % self.n, present=False)

    def all_non_edges(self) -> Pairs:
        """Every non-edge once; n^2 of them, so for small graphs."""
        pairs = self._unrank(torch.arange(self._ordered_non_edges, device=self._below.device))
        if self.directed:
            return pairs
        once = pairs.i < pairs.j
        return Pairs(pairs.i[once], pairs.j[once], present=False)
