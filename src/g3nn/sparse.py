"""A constant sparse matrix that multiplies dense blocks with a leading replica dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.kernels import Draw, Pattern, spmm


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """An (n, m) matrix: a pattern and its values (1, nnz)."""

    pattern: Pattern
    values: Tensor

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> SparseMatrix:
        matrix = sp.csr_array(matrix)
        matrix.sort_indices()
        values = torch.from_numpy(np.array(matrix.data)).unsqueeze(0)
        return cls(Pattern.from_scipy(matrix), values)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    def to(self, device: torch.device | str, dtype: torch.dtype) -> SparseMatrix:
        return SparseMatrix(self.pattern.to(device), self.values.to(device, dtype))

    def matmul(self, dense: Tensor, draw: Draw | None = None) -> Tensor:
        """(R, n, h) = A @ dense_r for dense (R, m, h); a draw drops stored values, separately for each replica."""
        return spmm(self.pattern, self.values, dense, draw)


def normalised_adjacency(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1/2 (A + I) D^-1/2 of an undirected graph; edges (2, E), each pair once, with weights (E,) or all of weight 1.
    An isolated node has weight 1."""
    looped = neighbourhoods(edges, n, weights)
    scale = sp.diags_array(1.0 / np.sqrt(looped.sum(axis=1)))
    return sp.csr_array(scale @ looped @ scale)


def neighbour_mean(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1 A: row i averages over the neighbours of i, without i itself. The row of an isolated node is zero."""
    looped = neighbourhoods(edges, n, weights)
    looped.setdiag(0.0)
    looped.eliminate_zeros()
    return _row_mean(looped)


def arc_mean(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1 A of a directed graph: row i averages over the targets of the arcs from i."""
    return _row_mean(_arcs(edges, n, weights))


def _row_mean(adjacency: sp.csr_array) -> sp.csr_array:
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1.0 / np.where(degree > 0, degree, 1.0)) @ adjacency)


def neighbourhoods(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """A + I: row i holds the weights of the edges of i, and 1 for i itself. Directions are ignored: of two opposite
    arcs the heavier one counts."""
    half = _arcs(edges, n, weights)
    looped = sp.csr_array(half.maximum(half.T) + sp.eye_array(n))
    looped.sort_indices()
    return looped


def _arcs(edges: np.ndarray, n: int, weights: np.ndarray | None) -> sp.csr_array:
    """Entry ij is the weight of the arc from i to j."""
    values = np.ones(edges.shape[1]) if weights is None else weights
    return sp.csr_array((values, (edges[0], edges[1])), shape=(n, n))
