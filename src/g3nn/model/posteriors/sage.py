"""GraphSAGE with mean aggregation (Hamilton et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import integer
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import HiddenLayers, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class SageOptions(PerceptronOptions):
    layers: int = integer(2, "number of layers", low=2, high=16)


class Sage(LabelPosterior[SageOptions]):
    """h_i = relu(W_1 x_i + V_1 mean_j x_j + b_1), q_i = softmax(W_2 h_i + V_2 mean_j h_j + b_2), j the neighbours of i.

    More layers are like the first. A node's own features have separate weights, which helps on heterophilous graphs.
    """

    Options = SageOptions
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: SageOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.own1 = replicas.glorot("own1", sizes.features, self.options.hidden)
        self.neighbours1 = replicas.glorot("neighbours1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.own2 = replicas.glorot("own2", self.options.hidden, sizes.scores)
        self.neighbours2 = replicas.glorot("neighbours2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)
        self.between = HiddenLayers(replicas, self.options.hidden, self.options.layers - 2, ("own", "neighbours"))

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout
        first, *middle, last = inputs.hops(self.steps)
        heard = first.neighbour_mean.matmul(inputs.x.matmul(self.neighbours1, noise, rate))
        hidden = first.own(inputs.x).matmul(self.own1, noise, rate) + heard
        hidden = rectify(hidden, self.bias1, optional_draw(noise, rate))
        for layer, hop in enumerate(middle):
            own, neighbours, bias = self.between(layer)
            heard = hop.neighbour_mean.matmul(linear(hidden, neighbours))
            hidden = rectify(linear(hop.own(hidden), own) + heard, bias, optional_draw(noise, rate))
        heard = last.neighbour_mean.matmul(linear(hidden, self.neighbours2))
        scores = linear(last.own(hidden), self.own2) + heard
        return self.answer(scores + self.bias2.unsqueeze(1))
