"""The paper's prior: a perceptron with one hidden layer."""

from __future__ import annotations

from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Perceptron, PerceptronOptions
from g3nn.model.priors.base import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes


class MLPPrior(LabelPrior):
    """p(y_i | x_i) = softmax(W_2 relu(W_1 x_i + b_1) + b_2), with dropout before each layer."""

    Options = PerceptronOptions
    uses_features = True
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.network = Perceptron(sizes, replicas, options or PerceptronOptions())

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.network(inputs, noise))
