"""The priors of g3nn: a perceptron (the paper's), logistic regression, uniform, given, and models of the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.base.options import number
from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Perceptron, PerceptronOptions, ReplicaCount
from g3nn.model.priors.base import FeatureOptions, FeaturePrior, LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes


class UniformPrior(LabelPrior):
    """p(y_i = k | x_i) = 1 / K; for other outcomes, the distribution of the training labels."""

    uses_features: ClassVar[bool] = False
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Any = None) -> None:
        super().__init__(sizes, replicas)
        self.each = ReplicaCount(replicas)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.each(inputs.observed.new_zeros(inputs.n, self.sizes.scores)))


class GivenPrior(LabelPrior):
    """p(y_i | x_i) is the belief about node i that came with the task, the same for all replicas: nothing to learn."""

    uses_features: ClassVar[bool] = True
    uses_beliefs: ClassVar[bool] = True
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Any = None) -> None:
        super().__init__(sizes, replicas)
        del self.head  # It makes answers of scores, of which there are none.
        self.each = ReplicaCount(replicas)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        assert inputs.beliefs is not None
        return self.each(inputs.beliefs)


@dataclass(frozen=True)
class LinearOptions:
    dropout: float = number(0.5, "dropout on the features", low=0, high=0.95)


class LinearPrior(LabelPrior):
    """p(y_i | x_i) = softmax(W x_i + b)."""

    Options = LinearOptions
    uses_features: ClassVar[bool] = True
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LinearOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or LinearOptions()
        self.weight = replicas.glorot("weight", sizes.features, sizes.scores)
        self.bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        scores = inputs.x.matmul(self.weight, noise, self.options.dropout) + self.bias.unsqueeze(1)
        return self.answer(scores)


class MLPPrior(LabelPrior):
    """p(y_i | x_i) = softmax(W_2 relu(W_1 x_i + b_1) + b_2), with dropout before each layer."""

    Options = PerceptronOptions
    uses_features: ClassVar[bool] = True
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.network = Perceptron(sizes, replicas, options or PerceptronOptions())

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.network(inputs, noise))


class BernoulliFeatures(FeaturePrior):
    """x_id > 0 with probability sigmoid(b_d + theta_kd), independently: which words a text contains, not how often."""

    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FeatureOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.theta = replicas.glorot("theta", sizes.features, sizes.classes)
        self.base = replicas.zeros(sizes.features)

    def log_likelihood(self, inputs: Inputs) -> Tensor:
        odds = self.base.unsqueeze(2) + self.theta
        return inputs.presence.matmul(odds) + logsigmoid(-odds).sum(1, keepdim=True)


class GaussianFeatures(FeaturePrior):
    """x_id ~ Normal(s_d mu_kd, s_d^2), independently, with one scale for all classes."""

    uses_features: ClassVar[bool] = True

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
