"""Graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from g3nn.base.options import flag, integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import HiddenLayers, LabelInput, Perceptron, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


class MLPPosterior(LabelPosterior):
    """q(y_i | x_i): two layers with dropout before each."""

    Options = PerceptronOptions
    uses_graph: ClassVar[bool] = False
    steps: ClassVar[int | None] = 0
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.network = Perceptron(sizes, replicas, options or PerceptronOptions())

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.answer(self.network(inputs, noise))


@dataclass(frozen=True)
class GCNOptions(PerceptronOptions):
    layers: int = integer(2, "number of layers", low=2, high=16)
    input_dropout: bool = flag(True, "dropout on the features too, as in the original GCN; the authors' code has none")


class GCN(LabelPosterior):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2) with A = D^-1/2 (A + I) D^-1/2; more layers are like the first."""

    Options = GCNOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GCNOptions()
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.weight2 = replicas.glorot("weight2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)
        self.between = HiddenLayers(replicas, self.options.hidden, self.options.layers - 2, ("weight",))

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout if self.options.input_dropout else 0.0
        first, *middle, last = inputs.hops(self.steps)
        hidden = first.adjacency.matmul(inputs.x.matmul(self.weight1, noise, rate))
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        for layer, hop in enumerate(middle):
            weight, bias = self.between(layer)
            hidden = hop.adjacency.matmul(linear(hidden, weight))
            hidden = rectify(hidden, bias, optional_draw(noise, self.options.dropout))
        scores = last.adjacency.matmul(linear(hidden, self.weight2))
        return self.answer(scores + self.bias2.unsqueeze(1))


@dataclass(frozen=True)
class LabelGCNOptions(PerceptronOptions):
    label_dropout: float = number(0.5, "share of observed labels that are hidden in each step", low=0, high=0.95)


class LabelGCN(LabelPosterior):
    """q(Y_U | X, Y_L, G) = softmax(A relu(A (X W_1 + Y_L V) + b_1) W_2 + b_2).

    The paper writes its posterior in this form but then leaves out Y_L. In training some observed labels are hidden,
    and only the nodes whose own label is hidden contribute to the loss.
    """

    Options = LabelGCNOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LabelGCNOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or LabelGCNOptions()
        self.labels = LabelInput(sizes, replicas, self.options.hidden, self.options.label_dropout)
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.weight2 = replicas.glorot("weight2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        labels, shown = self.labels(inputs, noise)
        hidden = inputs.adjacency.matmul(inputs.x.matmul(self.weight1, noise, self.options.dropout) + labels)
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        scores = inputs.adjacency.matmul(linear(hidden, self.weight2)) + self.bias2.unsqueeze(1)
        return LabelInput.hide(self.answer(scores), shown)


@dataclass(frozen=True)
class GCNIIOptions:
    hidden: int = integer(64, "number of hidden units", low=1)
    layers: int = integer(16, "number of convolutions", low=1, high=128)
    dropout: float = number(0.6, "dropout before each layer", low=0, high=0.95)
    residual: float = number(0.1, "share of the first hidden layer in each convolution", low=0, high=1)
    decay: float = number(0.5, "layer l mixes its weights in with share log(1 + decay / l)", low=0)


class GCNII(LabelPosterior):
    """H_l = relu(((1 - a) A H_{l-1} + a H_0)((1 - b_l) I + b_l W_l)), H_0 = relu(X W_in + b), b_l = log(1 + decay / l).

    q = softmax(H_T W_out + b). The residual connection to H_0 keeps many layers from oversmoothing.
    """

    Options = GCNIIOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNIIOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GCNIIOptions()
        hidden = self.options.hidden
        self.weight_in = replicas.glorot("weight_in", sizes.features, hidden)
        self.bias_in = replicas.zeros(hidden)
        self.weights = replicas.glorot("weights", hidden, hidden, self.options.layers, hidden, hidden)
        self.weight_out = replicas.glorot("weight_out", hidden, sizes.scores)
        self.bias_out = replicas.zeros(sizes.scores)

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, a = self.options.dropout, self.options.residual
        first = rectify(inputs.x.matmul(self.weight_in, noise, rate), self.bias_in, None)
        hidden = first
        for layer, hop in enumerate(inputs.hops(self.steps)):
            share = math.log1p(self.options.decay / (layer + 1))
            first = hop.own(first)
            heard = (1 - a) * hop.adjacency.matmul(optional_dropout(noise, hidden, rate)) + a * first
            hidden = torch.relu((1 - share) * heard + share * linear(heard, self.weights[:, layer]))
        hidden = optional_dropout(noise, hidden, rate)
        return self.answer(linear(hidden, self.weight_out) + self.bias_out.unsqueeze(1))


@dataclass(frozen=True)
class GMNNOptions(PerceptronOptions):
    head_start: int = integer(100, "number of epochs before q starts to learn from p", low=0)
    teaching: float = number(1.0, "weight of what q learns from p", low=0)


class GMNN(LabelPosterior):
    """q(y_i | X, G), a network on features, and p(y_i | y of the neighbours), a network on labels.

    M-step: p learns to predict the labels of q from those of the neighbours. E-step: q learns the answers of p at
    unlabelled nodes. Both steps are taken in every epoch, each with the other network fixed, while the original
    alternates between phases of many epochs. p learns from the first epoch on. Early stopping looks at q.
    """

    Options = GMNNOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GMNNOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GMNNOptions()
        hidden, K = self.options.hidden, sizes.classes
        self.weight1 = replicas.glorot("weight1", sizes.features, hidden)
        self.bias1 = replicas.zeros(hidden)
        self.weight2 = replicas.glorot("weight2", hidden, K)
        self.bias2 = replicas.zeros(K)
        self.label_weight1 = replicas.glorot("label_weight1", K, hidden)
        self.label_bias1 = replicas.zeros(hidden)
        self.label_weight2 = replicas.glorot("label_weight2", hidden, K)
        self.label_bias2 = replicas.zeros(K)

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
