"""Graph Markov neural network (Qu et al., GMNN, 2019): two networks teach each other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import PerceptronOptions, two_layers
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


@dataclass(frozen=True)
class GMNNOptions(PerceptronOptions):
    head_start: int = integer(100, "number of epochs before q starts to learn from p", low=0)
    teaching: float = number(1.0, "weight of what q learns from p", low=0)


class GMNN(LabelPosterior[GMNNOptions]):
    """q(y_i | X, G), a network on features, and p(y_i | y of the neighbours), a network on labels.

    M-step: p learns to predict the labels of q from those of the neighbours. E-step: q learns the answers of p at
    unlabelled nodes. Both steps are taken in every epoch, each with the other network fixed, while the original
    alternates between phases of many epochs. p learns from the first epoch on. Early stopping looks at q.
    """

    Options = GMNNOptions
    reads_labels = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GMNNOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        hidden, K = self.options.hidden, sizes.classes
        layers = two_layers(replicas, sizes.features, hidden, K)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers
        layers = two_layers(replicas, K, hidden, K, "label_")
        self.label_weight1, self.label_bias1, self.label_weight2, self.label_bias2 = layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        first = inputs.x.matmul(self.weight1, noise, self.options.dropout)
        return self._convolved(first, self.bias1, self.weight2, self.bias2, inputs, noise)

    def own_loss(self, log_q: Tensor, inputs: Inputs, noise: Noise) -> Tensor:
        believed = torch.where(inputs.labelled, inputs.observed, log_q.detach().exp())
        first = linear(optional_dropout(noise, believed, self.options.dropout), self.label_weight1)
        log_p = self._convolved(first, self.label_bias1, self.label_weight2, self.label_bias2, inputs, noise)
        taught = (log_p.detach().exp() * log_q).sum(2).index_select(1, inputs.unlabelled)
        begun = torch.as_tensor(noise.step, device=log_q.device) >= self.options.head_start
        return -(believed * log_p).sum(2).mean(1) - self.options.teaching * taught.mean(1) * begun

    def _convolved(
        self, first: Tensor, bias1: Tensor, weight2: Tensor, bias2: Tensor, inputs: Inputs, noise: Noise | None
    ) -> Tensor:
        """(R, n, K): log softmax(A relu(A first + b_1) W_2 + b_2)."""
        hidden = rectify(inputs.adjacency.matmul(first), bias1, optional_draw(noise, self.options.dropout))
        scores = inputs.adjacency.matmul(linear(hidden, weight2)) + bias2.unsqueeze(1)
        return scores.log_softmax(2)
