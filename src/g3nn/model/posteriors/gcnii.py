"""Deep graph convolution with initial residuals and identity mappings (Chen et al., GCNII, 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_dropout


@dataclass(frozen=True)
class GCNIIOptions:
    hidden: int = integer(64, "number of hidden units", low=1)
    layers: int = integer(16, "number of convolutions", low=1, high=128)
    dropout: float = number(0.6, "dropout before each layer", low=0, high=0.95)
    residual: float = number(0.1, "share of the first hidden layer in each convolution", low=0, high=1)
    decay: float = number(0.5, "layer l mixes its weights in with share log(1 + decay / l)", low=0)


class GCNII(LabelPosterior[GCNIIOptions]):
    """H_l = relu(((1 - a) A H_{l-1} + a H_0)((1 - b_l) I + b_l W_l)), H_0 = relu(X W_in + b), b_l = log(1 + decay / l).

    q = softmax(H_T W_out + b). The residual connection to H_0 keeps many layers from oversmoothing.
    """

    Options = GCNIIOptions
    cost = 12.0
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNIIOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        hidden = self.options.hidden
        self.weight_in = replicas.glorot("weight_in", sizes.features, hidden)
        self.bias_in = replicas.zeros(hidden)
        self.weights = replicas.glorot("weights", hidden, hidden, self.options.layers, hidden, hidden)
        self.weight_out = replicas.glorot("weight_out", hidden, sizes.scores)
        self.bias_out = replicas.zeros(sizes.scores)

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, a = self.options.dropout, self.options.residual
        first = rectify(inputs.x.matmul(self.weight_in, noise, rate), self.bias_in, None)
        hidden = first
        for layer, hop in enumerate(inputs.hops(self.steps)):
            share = math.log1p(self.options.decay / (layer + 1))
            first = hop.own(first)
            heard = (1 - a) * hop.adjacency.matmul(optional_dropout(noise, hidden, rate)) + a * first
            hidden = torch.relu((1 - share) * heard + share * linear(heard, self.weights[:, layer]))
        hidden = optional_dropout(noise, hidden, rate)
        return self.answer(linear(hidden, self.weight_out) + self.bias_out.unsqueeze(1))
