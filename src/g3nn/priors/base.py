"""The contract of a label prior p(Y | X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.networks import Head
from g3nn.options import NoOptions, number
from g3nn.outcomes import Classes, Outcome
from g3nn.replicas import Noise, Replicas, Sizes


class LabelPrior(nn.Module, ABC):
    """p(Y | X) = prod_i p(y_i | x_i): what the features of a node alone say about its class."""

    Options: ClassVar[type] = NoOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Classes,)
    """Which outcomes it can answer for; whatever ends in `answer` serves every `Outcome`."""
    uses_features: ClassVar[bool]
    """Whether p(y_i) depends on x_i."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Any = None) -> None:
        super().__init__()
        self.sizes = sizes
        self.head = Head(sizes, replicas)

    def answer(self, scores: Tensor) -> Tensor:
        """(R, n, width) from the scores (R, n, `sizes.scores`) of a network: log_softmax for classes."""
        return self.head(scores)

    @abstractmethod
    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, K): log p(y_i = k | x_i), normalised over k; with another outcome (R, n, width), its answer.

        There is noise while training, None at evaluation.
        """

    def log_joint(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """`log_prob`, and (R, n): log p(x_i) if the prior is a model of the features too, else None."""
        return self.log_prob(inputs, noise), None


@dataclass(frozen=True)
class FeatureOptions:
    temper: float = number(1.0, "power of p(x | y); below 1 features count less", low=0, high=1)


class FeaturePrior(LabelPrior):
    """p(x_i, y_i = k) = p(k) p(x_i | k): a model of the features, and so of the labels.

    What it says about a label is p(k | x_i) by Bayes' rule, and what it says about the features is p(x_i), summed over
    classes. - log p(x_i) joins the loss, so that the joint p(G | X, Y) p(X | Y) p(Y) is bounded as a whole. With many
    features p(k | x_i) is far too sure of itself; `temper` raises p(x | k) to a power.
    """

    Options = FeatureOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FeatureOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or FeatureOptions()
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
