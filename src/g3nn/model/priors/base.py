"""The contract of a label prior p(Y | X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from g3nn.base.options import number
from g3nn.model.components import Component, Declared
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Head
from g3nn.model.replicas import Noise, Replicas, Sizes


class LabelPrior(Component[Declared], ABC):
    """p(Y | X) = prod_i p(y_i | x_i): what the features of a node say about its label, without the graph."""

    uses_features: ClassVar[bool]
    """Whether p(y_i) depends on x_i."""
    uses_beliefs: ClassVar[bool] = False
    """Whether it needs the beliefs of a task."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Declared | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.head = Head(sizes, replicas)

    def answer(self, scores: Tensor) -> Tensor:
        """(R, n, width) from the scores (R, n, `sizes.scores`) of a network: log_softmax for classes."""
        return self.head(scores)

    @abstractmethod
    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, K): log p(y_i = k | x_i), normalised over k; with another outcome (R, n, width), its answer.

        noise: given in training, None at evaluation.
        """

    def log_joint(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """`log_prob`, and log p(x_i) as (R, n) if the prior models the features too, else None."""
        return self.log_prob(inputs, noise), None


@dataclass(frozen=True)
class FeatureOptions:
    temper: float = number(1.0, "power of p(x | y); below 1, features have less influence", low=0, high=1)


class FeaturePrior(LabelPrior[FeatureOptions]):
    """p(x_i, y_i = k) = p(k) p(x_i | k): a model of features and labels.

    p(k | x_i) follows from Bayes' rule, p(x_i) by summing over classes. - log p(x_i) enters the loss, so that the bound
    is on the whole joint p(G | X, Y) p(X | Y) p(Y). With many features p(k | x_i) is overconfident; `temper` raises
    p(x | k) to a power.
    """

    Options = FeatureOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FeatureOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.share = replicas.zeros(sizes.classes)
        """(R, K): p(k) is the softmax of it."""

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
