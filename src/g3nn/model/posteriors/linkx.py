"""LINKX: the identity of the neighbours is a feature too (Lim et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import OwnVectors, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


class Linkx(LabelPosterior[PerceptronOptions]):
    """h_i = relu([W_x x_i, mean_j e_j] + b), q_i = softmax(W_o relu(W_m h_i + b_m) + b_o), j the neighbours of i.

    e_j is learned for each node j, so mean_j e_j is a linear layer on row i of the adjacency matrix divided by the
    degree; its dropout drops edges. A node that training did not know has e_j = 0, but hears its neighbours.
    """

    Options = PerceptronOptions
    cost = 1.5
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        hidden = self.options.hidden
        self.features = replicas.glorot("features", sizes.features, hidden)
        self.vectors = OwnVectors(replicas.glorot("vectors", sizes.nodes, hidden))
        self.bias = replicas.zeros(2 * hidden)
        self.middle = replicas.glorot("middle", 2 * hidden, hidden)
        self.middle_bias = replicas.zeros(hidden)
        self.out = replicas.glorot("out", hidden, sizes.scores)
        self.out_bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout
        own = inputs.x.matmul(self.features, noise, rate)
        heard = inputs.neighbour_mean.matmul(self.vectors.of(inputs.n), optional_draw(noise, rate))
        hidden = rectify(torch.cat([own, heard], dim=2), self.bias, optional_draw(noise, rate))
        hidden = rectify(linear(hidden, self.middle), self.middle_bias, optional_draw(noise, rate))
        return self.answer(linear(hidden, self.out) + self.out_bias.unsqueeze(1))
