"""Label propagation (Zhou et al., 2004), a baseline without parameters."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from g3nn.base.options import integer, number
from g3nn.model.inputs import Inputs
from g3nn.model.networks import ReplicaCount
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LabelPropagationOptions:
    steps: int = integer(50, "number of propagation steps", low=1)
    spread: float = number(0.9, "weight of the neighbours; the rest is the observed labels", low=0, high=1)


class LabelPropagation(LabelPosterior):
    """Y_t = a D^-1/2 A D^-1/2 Y_{t-1} + (1 - a) Y_0 from the observed labels Y_0; features are ignored.

    Rows are normalised to probabilities; nodes that no label reaches get uniform probabilities.
    """

    Options = LabelPropagationOptions
    capturable = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LabelPropagationOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        # Imported here, since PyG's layers would double the time of `import g3nn`.
        from torch_geometric.nn.models import LabelPropagation as PyGLabelPropagation

        options = options or LabelPropagationOptions()
        self.each = ReplicaCount(replicas)
        self.propagation = PyGLabelPropagation(options.steps, options.spread)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        mass = self.propagation(inputs.observed, inputs.arcs, edge_weight=propagation_weight(inputs)) + 1e-9
        answer: Tensor = self.each((mass / mass.sum(1, keepdim=True)).log())
        return answer


def propagation_weight(inputs: Inputs) -> Tensor | None:
    """The entries of D^-1/2 A D^-1/2 at the arcs. None without weights: PyG then computes them, but only then."""
    if inputs.arc_weight is None:
        return None
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    weight: Tensor = gcn_norm(inputs.arcs, inputs.arc_weight, inputs.n, add_self_loops=False)[1]
    return weight
