"""Generative features: p(X | Y) as the third factor of the joint p(G | X, Y) p(X | Y) p(Y)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.inputs import Inputs
from g3nn.options import number
from g3nn.priors.base import LabelPrior
from g3nn.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class NaiveBayesOptions:
    temper: float = number(1.0, "power of p(x | y); below 1 features count less", low=0, high=1)


class NaiveBayes(LabelPrior):
    """p(x_i, y_i = k) = p(k) prod_d p(x_id | k): features are independent given the class.

    What it says about a label is p(k | x_i) by Bayes' rule, and what it says about the features is p(x_i), summed over
    classes. - log p(x_i) joins the loss, so that E_q log p(X | Y) p(Y) is bounded as a whole. With many features
    p(k | x_i) is far too sure of itself; `temper` raises p(x | k) to a power.
    """

    Options = NaiveBayesOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NaiveBayesOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or NaiveBayesOptions()
        self.share = replicas.zeros(sizes.classes)
        """(R, K): p(k) = softmax of it."""

    @abstractmethod
    def log_likelihood(self, inputs: Inputs) -> Tensor:
        """(R, n, K): log p(x_i | k)."""

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self._joint(inputs).log_softmax(2)

    def log_joint(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        joint = self._joint(inputs)
        evidence = joint.logsumexp(2)
        return joint - evidence.unsqueeze(2), evidence

    def _joint(self, inputs: Inputs) -> Tensor:
        return self.options.temper * self.log_likelihood(inputs) + self.share.log_softmax(1).unsqueeze(1)


class BernoulliFeatures(NaiveBayes):
    """x_id > 0 with probability sigmoid(b_d + theta_kd): which words a text has, not how often."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NaiveBayesOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.theta = replicas.glorot("theta", sizes.features, sizes.classes)
        self.base = replicas.zeros(sizes.features)

    def log_likelihood(self, inputs: Inputs) -> Tensor:
        odds = self.base.unsqueeze(2) + self.theta
        return inputs.presence.matmul(odds) + logsigmoid(-odds).sum(1, keepdim=True)


class GaussianFeatures(NaiveBayes):
    """x_id ~ Normal(mu_kd, s_d^2), with a variance that all classes share."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NaiveBayesOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.mean = replicas.glorot("mean", sizes.features, sizes.classes)
        """(R, d, K), in units of s_d."""
        self.log_scale = replicas.zeros(sizes.features)

    def log_likelihood(self, inputs: Inputs) -> Tensor:
        # |x / s - mu|^2 = |x / s|^2 - 2 (x / s) mu + |mu|^2, so that sparse features stay sparse.
        scale = (-self.log_scale).exp().unsqueeze(2)
        across = inputs.x.matmul(scale * self.mean)
        length = inputs.squares.matmul(scale.square())
        normaliser = self.log_scale.sum(1).view(-1, 1, 1) + self.sizes.features * math.log(2 * math.pi) / 2
        return across - (length + self.mean.square().sum(1, keepdim=True)) / 2 - normaliser
