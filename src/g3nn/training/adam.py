"""Adam for a stack: torch's update rule, with a learning rate and weight decay of its own for each replica."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from g3nn.kernels.backend import fast

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


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
    def step(self, fresh: Tensor | None = None, best: list[Tensor] | None = None) -> None:
        """One update. Where `fresh` (R,), the parameters as they were before it are kept in `best`, one tensor for each
        parameter: they are being read anyway, so a snapshot costs next to nothing."""
        self.steps += 1
        corrections = (1 - self._betas**self.steps).to(self.lr.dtype)
        nobody = torch.zeros_like(self.lr, dtype=torch.bool) if fresh is None else fresh
        for index, parameter in enumerate(self.parameters):
            kernels = fast(parameter)
            update: Any = _update if kernels is None else kernels.adam
            moments = (self.first[index], self.second[index])
            scalars = (self.lr, self.weight_decay, corrections, _BETAS, _EPSILON)
            kept = parameter.detach() if best is None else best[index]
            update(parameter, parameter.grad, *moments, *scalars, nobody, kept)

    def select(self, keep: Tensor, parameters: list[nn.Parameter]) -> None:
        """Keep only the replicas at these positions; `parameters` are the model's, already selected."""
        self.parameters = parameters
        self.lr, self.weight_decay = self.lr[keep], self.weight_decay[keep]
        self.first = [moment[keep] for moment in self.first]
        self.second = [moment[keep] for moment in self.second]


def _update(
    parameter: Tensor,
    gradient: Tensor | None,
    first: Tensor,
    second: Tensor,
    lr: Tensor,
    decay: Tensor,
    corrections: Tensor,
    betas: tuple[float, float],
    epsilon: float,
    fresh: Tensor,
    best: Tensor,
) -> None:
    """The update in plain torch."""
    each = (-1, *(1 for _ in parameter.shape[1:]))
    best.copy_(torch.where(fresh.view(each), parameter, best))
    slope = parameter * decay.view(each)
    if gradient is not None:
        slope += gradient
    first.lerp_(slope, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(slope, slope, value=1 - betas[1])
    denominator = second.sqrt().div_(corrections[1].sqrt()).add_(epsilon)
    parameter.sub_((lr / corrections[0]).view(each) * first / denominator)
