"""Multinomial logistic regression as a prior."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import number
from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.priors.base import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LinearOptions:
    dropout: float = number(0.5, "dropout on the features", low=0, high=0.95)


class LinearPrior(LabelPrior[LinearOptions]):
    """p(y_i | x_i) = softmax(W x_i + b)."""

    Options = LinearOptions
    uses_features = True
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LinearOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.weight = replicas.glorot("weight", sizes.features, sizes.scores)
        self.bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        scores = inputs.x.matmul(self.weight, noise, self.options.dropout) + self.bias.unsqueeze(1)
        return self.answer(scores)
