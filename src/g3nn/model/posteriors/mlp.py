"""A posterior that ignores the graph: the MLP baseline."""

from __future__ import annotations

from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Perceptron, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes


class MLPPosterior(LabelPosterior):
    """q(y_i | x_i): two layers with dropout before each."""

    Options = PerceptronOptions
    uses_graph = False
    cost = 0.7
    steps = 0
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.network = Perceptron(sizes, replicas, options or PerceptronOptions())

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.network(inputs, noise))
