"""A generative model of features that are present or absent, such as words."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.model.inputs import Inputs
from g3nn.model.priors.base import FeatureOptions, FeaturePrior
from g3nn.model.replicas import Replicas, Sizes


class BernoulliFeatures(FeaturePrior):
    """x_id > 0 with probability sigmoid(b_d + theta_kd), independently: which words a text contains, not how often."""

    uses_features = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FeatureOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.theta = replicas.glorot("theta", sizes.features, sizes.classes)
        self.base = replicas.zeros(sizes.features)

    def log_likelihood(self, inputs: Inputs) -> Tensor:
        odds = self.base.unsqueeze(2) + self.theta
        return inputs.presence.matmul(odds) + logsigmoid(-odds).sum(1, keepdim=True)
