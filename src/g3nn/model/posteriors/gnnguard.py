"""GNNGuard (Zhang and Zitnik, 2020): neighbours count by how similar they are, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from g3nn.base.options import number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, pair_dot, rectify, sparse, spmm
from g3nn.model.inputs import Inputs
from g3nn.model.networks import PerceptronOptions, two_layers
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_dropout

_LEAST_LENGTH = 1e-12


@dataclass(frozen=True)
class GNNGuardOptions(PerceptronOptions):
    threshold: float = number(0.1, "similarity below which a neighbour is left out", low=0, high=1)


class GNNGuard(LabelPosterior[GNNGuardOptions]):
    """H = relu(G_1 X W_1 + b_1), q = softmax(G_2 H W_2 + b_2), G_1 = S(X), G_2 = m G_1 + (1 - m) S(H), m learned.

    S(H): of the N_i neighbours j of i with s_ij = cos(h_i, h_j) of at least the threshold, j counts for
    N_i / (N_i + 1) s_ij / sum_j s_ij and i itself for 1 / (N_i + 1). Weights of edges multiply s_ij and count in N_i.

    As in the authors' code, no gradient passes through S, and edges are pruned by their similarity alone, not also by
    a learned rule. Where no edge joins nodes with similar features, as without features, all s_ij of G_1 are 1.
    """

    Options = GNNGuardOptions
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GNNGuardOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        layers = two_layers(replicas, sizes.features, self.options.hidden, sizes.scores)
        self.weight1, self.bias1, self.weight2, self.bias2 = layers
        self.memory = replicas.zeros(1, 1)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate, pattern = self.options.dropout, inputs.neighbours
        first = inputs.once(("guard", self.options.threshold), lambda: self._guard(_of_features(inputs), inputs))
        hidden = spmm(pattern, first, inputs.x.matmul(self.weight1, noise, rate))
        hidden = rectify(hidden, self.bias1, None)
        second = self._guard(_of_hidden(hidden.detach(), inputs), inputs)
        sent = linear(optional_dropout(noise, hidden, rate), self.weight2)
        kept = torch.sigmoid(self.memory)
        scores = kept * spmm(pattern, first, sent) + (1 - kept) * spmm(pattern, second, sent)
        return self.answer(scores + self.bias2.unsqueeze(1))

    def _guard(self, similarity: Tensor, inputs: Inputs) -> Tensor:
        """(R, nnz): the entries of S at `inputs.neighbours`, from similarities (R, nnz)."""
        pattern = inputs.neighbours
        row, own = pattern.row.long(), pattern.row == pattern.col
        weight = 1.0 if inputs.log_weights is None else inputs.log_weights.exp()
        heard = (similarity >= self.options.threshold) & (similarity > 0) & ~own
        shares, counted = torch.where(heard, similarity * weight, 0.0), heard.to(similarity.dtype) * weight
        ones = similarity.new_ones(len(similarity), inputs.n, 1)
        total, count = (spmm(pattern, entries, ones).squeeze(2)[:, row] for entries in (shares, counted))
        others = torch.where(heard, shares / total, 0.0) * count / (count + 1)
        return torch.where(own, 1 / (count + 1), others)


def _of_features(inputs: Inputs) -> Tensor:
    """(1, nnz): cosines between the features of neighbours; all 1 if none are above 0."""
    pattern = inputs.neighbours
    pairs = torch.stack([pattern.row, pattern.col]).long().cpu().numpy()
    cosines = sparse.cosine_similarity(inputs.task.features, pairs)
    if not (cosines[pairs[0] != pairs[1]] > 0).any():
        cosines = np.ones_like(cosines)
    return torch.from_numpy(cosines).to(inputs.device, inputs.dtype).unsqueeze(0)


def _of_hidden(hidden: Tensor, inputs: Inputs) -> Tensor:
    """(R, nnz): cosines between the hidden vectors (R, n, h) of neighbours."""
    unit = hidden / hidden.norm(dim=2, keepdim=True).clamp_min(_LEAST_LENGTH)
    pattern = inputs.neighbours
    return pair_dot(unit, unit, pattern.row, pattern.col, pattern)
