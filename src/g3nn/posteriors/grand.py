"""Random propagation (Feng et al., GRAND, 2020): whole nodes drop out, several orders of neighbours are averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.kernels import linear, rectify
from g3nn.networks import LabelInput
from g3nn.options import flag, integer, number
from g3nn.outcomes import EVERY_OUTCOME
from g3nn.posteriors.base import LabelPosterior
from g3nn.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class GrandOptions:
    hidden: int = integer(32, "number of hidden units", low=1)
    order: int = integer(8, "how many steps the features travel", low=0)
    node_dropout: float = number(0.5, "share of nodes whose features are dropped as a whole", low=0, high=0.95)
    feature_dropout: float = number(0.5, "dropout on the features of the nodes that stay", low=0, high=0.95)
    dropout: float = number(0.5, "dropout on the hidden units", low=0, high=0.95)
    label_inputs: bool = flag(False, "propagate the observed labels too, some of them hidden in each step")
    label_dropout: float = number(0.5, "share of the observed labels that are hidden in each step", low=0, high=0.95)
    normalise: bool = flag(False, "give every hidden unit mean 0 and variance 1 over the nodes")


class Grand(LabelPosterior):
    """q = softmax(W_2 relu(P W_1 + b_1) + b_2) with P = 1 / (T + 1) sum_t A^t M X: M drops whole nodes' features.

    Each noisy pass sees another half of the nodes, so an answer must follow from many different neighbours. Train it
    with `samples` > 1 and a `consistency_weight`: passes that disagree are pulled together. Propagation is linear, so
    it runs on M X W_1, which is much narrower than X.
    """

    Options = GrandOptions
    uses_graph: ClassVar[bool] = True
    outcomes: ClassVar[tuple[str, ...]] = EVERY_OUTCOME

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GrandOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GrandOptions()
        if self.options.label_inputs:
            self.labels = LabelInput(sizes, replicas, self.options.hidden, self.options.label_dropout)
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.weight2 = replicas.glorot("weight2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        hidden, shown = self._propagated(inputs, noise)
        if self.options.normalise:
            centred = hidden - hidden.mean(1, keepdim=True)
            hidden = centred * (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        answer = self.answer(linear(hidden, self.weight2) + self.bias2.unsqueeze(1))
        return LabelInput.hide(answer, shown)

    def _propagated(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor | None]:
        """(R, n, hidden): P W_1, and where labels were shown."""
        shown = None
        step = inputs.x.matmul(self.weight1, noise, self.options.feature_dropout)
        if noise is not None and self.options.node_dropout > 0:
            whole = torch.ones(step.shape[:2], dtype=step.dtype, device=step.device)
            step = step * noise.dropout(whole, self.options.node_dropout).unsqueeze(2)
        if self.options.label_inputs:
            labels, shown = self.labels(inputs, noise)
            step = step + labels
        total = step
        for _ in range(self.options.order):
            step = inputs.adjacency.matmul(step)
            total = total + step
        return total / (self.options.order + 1), shown
