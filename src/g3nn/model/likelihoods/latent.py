"""A latent space of features, shared by several likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from g3nn.base.options import integer, number
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import ClassLikelihood, NodeState
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class LatentOptions:
    latent: int = integer(8, "dimension of the latent space, the number of rows of U", low=1)
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class LatentSpace(ClassLikelihood[LatentOptions]):
    """Features place the nodes at U x_i, and pairs have log-odds b if nothing else is known."""

    Options: ClassVar[type] = LatentOptions
    uses_features = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.U = replicas.glorot("U", sizes.features, self.options.latent)
        self.b = replicas.zeros(1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, u): U x_i."""
        return inputs.x.matmul(self.U, noise, self.options.latent_dropout)
