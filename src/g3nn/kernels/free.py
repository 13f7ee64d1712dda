"""Non-edges by rank, so that sampling one needs no rejection."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from g3nn.kernels.backend import fast


class FreePairs:
    """All ordered pairs (i, j) of n nodes except arcs (2, A) and self-pairs, in the order of i n + j.

    Let e_0 < e_1 < ... be the numbers i n + j of the taken pairs. There are e_t - t free pairs below e_t, so the free
    pair of rank u has number u + t, where t counts the taken pairs with e_t - t <= u. One binary search finds t, with
    the same result on every device.
    """

    def __init__(self, arcs: Tensor, n: int) -> None:
        self.n = n
        own = torch.arange(n, device=arcs.device)
        self._taken = torch.cat([arcs[0] * n + arcs[1], own * (n + 1)]).sort().values

    def __len__(self) -> int:
        return self.n * self.n - self._taken.numel()

    def pairs(self, rank: Tensor) -> tuple[Tensor, Tensor]:
        """i and j of the free pairs with these ranks, in the same shape."""
        kernels = fast(rank)
        if kernels is not None and hasattr(kernels, "unrank_free"):
            return kernels.unrank_free(rank, *self._rows, self.n)
        number = rank + torch.searchsorted(self._below, rank, right=True)
        return number // self.n, number % self.n

    def contains(self, i: Tensor, j: Tensor) -> Tensor:
        """Whether these pairs are free, in the shape of i and j."""
        number = i * self.n + j
        place = torch.searchsorted(self._taken, number).clamp_max(self._taken.numel() - 1)
        return self._taken[place] != number

    @cached_property
    def _below(self) -> Tensor:
        return self._taken - torch.arange(self._taken.numel(), device=self._taken.device)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        """The taken pairs as compressed rows."""
        starts = torch.arange(self.n + 1, device=self._taken.device) * self.n
        return torch.searchsorted(self._taken, starts), (self._taken % self.n).to(torch.int32)
