"""Adam for a stack: torch's update rule, with a learning rate and weight decay of its own for each replica."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class StackedAdam:
    """Adam with L2 weight decay added to the gradient. All parameters and both moments lead with R.

    lr and weight_decay: (R,).
    """

    def __init__(self, parameters: list[nn.Parameter], lr: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters
        self.lr, self.weight_decay = lr, weight_decay
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = 0

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        correction1, correction2 = 1 - _BETA1**self.steps, 1 - _BETA2**self.steps
        for parameter, first, second in zip(self.parameters, self.first, self.second, strict=True):
            each = (-1, *(1 for _ in parameter.shape[1:]))
            gradient = parameter * self.weight_decay.view(each)
            if parameter.grad is not None:
                gradient += parameter.grad
            first.lerp_(gradient, 1 - _BETA1)
            second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
            denominator = second.sqrt().div_(correction2**0.5).add_(_EPSILON)
            parameter.sub_((self.lr / correction1).view(each) * first / denominator)

    def select(self, keep: Tensor, parameters: list[nn.Parameter]) -> None:
        """Keep only the replicas at these positions; `parameters` are the model's, already selected."""
        self.parameters = parameters
        self.lr, self.weight_decay = self.lr[keep], self.weight_decay[keep]
        self.first = [moment[keep] for moment in self.first]
        self.second = [moment[keep] for moment in self.second]
