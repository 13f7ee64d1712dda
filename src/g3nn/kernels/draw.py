"""What a random draw is."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Draw(NamedTuple):
    """One random draw for every replica: seeds (R,) int64, the number of the draw, and the rate of dropout."""

    seeds: Tensor
    counter: int | Tensor
    rate: float

    @property
    def threshold(self) -> int:
        """A position is kept when its 32 random bits reach this."""
        return min(round(self.rate * 2.0**32), 2**32 - 1)

    @property
    def scale(self) -> float:
        return 1.0 / (1.0 - self.rate)


def on_device(counter: int | Tensor, device: torch.device) -> Tensor:
    """The number of a draw where a kernel can read it."""
    return counter if isinstance(counter, Tensor) else torch.tensor(counter, device=device)
