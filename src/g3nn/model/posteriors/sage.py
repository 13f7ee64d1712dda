"""Networks that keep what neighbours say apart from a node itself, by distance or neighbour, and attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import elu, relu

from g3nn.base.errors import InputError, Problem
from g3nn.base.options import choice, flag, integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import attend, linear, rectify
from g3nn.model.inputs import Hop, Inputs
from g3nn.model.networks import HiddenLayers, OwnVectors, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


@dataclass(frozen=True)
class SageOptions(PerceptronOptions):
    layers: int = integer(2, "number of layers", low=2, high=16)


class Sage(LabelPosterior):
    """h_i = relu(W_1 x_i + V_1 mean_j x_j + b_1), q_i = softmax(W_2 h_i + V_2 mean_j h_j + b_2), j the neighbours of i.

    More layers are like the first. A node's own features have separate weights, which helps on heterophilous graphs.
    """

    Options = SageOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: SageOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or SageOptions()
        self.own1 = replicas.glorot("own1", sizes.features, self.options.hidden)
        self.neighbours1 = replicas.glorot("neighbours1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.own2 = replicas.glorot("own2", self.options.hidden, sizes.scores)
        self.neighbours2 = replicas.glorot("neighbours2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)
        self.between = HiddenLayers(replicas, self.options.hidden, self.options.layers - 2, ("own", "neighbours"))

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout
        first, *middle, last = inputs.hops(self.steps)
        heard = first.neighbour_mean.matmul(inputs.x.matmul(self.neighbours1, noise, rate))
        hidden = first.own(inputs.x).matmul(self.own1, noise, rate) + heard
        hidden = rectify(hidden, self.bias1, optional_draw(noise, rate))
        for layer, hop in enumerate(middle):
            own, neighbours, bias = self.between(layer)
            heard = hop.neighbour_mean.matmul(linear(hidden, neighbours))
            hidden = rectify(linear(hop.own(hidden), own) + heard, bias, optional_draw(noise, rate))
        heard = last.neighbour_mean.matmul(linear(hidden, self.neighbours2))
        scores = linear(last.own(hidden), self.own2) + heard
        return self.answer(scores + self.bias2.unsqueeze(1))


@dataclass(frozen=True)
class HopsOptions:
    hidden: int = integer(16, "number of hidden units for each distance", low=1)
    dropout: float = number(0.5, "dropout before each layer", low=0, high=0.95)


class Hops(LabelPosterior):
    """h_i = relu([W_0 x_i, W_1 mean_j x_j, W_2 mean_j mean_k x_k] + b), q_i = softmax(W h_i + b'), j the neighbours of
    i and k those of j.

    What a node, its neighbours and their neighbours say is never added up, so they may mean different things, as on
    heterophilous graphs.
    """

    Options = HopsOptions
    steps: ClassVar[int | None] = 2
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: HopsOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or HopsOptions()
        self.weight0 = replicas.glorot("weight0", sizes.features, self.options.hidden)
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.weight2 = replicas.glorot("weight2", sizes.features, self.options.hidden)
        self.bias = replicas.zeros(3 * self.options.hidden)
        self.out = replicas.glorot("out", 3 * self.options.hidden, sizes.scores)
        self.out_bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, (far_off, close) = self.options.dropout, inputs.hops(2)
        around = far_off.own(inputs.x)
        own = close.own(around).matmul(self.weight0, noise, rate)
        near = close.neighbour_mean.matmul(around.matmul(self.weight1, noise, rate))
        far = far_off.neighbour_mean.matmul(inputs.x.matmul(self.weight2, noise, rate))
        far = close.neighbour_mean.matmul(far)
        hidden = rectify(torch.cat([own, near, far], dim=2), self.bias, optional_draw(noise, rate))
        return self.answer(linear(hidden, self.out) + self.out_bias.unsqueeze(1))


class Linkx(LabelPosterior):
    """h_i = relu([W_x x_i, mean_j e_j] + b), q_i = softmax(W_o relu(W_m h_i + b_m) + b_o), j the neighbours of i.

    e_j is learned for each node j, so mean_j e_j is a linear layer on row i of the adjacency matrix divided by the
    degree; its dropout drops edges. A node that training did not know has e_j = 0, but hears its neighbours.
    """

    Options = PerceptronOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: PerceptronOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or PerceptronOptions()
        hidden = self.options.hidden
        self.features = replicas.glorot("features", sizes.features, hidden)
        self.vectors = OwnVectors(replicas.glorot("vectors", sizes.nodes, hidden))
        self.bias = replicas.zeros(2 * hidden)
        self.middle = replicas.glorot("middle", 2 * hidden, hidden)
        self.middle_bias = replicas.zeros(hidden)
        self.out = replicas.glorot("out", hidden, sizes.scores)
        self.out_bias = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout
        own = inputs.x.matmul(self.features, noise, rate)
        heard = inputs.neighbour_mean.matmul(self.vectors.of(inputs.n), optional_draw(noise, rate))
        hidden = rectify(torch.cat([own, heard], dim=2), self.bias, optional_draw(noise, rate))
        hidden = rectify(linear(hidden, self.middle), self.middle_bias, optional_draw(noise, rate))
        return self.answer(linear(hidden, self.out) + self.out_bias.unsqueeze(1))


@dataclass(frozen=True)
class GATOptions:
    hidden: int = integer(16, "number of hidden units, in total or per head (`hidden_is`)", low=1)
    hidden_is: str = choice("total", ("total", "per-head"), "whether `hidden` counts all heads or each head")
    heads: int = integer(8, "number of attention heads in the first layer", low=1)
    dropout: float = number(0.6, "dropout on the inputs of each layer and on the attention", low=0, high=0.95)
    activation: str = choice("elu", ("elu", "relu"), "activation between the layers; the authors' code uses relu")
    input_dropout: bool = flag(True, "dropout on the features too, as in the original GAT")


class GAT(LabelPosterior):
    """Two attention layers: h_i = sum_j a_ij W x_j with a_i. = softmax_j leaky_relu(l . W x_i + r . W x_j) + log w_ij.

    The first layer concatenates `heads` heads, the second has one. w_ij is the weight of an edge; that of a node and
    itself is 1.
    """

    Options = GATOptions
    steps: ClassVar[int | None] = 2
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GATOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GATOptions()
        H, K = self.options.heads, sizes.scores
        F = self._units_per_head()
        self.weight1 = replicas.glorot("weight1", sizes.features, H * F)
        self.left1 = replicas.glorot("left1", F, 1, H, F)
        self.right1 = replicas.glorot("right1", F, 1, H, F)
        self.bias1 = replicas.zeros(H * F)
        self.weight2 = replicas.glorot("weight2", H * F, K)
        self.left2 = replicas.glorot("left2", K, 1, 1, K)
        self.right2 = replicas.glorot("right2", K, 1, 1, K)
        self.bias2 = replicas.zeros(K)

    def _units_per_head(self) -> int:
        hidden, heads = self.options.hidden, self.options.heads
        if self.options.hidden_is == "per-head":
            return hidden
        if hidden % heads:
            advice = "Change hidden or heads, or set hidden_is='per-head'."
            allowed = f"a multiple of heads ({heads}), since it counts all heads"
            raise InputError([Problem("hidden", str(hidden), allowed, advice)])
        return hidden // heads

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, (first, second) = self.options.dropout, inputs.hops(2)
        x = inputs.x.matmul(self.weight1, noise, rate if self.options.input_dropout else 0.0)
        hidden = self._attention(first, x, self.left1, self.right1, noise) + self.bias1.unsqueeze(1)
        hidden = elu(hidden) if self.options.activation == "elu" else relu(hidden)
        x = linear(optional_dropout(noise, hidden, rate), self.weight2)
        scores = self._attention(second, x, self.left2, self.right2, noise) + self.bias2.unsqueeze(1)
        return self.answer(scores)

    def _attention(self, hop: Hop, x: Tensor, left: Tensor, right: Tensor, noise: Noise | None) -> Tensor:
        """(R, n, H * F) from x (R, n, H * F) and the two halves (R, H, F) of the attention vector."""
        R, n, width = x.shape
        draw = optional_draw(noise, self.options.dropout)
        here, there = (linear(x, _by_head(half)) for half in (left, right))
        x = x.view(R, n, left.shape[1], -1)
        heard = attend(hop.neighbours, x, here, there, draw=draw, log_weight=hop.log_weights)
        return hop.own(heard.view(R, n, width))


def _by_head(vectors: Tensor) -> Tensor:
    """(R, H * F, H) from (R, H, F): column h holds the vector of head h in the rows of that head, zeros elsewhere."""
    R, H, F = vectors.shape
    own = torch.eye(H, dtype=vectors.dtype, device=vectors.device).view(1, H, 1, H)
    return (vectors.unsqueeze(3) * own).view(R, H * F, H)
