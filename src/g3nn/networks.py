"""Network parts shared by priors and posteriors. Parameters, like all parameters, start with a replica dimension."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from g3nn.inputs import Inputs
from g3nn.kernels import linear, rectify
from g3nn.options import integer, number
from g3nn.replicas import Noise, Replicas, Sizes, optional_draw

_REACH = 3.0
"""A node's own score in units of its parameter: weight decay, meant for networks, is then hardly felt by it."""


@dataclass(frozen=True)
class PerceptronOptions:
    hidden: int = integer(16, "number of hidden units", low=1)
    dropout: float = number(0.5, "dropout before each layer", low=0, high=0.95)


class Perceptron(nn.Module):
    """W_2 relu(W_1 x_i + b_1) + b_2, with dropout before either layer: (R, n, K) scores."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions) -> None:
        super().__init__()
        self.options = options
        self.weight1 = replicas.glorot("weight1", sizes.features, options.hidden)
        self.bias1 = replicas.zeros(options.hidden)
        self.weight2 = replicas.glorot("weight2", options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)

    def forward(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        hidden = inputs.x.matmul(self.weight1, noise, self.options.dropout)
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        return linear(hidden, self.weight2) + self.bias2.unsqueeze(1)


class Head(nn.Module):
    """From the scores of a network to an answer in the form of the outcome, such as log-probabilities of classes."""

    def __init__(self, sizes: Sizes, replicas: Replicas) -> None:
        super().__init__()
        self.outcome = sizes.outcome
        start = torch.tensor(self.outcome.start).expand(replicas.size, -1).clone() if self.outcome.start else None
        self.start = None if start is None else nn.Parameter(start, requires_grad=self.outcome.learns_start)
        """(R, T), if the outcome needs it: fixed base rates, or learned log-variances."""

    def forward(self, scores: Tensor) -> Tensor:
        """(R, n, width) from scores (R, n, num_scores)."""
        return self.outcome.answer(scores, self.start)


class NodeScores(nn.Module):
    """Scores of each node's own on top of those of a network, for a posterior that need not be the same function of
    features and graph everywhere. Nodes that were not there in training come last and have none."""

    def __init__(self, sizes: Sizes, replicas: Replicas) -> None:
        super().__init__()
        self.own = replicas.zeros(sizes.nodes, sizes.scores)

    def forward(self, scores: Tensor) -> Tensor:
        missing = scores.shape[1] - self.own.shape[1]
        own = self.own if missing == 0 else nn.functional.pad(self.own, (0, 0, 0, missing))
        return scores + _REACH * own

    def renumber(self, nodes: Tensor, n: int) -> None:
        """The scores of a graph of n nodes, in which those of training are `nodes`; the others have none."""
        own = self.own.new_zeros(self.own.shape[0], n, self.own.shape[2])
        own[:, nodes] = self.own.data
        self.own = nn.Parameter(own)

    def clear(self, where: Tensor) -> None:
        """The scores of a graph whose first nodes are those of training, with none at the nodes `where` (n,)."""
        own = nn.functional.pad(self.own.data, (0, 0, 0, len(where) - self.own.shape[1]))
        self.own = nn.Parameter(own * ~where.view(1, -1, 1), requires_grad=False)

    def put(self, nodes: Tensor, scores: Tensor) -> None:
        """Scores (R, m, scores) of these nodes (m,), on top of those of a network."""
        self.own.data[:, nodes] = scores / _REACH


class LabelInput(nn.Module):
    """Observed labels as inputs, for a posterior q(Y_U | X, Y_L, G) that conditions on them.

    In every training step each observed label is hidden with probability `rate`. A node whose label is shown could read
    its own answer, so `hide` keeps it from learning anything in that step.
    """

    def __init__(self, sizes: Sizes, replicas: Replicas, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.weight = replicas.glorot("labels", sizes.classes, width)

    def forward(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """(R, n, width): V y_i where the label is shown, else 0; and (R, n, 1): where it is, None at evaluation."""
        labels = inputs.observed.expand(self.weight.shape[0], *inputs.observed.shape)
        if noise is None:
            return linear(labels, self.weight), None
        kept = noise.dropout(labels.new_ones(labels.shape[:2]), self.rate).unsqueeze(2) > 0
        return linear(labels * kept, self.weight), kept & inputs.labelled

    @staticmethod
    def hide(answer: Tensor, shown: Tensor | None) -> Tensor:
        """The answer (R, n, K), without gradient at the nodes whose label was shown."""
        return answer if shown is None else torch.where(shown, answer.detach(), answer)


class ReplicaCount(nn.Module):
    """Knows how many replicas there are, for components without parameters of their own."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(replicas.size, 1, 1))

    def forward(self, shared: Tensor) -> Tensor:
        """(R, n, K): the same (n, K) answer for each replica."""
        zero = self.get_buffer("zero")
        return shared.expand(zero.shape[0], *shared.shape)


class BatchNorm(nn.Module):
    """Every column of x (R, n, d) with mean 0 and variance 1 over the nodes, then scaled and shifted.

    While training, statistics are those of the pass; evaluation uses their moving averages.
    """

    momentum = 0.1
    _LEAST_VARIANCE = 1e-5

    def __init__(self, replicas: Replicas, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(replicas.size, width))
        self.shift = replicas.zeros(width)
        self.register_buffer("running_mean", torch.zeros(replicas.size, width))
        self.register_buffer("running_var", torch.ones(replicas.size, width))

    def forward(self, x: Tensor, noise: Noise | None) -> Tensor:
        mean, var = self.get_buffer("running_mean"), self.get_buffer("running_var")
        if noise is not None:
            average, spread = x.mean(1), x.var(1, correction=0)
            mean.lerp_(average.detach(), self.momentum)
            var.lerp_(spread.detach(), self.momentum)
            mean, var = average, spread
        scale = self.gain * (var + self._LEAST_VARIANCE).rsqrt()
        return x * scale.unsqueeze(1) + (self.shift - mean * scale).unsqueeze(1)
