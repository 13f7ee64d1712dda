"""Non-edges by rank, so that sampling one needs no rejection."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from g3nn.kernels.backend import fast
from g3nn.kernels.pattern import Pattern


class FreePairs:
    """All ordered pairs (i, j) of n nodes that have no entry in a pattern (n, n), in the order of i n + j.

    i n - rowptr[i] free pairs come before row i, so one search finds the row of a rank. In a row with the taken columns
    c_0 < c_1 < ... there are c_t - t free ones before c_t, so the free column of rank u in the row is u + t, where t
    counts the taken columns with c_t - t <= u: another search. The result is the same on every device.
    """

    def __init__(self, taken: Pattern) -> None:
        self.n = taken.shape[0]
        self._taken = taken

    def __len__(self) -> int:
        return self.n * self.n - self._taken.nnz

    def pairs(self, rank: Tensor) -> tuple[Tensor, Tensor]:
        """i and j of the free pairs with these ranks, in the same shape and the type of the columns."""
        kernels = fast(rank)
        if kernels is not None:
            return kernels.unrank_free(rank, self._taken, self._longest)
        rowptr, col = self._taken.rowptr, self._taken.col
        rows = torch.arange(self.n + 1, device=rank.device) * self.n - rowptr
        i = torch.searchsorted(rows, rank, right=True) - 1
        rest, start = rank - rows[i], rowptr[i]
        t = self._count(i, lambda k: col[k] - (k - start) <= rest)
        return i.to(col.dtype), (rest + t).to(col.dtype)

    def contains(self, i: Tensor, j: Tensor) -> Tensor:
        """Whether these pairs are free, in the shape of i and j."""
        col = self._taken.col
        place = self._taken.rowptr[i] + self._count(i, lambda k: col[k] < j)
        return (place == self._taken.rowptr[i + 1]) | (col[place.clamp_max(self._taken.nnz - 1)] != j)

    def _count(self, row: Tensor, first: Callable[[Tensor], Tensor]) -> Tensor:
        """How many entries of each row come first: `first` tells it of entries, and is true up to some entry."""
        start, low, high = self._taken.rowptr[row], self._taken.rowptr[row], self._taken.rowptr[row + 1]
        last = max(self._taken.nnz - 1, 0)
        for _ in range(self._longest.bit_length()):
            middle = (low + high) // 2
            ahead = (low < high) & first(middle.clamp_max(last))
            low, high = torch.where(ahead, middle + 1, low), torch.where(ahead, high, middle)
        return low - start

    @cached_property
    def _longest(self) -> int:
        """The most entries of a row."""
        return int(self._taken.rowptr.diff().max())
