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

    def first(self, count: int) -> SparseMatrix:
        """The first rows."""
        rowptr = self.pattern.rowptr[: count + 1]
        stored = int(rowptr[-1])
        pattern = Pattern.from_rows(rowptr, self.pattern.col[:stored], self.shape[1])
        return SparseMatrix(pattern, self.values[:, :stored])

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


def row_dots(matrix: sp.csr_array | np.ndarray, pairs: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """(P,): sum_k A_ik A_jk scale_k for pairs (2, P) of rows."""
    i, j = pairs
    scale = np.ones(matrix.shape[1]) if scale is None else scale
    if not sp.issparse(matrix):
        return np.einsum("pd,pd,d->p", matrix[i], matrix[j], scale, optimize=True)
    from g3nn.kernels import cpu_edges

    rows, found = sp.csr_array(matrix), np.empty(i.size)
    rows.sort_indices()
    cpu_edges.row_dots(rows.indptr, rows.indices, rows.data.astype(np.float64), scale, i, j, found)
    return found


def cosine_similarity(features: sp.csr_array | np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(P,): x_i . x_j / (|x_i| |x_j|) for pairs (2, P); 0 where a row is zero."""
    x = sp.csr_array(features).astype(np.float64)
    length = np.sqrt(x.multiply(x).sum(axis=1))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return row_dots(sp.csr_array(sp.diags_array(scale) @ x), pairs)


def jaccard_similarity(features: sp.csr_array | np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(P,): the features that both of a pair (2, P) have, divided by those of either; 0 if there are none."""
    x = sp.csr_array(sp.csr_array(features) != 0).astype(np.float64)
    count, both = x.sum(axis=1), row_dots(x, pairs)
    either = count[pairs[0]] + count[pairs[1]] - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)


def is_binary(features: sp.csr_array | np.ndarray) -> bool:
    """Whether a node has a feature or not, up to a positive factor for each node."""
    x = sp.csr_array(features)
    x.eliminate_zeros()
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    starts = np.append(x.data, 0)[x.indptr[:-1]]
    return bool((x.data > 0).all() and np.allclose(x.data, starts[row], rtol=1e-6, atol=0))


def is_identity(features: sp.csr_array | np.ndarray) -> bool:
    """Whether each node has one feature, which is 1 and no other node's, in the order of the nodes: no features."""
    x = sp.csr_array(features)
    return x.shape[0] == x.shape[1] and x.nnz == x.shape[0] and bool((x.diagonal() == 1).all())
