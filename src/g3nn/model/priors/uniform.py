"""The uninformative prior."""

from __future__ import annotations

from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import ReplicaCount
from g3nn.model.priors.base import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes


class UniformPrior(LabelPrior):
    """p(y_i = k | x_i) = 1 / K; for other outcomes, the distribution of the training labels."""

    uses_features = False
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: object = None) -> None:
        super().__init__(sizes, replicas)
        self.each = ReplicaCount(replicas)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.each(inputs.targets.scale.new_zeros(inputs.n, self.sizes.scores)))
