"""Defences against perturbed graphs: edges that features or low rank contradict count less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import elu

from g3nn.base.options import integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, pair_dot, rectify, sparse, spmm
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Convolutions, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_dropout


@dataclass(frozen=True)
class GCNJaccardOptions(PerceptronOptions):
    threshold: float = number(0.01, "similarity of features below which an edge is left out", low=0, high=1)


class GCNJaccard(LabelPosterior):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2), A as in a GCN on the edges whose ends have similar features.

    Similar: by Jaccard's measure |x_i and x_j| / |x_i or x_j| where features are binary, else by the cosine. If no edge
    joins nodes with anything in common, as without features, all edges stay.
    """

    Options = GCNJaccardOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNJaccardOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GCNJaccardOptions()
        self.network = Convolutions(sizes, replicas, self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        adjacency = inputs.once(("jaccard", self.options.threshold), lambda: self._adjacency(inputs))
        return self.answer(self.network(inputs, adjacency.matmul, noise))

    def _adjacency(self, inputs: Inputs) -> sparse.SparseMatrix:
        task = inputs.task
        measure = sparse.jaccard_similarity if sparse.is_binary(task.features) else sparse.cosine_similarity
        similarity = measure(task.features, task.edges)
        alike = similarity >= self.options.threshold if np.any(similarity) else np.ones(task.num_edges, dtype=bool)
        kept = task.with_edges(alike)
        matrix = sparse.SparseMatrix.from_scipy(sparse.normalised_adjacency(kept.edges, inputs.n, kept.weights))
        return matrix.to(inputs.device, inputs.dtype)


_SMALL = 500
"""Up to this many nodes, or for more than a third of all eigenvectors, a dense decomposition is faster."""


@dataclass(frozen=True)
class GCNSVDOptions(PerceptronOptions):
    rank: int = integer(50, "rank of the approximation", low=1)


@dataclass(frozen=True, eq=False)
class LowRank:
    """D^-1/2 (V diag(values) V' + I) D^-1/2 with vectors V (n, rank), values (rank, 1) and scale D^-1/2 (n, 1)."""

    vectors: Tensor
    values: Tensor
    scale: Tensor

    def matmul(self, x: Tensor) -> Tensor:
        """(R, n, h) from x (R, n, h), without ever making the (n, n) matrix."""
        x = self.scale * x
        return self.scale * (torch.matmul(self.vectors, self.values * torch.matmul(self.vectors.T, x)) + x)


class GCNSVD(LabelPosterior):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2), A = D^-1/2 (A_r + I) D^-1/2 with the nearest A_r of rank r to the
    adjacency matrix.

    Attacks tend to change its small singular values. Entries of A_r may be negative; a degree is at least 1, which the
    node itself counts for.
    """

    Options = GCNSVDOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNSVDOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GCNSVDOptions()
        self.network = Convolutions(sizes, replicas, self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        adjacency = inputs.once(("low rank", self.options.rank), lambda: self._adjacency(inputs))
        return self.answer(self.network(inputs, adjacency.matmul, noise))

    def _adjacency(self, inputs: Inputs) -> LowRank:
        linked = np.flatnonzero(~inputs.task.isolated)
        adjacency = sparse.neighbourhoods(inputs.task.edges, inputs.n, inputs.task.weights) - sp.eye_array(inputs.n)
        values, own = leading(sp.csr_array(adjacency)[linked][:, linked], self.options.rank)
        vectors = np.zeros((inputs.n, len(values)))
        vectors[linked] = own
        degrees = np.maximum(1.0, 1.0 + vectors @ (values * vectors.sum(0)))
        parts = vectors, values[:, None], 1.0 / np.sqrt(degrees)[:, None]
        return LowRank(*(torch.from_numpy(part).to(inputs.device, inputs.dtype) for part in parts))


def leading(matrix: sp.csr_array, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of a symmetric matrix that are largest in size, at most `rank`, and their vectors: truncated to
    these, it is its own singular value decomposition."""
    n = matrix.shape[0]
    if n <= _SMALL or 3 * rank > n:
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        # Imported here because it takes longer to load than numpy.
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(matrix, k=rank, v0=np.random.default_rng(0).standard_normal(n))
    largest = np.argsort(-np.abs(values), kind="stable")[:rank]
    return values[largest], vectors[:, largest]


_LEAST_LENGTH = 1e-12


@dataclass(frozen=True)
class GNNGuardOptions(PerceptronOptions):
    threshold: float = number(0.1, "similarity below which a neighbour is not heard", low=0, high=1)


class GNNGuard(LabelPosterior):
    """H = relu(G_1 X W_1 + b_1), q = softmax(G_2 H W_2 + b_2), G_1 = S(X), G_2 = m G_1 + (1 - m) S(H), m learned.

    S(H): of the N_i neighbours j of i with s_ij = cos(h_i, h_j) of at least the threshold, j counts for
    N_i / (N_i + 1) s_ij / sum_j s_ij and i itself for 1 / (N_i + 1). Weights of edges multiply s_ij and count in N_i.

    As in the authors' code, no gradient passes through S, and edges are pruned by their similarity alone, not also by
    a learned rule. Where no edge joins nodes with similar features, as without features, all s_ij of G_1 are 1.
    """

    Options = GNNGuardOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GNNGuardOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GNNGuardOptions()
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        self.weight2 = replicas.glorot("weight2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)
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


_LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class RGCNOptions(PerceptronOptions):
    attention: float = number(1.0, "how fast a neighbour loses weight with its variance", low=0)
    regularisation: float = number(0.0005, "weight of the divergence of hidden units from N(0, 1)", low=0)


class RGCN(LabelPosterior):
    """M_1 = elu(X W_1), V_1 = relu(X U_1), M_2 = elu(A (M_1 * a_1) W_2), V_2 = relu(B (V_1 * a_1^2) U_2),
    q = softmax(Z), Z ~ N(A (M_2 * a_2), B (V_2 * a_2^2)), a_l = exp(-g V_l).

    A = D^-1/2 (A + I) D^-1/2 propagates means, and B, its squared entries, the variances of independent nodes.
    Unreliable neighbours have large variances and so little weight. Training draws Z; the answer is that of its mean.
    The divergence of N(M_1, V_1) from N(0, 1), the mean over units and summed over nodes, is added to the loss.
    """

    Options = RGCNOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: RGCNOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or RGCNOptions()
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
