"""What another model has learned from the features, as a prior."""

from __future__ import annotations

from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import ReplicaCount
from g3nn.model.priors.base import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes


class GivenPrior(LabelPrior):
    """p(y_i | x_i) is the belief about node i that came with the task, the same for all replicas: nothing to learn."""

    uses_features = True
    uses_beliefs = True
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: object = None) -> None:
        super().__init__(sizes, replicas)
        del self.head  # It makes answers of scores, of which there are none.
        self.each = ReplicaCount(replicas)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        assert inputs.beliefs is not None
        return self.each(inputs.beliefs)
