"""A graph convolutional network that sees the observed labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import LabelInput, PerceptronOptions, two_layers
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class LabelGCNOptions(PerceptronOptions):
    label_dropout: float = number(0.5, "share of observed labels that are hidden in each step", low=0, high=0.95)


class LabelGCN(LabelPosterior[LabelGCNOptions]):
    """q(Y_U | X, Y_L, G) = softmax(A relu(A (X W_1 + Y_L V) + b_1) W_2 + b_2).

    The paper writes its posterior in this form but then leaves out Y_L. In training some observed labels are hidden,
    and only the nodes whose own label is hidden contribute to the loss.
    """

    Options = LabelGCNOptions
    reads_labels = True
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LabelGCNOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.labels = LabelInput(sizes, replicas, self.options.hidden, self.options.label_dropout)
        layers = two_layers(replicas, sizes.features, self.options.hidden, sizes.scores)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        labels, shown = self.labels(inputs, noise)
        hidden = inputs.adjacency.matmul(inputs.x.matmul(self.weight1, noise, self.options.dropout) + labels)
        hidden = rectify(hidden, self.bias1, optional_draw(noise, self.options.dropout))
        scores = inputs.adjacency.matmul(linear(hidden, self.weight2)) + self.bias2.unsqueeze(1)
        return LabelInput.hide(self.answer(scores), shown)
