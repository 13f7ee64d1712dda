"""Robust graph convolutional network (Zhu et al., RGCN, 2019): hidden units are normal distributions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu

from g3nn.base.options import number
from g3nn.kernels import linear
from g3nn.model.inputs import Inputs
from g3nn.model.networks import PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_dropout

_LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class RGCNOptions(PerceptronOptions):
    attention: float = number(1.0, "how fast a neighbour loses weight with its variance", low=0)
    regularisation: float = number(0.0005, "weight of the divergence of hidden units from N(0, 1)", low=0)


class RGCN(LabelPosterior[RGCNOptions]):
    """M_1 = elu(X W_1), V_1 = relu(X U_1), M_2 = elu(A (M_1 * a_1) W_2), V_2 = relu(B (V_1 * a_1^2) U_2),
    q = softmax(Z), Z ~ N(A (M_2 * a_2), B (V_2 * a_2^2)), a_l = exp(-g V_l).

    A = D^-1/2 (A + I) D^-1/2 propagates means, and B, its squared entries, the variances of independent nodes.
    Unreliable neighbours have large variances and so little weight. Training draws Z; the answer is that of its mean.
    The divergence of N(M_1, V_1) from N(0, 1), the mean over units and summed over nodes, is added to the loss.
    """

    Options = RGCNOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: RGCNOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        hidden = self.options.hidden
        self.mean1 = replicas.glorot("mean1", sizes.features, hidden)
        self.variance1 = replicas.glorot("variance1", sizes.features, hidden)
        self.mean2 = replicas.glorot("mean2", hidden, sizes.scores)
        self.variance2 = replicas.glorot("variance2", hidden, sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        mean, variance = self._propagated(*self._first(inputs, noise), inputs)
        mean, variance = (optional_dropout(noise, part, self.options.dropout) for part in (mean, variance))
        mean, variance = _activated(linear(mean, self.mean2), linear(variance, self.variance2))
        mean, variance = self._propagated(mean, variance, inputs)
        return self.answer(mean if noise is None else mean + noise.normal(mean) * variance.sqrt())

    def own_loss(self, log_q: Tensor, inputs: Inputs, noise: Noise) -> Tensor:
        mean, variance = self._first(inputs, None)
        divergence = 0.5 * (mean.square() + variance - variance.log() - 1)
        return self.options.regularisation * divergence.mean(2).sum(1)

    def _first(self, inputs: Inputs, noise: Noise | None) -> tuple[Tensor, Tensor]:
        """M_1 and V_1, (R, n, hidden) each, of the same features where some are dropped."""
        both = torch.cat([self.mean1, self.variance1], dim=2)
        return _activated(*inputs.x.matmul(both, noise, self.options.dropout).chunk(2, dim=2))

    def _propagated(self, mean: Tensor, variance: Tensor, inputs: Inputs) -> tuple[Tensor, Tensor]:
        weight = torch.exp(-self.options.attention * variance)
        means = inputs.adjacency
        return means.matmul(mean * weight), means.squared().matmul(variance * weight.square())


def _activated(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    return elu(mean), torch.relu(variance) + _LEAST_VARIANCE
