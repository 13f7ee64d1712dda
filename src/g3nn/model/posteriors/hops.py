"""Separate weights for each distance, as in MixHop (Abu-El-Haija et al., 2019) and H2GCN (Zhu et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class HopsOptions:
    hidden: int = integer(16, "number of hidden units for each distance", low=1)
    dropout: float = number(0.5, "dropout before each layer", low=0, high=0.95)


class Hops(LabelPosterior[HopsOptions]):
    """h_i = relu([W_0 x_i, W_1 mean_j x_j, W_2 mean_j mean_k x_k] + b), q_i = softmax(W h_i + b'), j the neighbours of
    i and k those of j.

    What a node, its neighbours and their neighbours say is never added up, so they may mean different things, as on
    heterophilous graphs.
    """

    Options = HopsOptions
    cost = 3.0
    steps = 2
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: HopsOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.weight0 = replicas.glorot("weight0", sizes.features, self.options.hidden)
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.weight2 = replicas.glorot("weight2", sizes.features, self.options.hidden)
        self.bias = replicas.zeros(3 * self.options.hidden)
        self.out = replicas.glorot("out", 3 * self.options.hidden, sizes.scores)
        self.out_bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, (far_off, close) = self.options.dropout, inputs.hops(2)
        around = far_off.own(inputs.x)
        own = close.own(around).matmul(self.weight0, noise, rate)
        near = close.neighbour_mean.matmul(around.matmul(self.weight1, noise, rate))
        far = far_off.neighbour_mean.matmul(inputs.x.matmul(self.weight2, noise, rate))
        far = close.neighbour_mean.matmul(far)
        hidden = rectify(torch.cat([own, near, far], dim=2), self.bias, optional_draw(noise, rate))
        return self.answer(linear(hidden, self.out) + self.out_bias.unsqueeze(1))
