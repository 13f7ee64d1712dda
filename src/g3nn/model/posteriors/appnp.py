"""Personalised propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Perceptron, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class APPNPOptions(PerceptronOptions):
    steps: int = integer(10, "number of propagation steps", low=1)
    teleport: float = number(0.1, "weight of a node's own prediction in each step", low=0, high=1)
    edge_dropout: float = number(0.5, "dropout on the propagation matrix, redrawn in each step", low=0, high=0.95)


class APPNP(LabelPosterior[APPNPOptions]):
    """Z_0 = MLP(X); Z_t = (1 - a) A Z_{t-1} + a Z_0; q = softmax(Z_T), with teleport probability a."""

    Options = APPNPOptions
    cost = 2.5
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: APPNPOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.network = Perceptron(sizes, replicas, self.options)

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.steps

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        start: Tensor = self.network(inputs, noise)
        a, rate = self.options.teleport, self.options.edge_dropout
        z = start
        for hop in inputs.hops(self.steps):
            draw = optional_draw(noise, rate)
            start = hop.own(start)
            z = (1 - a) * hop.adjacency.matmul(z, draw) + a * start
        return self.answer(z)
