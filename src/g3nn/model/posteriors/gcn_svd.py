"""GCN-SVD (Entezari et al., 2020): a graph convolutional network on a low-rank approximation of the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.options import integer
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import sparse
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Convolutions, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes

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


class GCNSVD(LabelPosterior[GCNSVDOptions]):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2), A = D^-1/2 (A_r + I) D^-1/2 with the nearest A_r of rank r to the
    adjacency matrix.

    Attacks tend to change its small singular values. Entries of A_r may be negative; a degree is at least 1, which the
    node itself counts for.
    """

    Options = GCNSVDOptions
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNSVDOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.network = Convolutions(sizes, replicas, self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        adjacency = inputs.once(("low rank", self.options.rank), lambda: self._adjacency(inputs))
        return self.answer(self.network(inputs, adjacency.matmul, noise))

    def _adjacency(self, inputs: Inputs) -> LowRank:
        linked = np.flatnonzero(~inputs.task.isolated)
        adjacency = sparse.neighbourhoods(inputs.task.edges, inputs.n, inputs.task.weights, loops=False)
        values, own = leading(adjacency[linked][:, linked], self.options.rank)
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
