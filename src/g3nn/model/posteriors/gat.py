"""Graph attention network (Velickovic et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu, relu

from g3nn.base.errors import refuse
from g3nn.base.options import choice, flag, integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import attend, linear
from g3nn.model.inputs import Hop, Inputs
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


@dataclass(frozen=True)
class GATOptions:
    hidden: int = integer(16, "number of hidden units, in total or per head (`hidden_is`)", low=1)
    hidden_is: str = choice("total", ("total", "per-head"), "whether `hidden` counts all heads or each head")
    heads: int = integer(8, "number of attention heads in the first layer", low=1)
    dropout: float = number(0.6, "dropout on the inputs of each layer and on the attention", low=0, high=0.95)
    activation: str = choice("elu", ("elu", "relu"), "activation between the layers; the authors' code uses relu")
    input_dropout: bool = flag(True, "dropout on the features too, as in the original GAT")


class GAT(LabelPosterior[GATOptions]):
    """Two attention layers: h_i = sum_j a_ij W x_j with a_i. = softmax_j leaky_relu(l . W x_i + r . W x_j) + log w_ij.

    The first layer concatenates `heads` heads, the second has one. w_ij is the weight of an edge; that of a node and
    itself is 1.
    """

    Options = GATOptions
    cost = 4.0
    steps = 2
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GATOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
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
            refuse("hidden", hidden, allowed, advice)
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
