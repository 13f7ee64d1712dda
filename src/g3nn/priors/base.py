"""The contract of a label prior p(Y | X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.networks import Head
from g3nn.options import NoOptions
from g3nn.replicas import Noise, Replicas, Sizes


class LabelPrior(nn.Module, ABC):
    """p(Y | X) = prod_i p(y_i | x_i): what the features of a node alone say about its class."""

    Options: ClassVar[type] = NoOptions
    outcomes: ClassVar[tuple[str, ...]] = ("categorical",)
    """Which outcomes it can answer for; whatever ends in `answer` serves `EVERY_OUTCOME`."""
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
