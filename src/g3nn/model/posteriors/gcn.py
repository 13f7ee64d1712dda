"""Graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import flag, integer
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import HiddenLayers, PerceptronOptions, two_layers
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class GCNOptions(PerceptronOptions):
    layers: int = integer(2, "number of layers", low=2, high=16)
    input_dropout: bool = flag(True, "dropout on the features too, as in the original GCN; the authors' code has none")


class GCN(LabelPosterior[GCNOptions]):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2) with A = D^-1/2 (A + I) D^-1/2; more layers are like the first."""

    Options = GCNOptions
    cost = 1.0
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        layers = two_layers(replicas, sizes.features, self.options.hidden, sizes.scores)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers
        self.between = HiddenLayers(replicas, self.options.hidden, self.options.layers - 2, ("weight",))

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout if self.options.input_dropout else 0.0
        first, *middle, last = inputs.hops(self.steps)
        hidden = first.adjacency.matmul(inputs.x.matmul(self.weight1, noise, rate))
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        for layer, hop in enumerate(middle):
            weight, bias = self.between(layer)
            hidden = hop.adjacency.matmul(linear(hidden, weight))
            hidden = rectify(hidden, bias, optional_draw(noise, self.options.dropout))
        scores = last.adjacency.matmul(linear(hidden, self.weight2))
        return self.answer(scores + self.bias2.unsqueeze(1))
