"""Random propagation (Feng et al., GRAND, 2020): drop whole nodes and average several orders of neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import choice, flag, integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import BatchNorm, LabelInput, two_layers
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


@dataclass(frozen=True)
class GrandOptions:
    hidden: int = integer(32, "number of hidden units", low=1)
    order: int = integer(8, "number of propagation steps", low=0)
    node_dropout: float = number(0.5, "share of nodes whose features are all dropped", low=0, high=0.95)
    isolated_share: float = number(0.0, "share of nodes that are treated as isolated in each step", low=0, high=0.95)
    feature_dropout: float = number(0.5, "dropout on the features", low=0, high=0.95)
    dropout: float = number(0.5, "dropout on the hidden units", low=0, high=0.95)
    travelling: str = choice(
        "hidden",
        ("hidden", "features"),
        "propagate X W_1, which is fast, or X, with dropout after propagation",
    )
    normalise: bool = flag(False, "batch normalisation of what is propagated and of the hidden units")
    label_inputs: bool = flag(False, "propagate observed labels too, some of them hidden in each step")
    label_dropout: float = number(0.5, "share of observed labels that are hidden in each step", low=0, high=0.95)


class Grand(LabelPosterior[GrandOptions]):
    """q = softmax(W_2 relu(P W_1 + b_1) + b_2) with P = 1 / (T + 1) sum_t A^t M X: M drops whole nodes' features.

    Each noisy pass drops a different half of the nodes, so that q cannot rely on single neighbours. Train it with
    `samples` > 1 and a `consistency_weight`, which pulls the answers of several passes together.

    With `isolated_share`, some nodes of each pass see only their own features. Consistency with the other passes
    teaches the network to answer for isolated nodes.

    Propagation is linear, so it can run on M X W_1, which is much narrower than X. The original propagates X and drops
    single features of P; that noise is not averaged over neighbours, which regularises more but costs more time.
    """

    Options = GrandOptions
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GrandOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        if self.options.label_inputs:
            self.labels = LabelInput(sizes, replicas, self.options.hidden, self.options.label_dropout)
        layers = two_layers(replicas, sizes.features, self.options.hidden, sizes.scores)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers
        if self.options.normalise:
            arriving = sizes.features if self.options.travelling == "features" else self.options.hidden
            self.norm1 = BatchNorm(replicas, arriving)
            self.norm2 = BatchNorm(replicas, self.options.hidden)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        shown = None
        first = self._first(inputs, noise)
        if self.options.label_inputs:
            labels, shown = self.labels(inputs, noise)
            first = first + inputs.mixed_orders(labels, self.options.order)
        answer = self.answer(linear(self._hidden(first, noise), self.weight2) + self.bias2.unsqueeze(1))
        return LabelInput.hide(answer, shown)

    def _first(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, hidden): P W_1."""
        rate = self.options.feature_dropout
        R = self.weight1.shape[0]
        kept = self._kept_nodes(R, inputs, noise)
        if self.options.travelling == "features":
            if noise is None:
                arrived = inputs.mixed_features(self.options.order)
            else:
                arrived = self._arrived(inputs.x.dense().unsqueeze(0), kept, inputs, noise)
            arrived = arrived.expand(R, -1, -1)
            if self.options.normalise:
                arrived = self.norm1(arrived, noise)
            return linear(optional_dropout(noise, arrived, rate), self.weight1)
        arrived = self._arrived(inputs.x.matmul(self.weight1, noise, rate), kept, inputs, noise)
        return self.norm1(arrived, noise) if self.options.normalise else arrived

    def _arrived(self, sent: Tensor, kept: Tensor | None, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, h): `sent` after propagation, or unchanged at nodes that are treated as isolated.

        sent: (R, n, h), or (1, n, h) if all replicas send the same; the result is then (1, n, h) without noise.
        """
        mixed = inputs.mixed_orders(sent if kept is None else sent * kept, self.options.order)
        if noise is None or self.options.isolated_share == 0:
            return mixed
        everyone = inputs.targets.scale.new_ones(self.weight1.shape[0], inputs.n)
        linked = noise.dropout(everyone, self.options.isolated_share) > 0
        return torch.where(linked.unsqueeze(2), mixed, sent)

    def _hidden(self, first: Tensor, noise: Noise | None) -> Tensor:
        """(R, n, hidden): after rectifier and dropout."""
        if not self.options.normalise:
            return rectify(first, self.bias1, optional_draw(noise, self.options.dropout))
        hidden: Tensor = self.norm2(rectify(first, self.bias1, None), noise)
        return optional_dropout(noise, hidden, self.options.dropout)

    def _kept_nodes(self, R: int, inputs: Inputs, noise: Noise | None) -> Tensor | None:
        """(R, n, 1): 0 for dropped nodes, above 1 for the others; None if no node is dropped."""
        if noise is None or self.options.node_dropout == 0:
            return None
        whole = inputs.targets.scale.new_ones(R, inputs.n)
        return noise.dropout(whole, self.options.node_dropout).unsqueeze(2)
