"""Arguments of kernels that always come together, with the same meaning on every device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from g3nn.kernels.pattern import Pattern


class Draw(NamedTuple):
    """One random draw for every replica: seeds (R,) int64, the number of the draw, and the dropout rate."""

    seeds: Tensor
    counter: int | Tensor
    rate: float

    @property
    def threshold(self) -> int:
        """A position is kept if its 32 random bits reach this number."""
        return min(round(self.rate * 2.0**32), 2**32 - 1)

    @property
    def scale(self) -> float:
        return 1.0 / (1.0 - self.rate)


def on_device(counter: int | Tensor, device: torch.device) -> Tensor:
    """The number of a draw as a tensor that a kernel can read. It is written there, not copied: a copy would wait
    until the GPU has finished everything before it."""
    return counter if isinstance(counter, Tensor) else torch.full((), counter, dtype=torch.int64, device=device)


class Scales(NamedTuple):
    """The values of a matrix whose entry ij is left_i right_j: left (n,) and right (m,), None if all are 1."""

    left: Tensor | None
    right: Tensor | None

    def turned(self, transpose: bool) -> Scales:
        """The scales of the transpose if `transpose`, else these."""
        return Scales(self.right, self.left) if transpose else self

    def values(self, pattern: Pattern) -> Tensor:
        """(1, nnz): the value of each entry."""
        ends = ((self.left, pattern.row), (self.right, pattern.col))
        return reduce(torch.mul, [scale.index_select(0, at) for scale, at in ends if scale is not None]).unsqueeze(0)


class Attention(NamedTuple):
    """The entries over which attention runs, the slope of the leaky rectifier below zero, the draw that drops attention
    weights, and the logarithms (nnz,) of the weights of the entries, None if all are 1."""

    pattern: Pattern
    slope: float
    draw: Draw | None
    log_weight: Tensor | None = None


class NodeAnswers(NamedTuple):
    """The arguments of `g3nn.kernels.node_terms`."""

    log_q: Tensor
    log_p: Tensor
    label: Tensor
    of_posterior: bool
    shares: tuple[float, float]


class LogisticPairs(NamedTuple):
    """The arguments of `g3nn.kernels.expected_logistic`, with sign 1 for edges and -1 for non-edges."""

    left: Tensor
    right: Tensor
    base: Tensor
    target: Tensor | None
    source: Tensor | None
    table: Tensor
    sign: float

    def parts(self, size: int) -> Iterator[tuple[slice, LogisticPairs]]:
        """Parts of at most `size` pairs, with their places; at least one part, even without pairs."""
        for start in range(0, max(self.base.shape[1], 1), size):
            here = slice(start, start + size)
            target, source = (None if end is None else end[:, here] for end in (self.target, self.source))
            left, right, base = self.left[:, here], self.right[:, here], self.base[:, here]
            yield here, LogisticPairs(left, right, base, target, source, self.table, self.sign)


class AdamStep(NamedTuple):
    """What the updates of all parameters have in common.

    lr, decay (R,). corrections (2,): 1 - beta^t for the two moments. fresh (R,): the replicas whose parameters, before
    the update, are the best so far and must be copied.
    """

    lr: Tensor
    decay: Tensor
    corrections: Tensor
    fresh: Tensor
    betas: tuple[float, float]
    epsilon: float = 1e-8
