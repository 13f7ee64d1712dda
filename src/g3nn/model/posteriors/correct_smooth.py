"""Correct and smooth (Huang et al., 2021): predictions from features, corrected along the edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Perceptron, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.posteriors.label_propagation import propagated
from g3nn.model.replicas import Noise, Replicas, Sizes

_LEAST = 1e-6
"""Smoothed answers need not be positive; each class gets at least this much."""
_LARGEST_SCALE = 1000.0
"""Beyond this factor, an error is so small that it is left unscaled."""


@dataclass(frozen=True)
class CorrectAndSmoothOptions(PerceptronOptions):
    steps: int = integer(50, "number of propagation steps in each stage", low=1)
    correcting: float = number(0.8, "weight of the neighbours' errors; the rest is the node's own", low=0, high=1)
    smoothing: float = number(0.8, "weight of the neighbours' answers; the rest is the node's own", low=0, high=1)


class CorrectAndSmooth(LabelPosterior[CorrectAndSmoothOptions]):
    """A perceptron is trained without the graph. Its errors on labelled nodes are propagated and subtracted (correct),
    then its answers are propagated together with the observed labels (smooth)."""

    Options = CorrectAndSmoothOptions
    reads_labels = True
    capturable = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: CorrectAndSmoothOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.network = Perceptron(sizes, replicas, self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        answer: Tensor = self.network(inputs, noise).log_softmax(2)
        return answer if noise is not None else self._smoothed(self._corrected(answer.exp(), inputs), inputs).log()

    def _corrected(self, answers: Tensor, inputs: Inputs) -> Tensor:
        """(R, n, K): answers corrected by propagated errors, scaled to the mean error of the labelled nodes."""
        errors = torch.where(inputs.labelled, inputs.observed - answers, 0.0)
        spread = propagated(errors, inputs, self.options.steps, self.options.correcting, least=-1.0)
        usual = errors.abs().sum((1, 2), keepdim=True) / inputs.train.numel()
        scale = usual / spread.abs().sum(2, keepdim=True)
        return answers + torch.where(scale.isfinite() & (scale <= _LARGEST_SCALE), scale, 1.0) * spread

    def _smoothed(self, answers: Tensor, inputs: Inputs) -> Tensor:
        """(R, n, K): probabilities, after propagation together with the observed labels."""
        start = torch.where(inputs.labelled, inputs.observed, answers)
        mass = propagated(start, inputs, self.options.steps, self.options.smoothing).clamp_min(_LEAST)
        return mass / mass.sum(2, keepdim=True)
