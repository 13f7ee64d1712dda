"""A generative model of features that are real numbers."""

from __future__ import annotations

import math

from torch import Tensor

from g3nn.model.inputs import Inputs
from g3nn.model.priors.base import FeatureOptions, FeaturePrior
from g3nn.model.replicas import Replicas, Sizes


class GaussianFeatures(FeaturePrior):
    """x_id ~ Normal(s_d mu_kd, s_d^2), independently, with one scale for all classes."""

    uses_features = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FeatureOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.mean = replicas.glorot("mean", sizes.features, sizes.classes)
        self.log_scale = replicas.zeros(sizes.features)

    def log_likelihood(self, inputs: Inputs) -> Tensor:
        # |x / s - mu|^2 = |x / s|^2 - 2 (x / s) mu + |mu|^2, which keeps sparse features sparse.
        scale = (-self.log_scale).exp().unsqueeze(2)
        across = inputs.x.matmul(scale * self.mean)
        length = inputs.squares.matmul(scale.square())
        normaliser = self.log_scale.sum(1).view(-1, 1, 1) + self.sizes.features * math.log(2 * math.pi) / 2
        return across - (length + self.mean.square().sum(1, keepdim=True)) / 2 - normaliser
