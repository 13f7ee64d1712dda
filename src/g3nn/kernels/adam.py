"""One update of Adam for a parameter with a leading replica dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from g3nn.kernels import reference
from g3nn.kernels.backend import fast


class AdamStep(NamedTuple):
    """What the update of every parameter shares.

    lr, decay (R,); corrections (2,): 1 - beta^t for the two moments; fresh (R,): whose parameters, as they are before
    the update, are to be kept as the best so far.
    """

    lr: Tensor
    decay: Tensor
    corrections: Tensor
    fresh: Tensor
    betas: tuple[float, float]
    epsilon: float = 1e-8


def adam(
    parameter: Tensor, gradient: Tensor | None, first: Tensor, second: Tensor, best: Tensor, step: AdamStep
) -> None:
    """Changes the parameter, both moments and, where fresh, `best` in place."""
    kernels: Any = fast(parameter) or reference
    kernels.adam(parameter, gradient, first, second, best, step)
