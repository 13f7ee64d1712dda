"""Label propagation (Zhou et al., 2004), a baseline without parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.kernels.sparse import SparseMatrix
from g3nn.model.inputs import Inputs
from g3nn.model.networks import ReplicaCount
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LabelPropagationOptions:
    steps: int = integer(50, "number of propagation steps", low=1)
    spread: float = number(0.9, "weight of the neighbours; the rest is the observed labels", low=0, high=1)


class LabelPropagation(LabelPosterior[LabelPropagationOptions]):
    """Y_t = a D^-1/2 A D^-1/2 Y_{t-1} + (1 - a) Y_0 from the observed labels Y_0; features are ignored.

    Rows are normalised to probabilities; nodes that no label reaches get uniform probabilities.
    """

    Options = LabelPropagationOptions
    reads_labels = True
    capturable = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LabelPropagationOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.each = ReplicaCount(replicas)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        start = inputs.observed.unsqueeze(0)
        mass = propagated(start, inputs, self.options.steps, self.options.spread)[0] + 1e-9
        answer: Tensor = self.each((mass / mass.sum(1, keepdim=True)).log())
        return answer


def propagated(start: Tensor, inputs: Inputs, steps: int, spread: float, least: float = 0.0) -> Tensor:
    """(R, n, K) from a start (R, n, K): after so many steps, each of which keeps values between `least` and 1."""
    matrix = inputs.once("arriving", lambda: _arriving(inputs))
    mass, own = start, (1 - spread) * start
    for _ in range(steps):
        mass = (spread * matrix.matmul(mass) + own).clamp(least, 1.0)
    return mass


def _arriving(inputs: Inputs) -> SparseMatrix:
    """D^-1/2 A D^-1/2: row i has the arcs that arrive at node i, and D how many do."""
    source, target = inputs.arcs.cpu().numpy()
    weight = np.ones(len(source)) if inputs.arc_weight is None else inputs.arc_weight.double().cpu().numpy()
    degree = np.bincount(target, weight, minlength=inputs.n)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(inputs.n), where=degree > 0)
    values = scale[source] * weight * scale[target]
    return inputs.sparse(sp.csr_array((values, (target, source)), shape=(inputs.n, inputs.n)))
