"""The neighbours of every node, as compressed rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.sparse import neighbourhoods


@dataclass(frozen=True, eq=False)
class Rows:
    """rowptr (n + 1,), col (A,): compressed rows, sorted. weight: (A,) of the edges; None if all are alike."""

    rowptr: Tensor
    col: Tensor
    weight: Tensor | None

    @classmethod
    def of_neighbours(cls, edges: np.ndarray, n: int, weights: np.ndarray | None) -> Rows:
        """Directions are ignored, as in every network."""
        looped = neighbourhoods(edges, n, weights)
        looped.setdiag(0.0)
        looped.eliminate_zeros()
        return cls._of(looped, weights is not None)

    @classmethod
    def of_arcs(cls, edges: np.ndarray, n: int) -> Rows:
        arcs = sp.csr_array((np.ones(edges.shape[1], dtype=np.int8), tuple(edges)), shape=(n, n))
        arcs.sort_indices()
        return cls._of(arcs, False)

    @classmethod
    def _of(cls, matrix: sp.csr_array, weighted: bool) -> Rows:
        weight = torch.from_numpy(matrix.data) if weighted else None
        rowptr = torch.from_numpy(matrix.indptr.astype(np.int64))
        return cls(rowptr, torch.from_numpy(matrix.indices.astype(np.int32)), weight)

    def to(self, device: torch.device | str) -> Rows:
        weight = None if self.weight is None else self.weight.to(device)
        return Rows(self.rowptr.to(device), self.col.to(device), weight)

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
