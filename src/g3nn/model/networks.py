"""Network parts that priors and posteriors share. As everywhere, parameters have a leading replica dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from g3nn.base.options import integer, number
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw

_REACH = 3.0
"""A node's own score is this many times its parameter, so that weight decay, meant for networks, hardly affects it."""


@dataclass(frozen=True)
class PerceptronOptions:
    hidden: int = integer(16, "number of hidden units", low=1)
    dropout: float = number(0.5, "dropout before each layer", low=0, high=0.95)


class HiddenLayers(nn.Module):
    """Square weights and a bias for each of some layers between the first and the last; there may be none."""

    def __init__(self, replicas: Replicas, hidden: int, count: int, names: Sequence[str]) -> None:
        super().__init__()
        self._names = (*names, "bias") if count else ()
        for name in names if count else ():
            drawn = replicas.within("between").glorot(name, hidden, hidden, count, hidden, hidden)
            self.register_parameter(name, drawn)
        if count:
            self.bias = replicas.zeros(count, hidden)

    def forward(self, layer: int) -> tuple[Tensor, ...]:
        """The weights by their names, (R, hidden, hidden) each, and the bias (R, hidden)."""
        return tuple(getattr(self, name)[:, layer] for name in self._names)


def two_layers(
    replicas: Replicas, width: int, hidden: int, scores: int, prefix: str = ""
) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter, nn.Parameter]:
    """Weights and biases of a hidden layer, and of one that makes scores of it."""
    first = replicas.glorot(f"{prefix}weight1", width, hidden), replicas.zeros(hidden)
    return *first, replicas.glorot(f"{prefix}weight2", hidden, scores), replicas.zeros(scores)


class _TwoLayers(nn.Module):
    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions) -> None:
        super().__init__()
        self.options = options
        layers = two_layers(replicas, sizes.features, options.hidden, sizes.scores)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers


class Perceptron(_TwoLayers):
    """W_2 relu(W_1 x_i + b_1) + b_2, with dropout before each layer: (R, n, K) scores."""

    def forward(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        hidden = inputs.x.matmul(self.weight1, noise, self.options.dropout)
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        return linear(hidden, self.weight2) + self.bias2.unsqueeze(1)


class Convolutions(_TwoLayers):
    """A relu(A X W_1 + b_1) W_2 + b_2 with any propagation A, and dropout before each layer: (R, n, K) scores."""

    def forward(self, inputs: Inputs, propagated: Callable[[Tensor], Tensor], noise: Noise | None) -> Tensor:
        hidden = propagated(inputs.x.matmul(self.weight1, noise, self.options.dropout))
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        return propagated(linear(hidden, self.weight2)) + self.bias2.unsqueeze(1)


class Head(nn.Module):
    """Turns the scores of a network into an answer in the form of the outcome, such as log-probabilities of classes."""

    def __init__(self, sizes: Sizes, replicas: Replicas) -> None:
        super().__init__()
        self.outcome = sizes.outcome
        start = torch.tensor(self.outcome.start).expand(replicas.size, -1).clone() if self.outcome.start else None
        self.start = None if start is None else nn.Parameter(start, requires_grad=self.outcome.learns_start)
        """(R, T) if the outcome needs it: fixed base rates or learned log-variances."""

    def forward(self, scores: Tensor) -> Tensor:
        """(R, n, width) from scores (R, n, num_scores)."""
        return self.outcome.answer(scores, self.start)


class OwnVectors(nn.Module):
    """A learned vector for each node of the graph of training. New nodes come last and have zeros."""

    def __init__(self, start: nn.Parameter) -> None:
        """start: (R, n, width)"""
        super().__init__()
        self.own = start

    def of(self, n: int) -> Tensor:
        """(R, n, width): those of a graph of n nodes, of which the first are those of training."""
        new_nodes = n - self.own.shape[1]
        return self.own if new_nodes == 0 else nn.functional.pad(self.own, (0, 0, 0, new_nodes))

    def renumber(self, nodes: Tensor, n: int) -> None:
        """Take over those of a graph of n nodes, in which those of training are `nodes`; the others have zeros."""
        own = self.own.new_zeros(self.own.shape[0], n, self.own.shape[2])
        own[:, nodes.to(own.device)] = self.own.data
        self.own = nn.Parameter(own)

    def clear(self, where: Tensor) -> None:
        """Take over those of a graph of n nodes, with zeros at the nodes `where` (n,)."""
        self.own = nn.Parameter(self.of(len(where)).detach() * ~where.view(1, -1, 1), requires_grad=False)


class NodeScores(OwnVectors):
    """Adds a learned score for each node to those of a network, so that q is no longer the same function of features
    and graph at every node."""

    def __init__(self, sizes: Sizes, replicas: Replicas) -> None:
        super().__init__(replicas.zeros(sizes.nodes, sizes.scores))

    def forward(self, scores: Tensor) -> Tensor:
        return scores + _REACH * self.of(scores.shape[1])

    def put(self, nodes: Tensor, scores: Tensor) -> None:
        """Set the scores (R, m, scores) that are added for these nodes (m,)."""
        self.own.data[:, nodes] = scores / _REACH


class LabelInput(nn.Module):
    """Observed labels as inputs, for a posterior q(Y_U | X, Y_L, G) that conditions on them.

    In every training step each observed label is hidden with probability `rate`. A node whose label is shown could
    copy it as its answer, so `hide` stops its gradient in that step.
    """

    def __init__(self, sizes: Sizes, replicas: Replicas, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.weight = replicas.glorot("labels", sizes.classes, width)

    def forward(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """(R, n, width): V y_i where the label is shown, else 0; and (R, n, 1): whether it is, None at evaluation."""
        labels = inputs.observed.expand(self.weight.shape[0], *inputs.observed.shape)
        if noise is None:
            return linear(labels, self.weight), None
        kept = noise.dropout(labels.new_ones(labels.shape[:2]), self.rate).unsqueeze(2) > 0
        return linear(labels * kept, self.weight), kept & inputs.labelled

    @staticmethod
    def hide(answer: Tensor, shown: Tensor | None) -> Tensor:
        """The answer (R, n, K), without a gradient at nodes whose label was shown."""
        return answer if shown is None else torch.where(shown, answer.detach(), answer)


class ReplicaCount(nn.Module):
    """Stores the number of replicas, for components without parameters."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(replicas.size, 1, 1))

    def forward(self, shared: Tensor) -> Tensor:
        """(R, n, K): the same answer (n, K) for each replica."""
        zero = self.get_buffer("zero")
        return shared.expand(zero.shape[0], *shared.shape)


class BatchNorm(nn.Module):
    """Normalises every column of x (R, n, d) to mean 0 and variance 1 over the nodes, then scales and shifts it.

    Training uses the statistics of the current pass; evaluation uses their moving averages.
    """

    moving_buffers: ClassVar[tuple[str, ...]] = ("running_mean", "running_var")
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


def moving_buffers(model: nn.Module) -> dict[str, Tensor]:
    """The buffers, by name, that the modules of a model declare in `moving_buffers`: those that change in the forward
    pass, while parameters change only after it."""
    return {
        f"{path}.{name}": module.get_buffer(name)
        for path, module in model.named_modules()
        for name in getattr(module, "moving_buffers", ())
    }
