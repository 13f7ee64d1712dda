"""The contract of a label prior p(Y | X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.options import NoOptions
from g3nn.replicas import Noise, Replicas, Sizes


class LabelPrior(nn.Module, ABC):
    """p(Y | X) = prod_i p(y_i | x_i): what the features of a node alone say about its class."""

    Options: ClassVar[type] = NoOptions
    uses_features: ClassVar[bool]
    """Whether p(y_i) depends on x_i."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Any = None) -> None:
        super().__init__()
        self.sizes = sizes

    @abstractmethod
    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, K): log p(y_i = k | x_i), normalised over k. There is noise while training, None at evaluation."""

    def log_joint(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """`log_prob`, and (R, n): log p(x_i) if the prior is a model of the features too, else None."""
        return self.log_prob(inputs, noise), None
