"""Network parts shared by priors and posteriors. Parameters, like all parameters, start with a replica dimension."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.kernels import linear, rectify
from g3nn.options import integer, number
from g3nn.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class PerceptronOptions:
    hidden: int = integer(16, "number of hidden units", low=1)
    dropout: float = number(0.5, "dropout before each layer", low=0, high=0.95)


class Perceptron(nn.Module):
    """W_2 relu(W_1 x_i + b_1) + b_2, with dropout before either layer: (R, n, K) scores."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions) -> None:
        super().__init__()
        self.options = options
        self.weight1 = replicas.glorot("weight1", sizes.features, options.hidden)
        self.bias1 = replicas.zeros(options.hidden)
        self.weight2 = replicas.glorot("weight2", options.hidden, sizes.classes)
        self.bias2 = replicas.zeros(sizes.classes)

    def forward(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        hidden = inputs.x.matmul(self.weight1, noise, self.options.dropout)
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        return linear(hidden, self.weight2) + self.bias2.unsqueeze(1)


class ReplicaCount(nn.Module):
    """Knows how many replicas there are, for components without parameters of their own."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(replicas.size, 1, 1))

    def forward(self, shared: Tensor) -> Tensor:
        """(R, n, K): the same (n, K) answer for each replica."""
        zero = self.get_buffer("zero")
        return shared.expand(zero.shape[0], *shared.shape)
