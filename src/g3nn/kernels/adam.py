"""Adam for a stack: torch's update rule, with a learning rate and weight decay of its own for each replica."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from g3nn.kernels import reference
from g3nn.kernels.arguments import AdamStep
from g3nn.kernels.backend import fast

_BETAS = (0.9, 0.999)


class StackedAdam:
    """Adam with L2 weight decay added to the gradient. All parameters and both moments lead with R.

    lr and weight_decay: (R,). The number of steps lives on the device, so that a captured step can count on.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters
        self.lr, self.weight_decay = lr, weight_decay
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = torch.zeros((), dtype=torch.float64, device=lr.device)
        self._betas = torch.tensor(_BETAS, dtype=torch.float64, device=lr.device)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, fresh: Tensor | None = None, best: Sequence[Tensor] | None = None) -> None:
        """One update. Where `fresh` (R,), the parameters as they were before it are kept in `best`, one tensor for each
        parameter: they are being read anyway, so a snapshot costs next to nothing."""
        self.steps += 1
        corrections = (1 - self._betas**self.steps).to(self.lr.dtype)
        nobody = torch.zeros_like(self.lr, dtype=torch.bool)
        step = AdamStep(self.lr, self.weight_decay, corrections, nobody if fresh is None else fresh, _BETAS)
        kept = self.parameters if best is None else best
        kernels: Any = fast(self.lr) or reference
        for parameter, first, second, snapshot in zip(self.parameters, self.first, self.second, kept, strict=True):
            kernels.adam(parameter, parameter.grad, first, second, snapshot, step)

    def select(self, keep: Tensor, parameters: list[nn.Parameter]) -> None:
        """Keep only the replicas at these positions; `parameters` are the model's, already selected."""
        self.parameters = parameters
        self.lr, self.weight_decay = self.lr[keep], self.weight_decay[keep]
        self.first = [moment[keep] for moment in self.first]
        self.second = [moment[keep] for moment in self.second]
