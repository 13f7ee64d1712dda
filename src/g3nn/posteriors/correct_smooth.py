"""Correct and smooth (Huang et al., 2021): answers from features, mended along the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.networks import Perceptron, PerceptronOptions
from g3nn.options import integer, number
from g3nn.posteriors.base import LabelPosterior
from g3nn.replicas import Noise, Replicas, Sizes

_LEAST = 1e-6
"""Smoothed answers need not be positive; each class keeps at least this much."""


@dataclass(frozen=True)
class CorrectAndSmoothOptions(PerceptronOptions):
    steps: int = integer(50, "propagation steps of either stage", low=1)
    correcting: float = number(0.8, "weight of the neighbours' errors against a node's own", low=0, high=1)
    smoothing: float = number(0.8, "weight of the neighbours' answers against a node's own", low=0, high=1)


class CorrectAndSmooth(LabelPosterior):
    """A perceptron is trained alone. Its errors on labelled nodes are propagated and subtracted (correct), then its
    answers are propagated with the observed labels in their place (smooth). PyG's implementation does both."""

    Options = CorrectAndSmoothOptions
    uses_graph: ClassVar[bool] = True
    capturable: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: CorrectAndSmoothOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        # Imported where it is used: PyG's layers would double the time that `import g3nn` takes.
        from torch_geometric.nn.models import CorrectAndSmooth as PyGCorrectAndSmooth

        options = options or CorrectAndSmoothOptions()
        self.network = Perceptron(sizes, replicas, options)
        self.mending = PyGCorrectAndSmooth(options.steps, options.correcting, options.steps, options.smoothing)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        answer: Tensor = self.network(inputs, noise).log_softmax(2)
        return answer if noise is not None else self._mended(answer.exp(), inputs).log()

    def _mended(self, answers: Tensor, inputs: Inputs) -> Tensor:
        """(R, n, K) of probabilities (R, n, K)."""
        labels = inputs.labels[inputs.train]
        mended = []
        for soft in answers:
            corrected = self.mending.correct(soft, labels, inputs.train, inputs.arcs)
            mended.append(self.mending.smooth(corrected, labels, inputs.train, inputs.arcs))
        mass = torch.stack(mended).clamp_min(_LEAST)
        return mass / mass.sum(2, keepdim=True)
