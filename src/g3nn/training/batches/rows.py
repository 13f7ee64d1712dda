"""The neighbours of every node, as compressed rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from g3nn.kernels.sparse import Rows, edge_rows, neighbour_rows


@dataclass(frozen=True, eq=False)
class GraphRows:
    """rowptr (n + 1,), col (A,): compressed rows, sorted. weight: (A,) of the edges; None if all are alike."""

    rowptr: Tensor
    col: Tensor
    weight: Tensor | None

    @classmethod
    def of_neighbours(cls, edges: np.ndarray, n: int, weights: np.ndarray | None) -> GraphRows:
        """Directions are ignored, as in every network."""
        return cls._of(neighbour_rows(edges, n, weights, loops=False))

    @classmethod
    def of_arcs(cls, edges: np.ndarray, n: int) -> GraphRows:
        return cls._of(edge_rows(edges, n)[0])

    @classmethod
    def _of(cls, rows: Rows) -> GraphRows:
        weight = None if rows.values is None else torch.from_numpy(rows.values)
        pattern = rows.pattern(symmetric=False)
        return cls(pattern.rowptr, pattern.col, weight)

    def to(self, device: torch.device | str) -> GraphRows:
        weight = None if self.weight is None else self.weight.to(device)
        return GraphRows(self.rowptr.to(device), self.col.to(device), weight)

    @property
    def n(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def nbytes(self) -> int:
        parts = (self.rowptr, self.col) if self.weight is None else (self.rowptr, self.col, self.weight)
        return sum(part.numel() * part.element_size() for part in parts)

    @cached_property
    def total(self) -> Tensor:
        """(n,) float64: the sum of the weights of a node's edges."""
        if self.weight is None:
            return self.rowptr.diff().double()
        sums = torch.cat([self.weight.new_zeros(1), self.weight.cumsum(0)])
        return sums[self.rowptr[1:]] - sums[self.rowptr[:-1]]

    def contain(self, i: Tensor, j: Tensor) -> Tensor:
        """Whether these entries exist, by binary search in the row of each."""
        low, high = self.rowptr[i], self.rowptr[i + 1]
        end = high
        for _ in range(int(self._widest).bit_length()):
            middle = (low + high) // 2
            below = (middle < high) & (self._at(middle) < j)
            low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
        return (low < end) & (self._at(low) == j)

    def _at(self, place: Tensor) -> Tensor:
        return self.col[place.clamp_max(self.col.numel() - 1)] if self.col.numel() else torch.full_like(place, -1)

    @cached_property
    def _widest(self) -> int:
        return int(self.rowptr.diff().max()) if self.n else 0
