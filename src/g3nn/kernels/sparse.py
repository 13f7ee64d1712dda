"""A constant sparse matrix that multiplies dense blocks with a leading replica dimension."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.kernels import Draw, Pattern, Scales, spmm, spmm_powers


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """An (n, m) matrix: a pattern, and its values (1, nnz) or the scales of rows and columns that they follow from."""

    pattern: Pattern
    stored: Tensor | Scales

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> SparseMatrix:
        matrix = sp.csr_array(matrix)
        matrix.sort_indices()
        values = torch.from_numpy(np.array(matrix.data)).unsqueeze(0)
        return cls(Pattern.from_scipy(matrix), values)

    @classmethod
    def normalised(cls, looped: Pattern, dtype: torch.dtype) -> SparseMatrix:
        """D^-1/2 (A + I) D^-1/2 from the pattern of A + I, for edges of weight 1."""
        scale = looped.rowptr.diff().double().rsqrt().to(dtype)
        return cls(looped, Scales(scale, scale))

    @classmethod
    def row_mean(cls, pattern: Pattern, dtype: torch.dtype) -> SparseMatrix:
        """D^-1 A from the pattern of A: row i averages over its entries."""
        return cls(pattern, Scales(pattern.rowptr.diff().clamp_min(1).double().reciprocal().to(dtype), None))

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @cached_property
    def values(self) -> Tensor:
        """(1, nnz): the value of each entry."""
        return self.stored.values(self.pattern) if isinstance(self.stored, Scales) else self.stored

    def to(self, device: torch.device | str, dtype: torch.dtype) -> SparseMatrix:
        return SparseMatrix(self.pattern.to(device), self.values.to(device, dtype))

    def first(self, count: int) -> SparseMatrix:
        """The first rows."""
        rowptr = self.pattern.rowptr[: count + 1]
        stored = int(rowptr[-1])
        pattern = Pattern.from_rows(rowptr, self.pattern.col[:stored], self.shape[1])
        return SparseMatrix(pattern, self.values[:, :stored])

    def squared(self) -> SparseMatrix:
        """The matrix of the squares of the values."""
        if isinstance(self.stored, Scales):
            return SparseMatrix(self.pattern, Scales(*(None if s is None else s.square() for s in self.stored)))
        return SparseMatrix(self.pattern, self.stored.square())

    def matmul(self, dense: Tensor, draw: Draw | None = None) -> Tensor:
        """(R, n, h) = A @ dense_r for dense (R, m, h); a draw drops stored values, separately for each replica."""
        return spmm(self.pattern, self.stored if draw is None else self.values, dense, draw)

    def powers(self, dense: Tensor, order: int) -> Tensor:
        """(R, n, h) = sum_t A^t @ dense_r for dense (R, n, h) and t = 0 .. order."""
        return spmm_powers(self.pattern, self.stored, dense, order)


class Rows(NamedTuple):
    """Compressed rows: rowptr (n + 1,) int64, col (nnz,), and values (nnz,), None if all are 1."""

    rowptr: np.ndarray
    col: np.ndarray
    values: np.ndarray | None = None

    def pattern(self, symmetric: bool = True) -> Pattern:
        """Of an (n, n) matrix."""
        rowptr, col = torch.from_numpy(self.rowptr), torch.from_numpy(self.col)
        return Pattern.from_rows(rowptr, col, len(self.rowptr) - 1, symmetric)


def normalised_adjacency(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1/2 (A + I) D^-1/2 of an undirected graph; edges (2, E), each pair once, with weights (E,) or all of weight 1.
    An isolated node has weight 1."""
    looped = neighbourhoods(edges, n, weights)
    scale = sp.diags_array(1.0 / np.sqrt(looped.sum(axis=1)))
    return sp.csr_array(scale @ looped @ scale)


def neighbour_mean(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1 A: row i averages over the neighbours of i, without i itself. The row of an isolated node is zero."""
    return row_mean(neighbourhoods(edges, n, weights, loops=False))


def arc_mean(edges: np.ndarray, n: int, weights: np.ndarray | None = None) -> sp.csr_array:
    """D^-1 A of a directed graph: row i averages over the targets of the arcs from i."""
    values = np.ones(edges.shape[1]) if weights is None else weights
    return row_mean(sp.csr_array((values, (edges[0], edges[1])), shape=(n, n)))


def row_mean(adjacency: sp.csr_array) -> sp.csr_array:
    """D^-1 A, with zeros in rows without entries."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1.0 / np.where(degree > 0, degree, 1.0)) @ adjacency)


def neighbourhoods(edges: np.ndarray, n: int, weights: np.ndarray | None = None, loops: bool = True) -> sp.csr_array:
    """A + I, or A without loops: row i holds the weights of the edges of i, and 1 for i itself. Directions are ignored:
    of two opposite arcs the heavier one counts."""
    rows = neighbour_rows(edges, n, weights, loops)
    values = np.ones(len(rows.col)) if rows.values is None else rows.values
    return sp.csr_array((values, rows.col, rows.rowptr), shape=(n, n))


def neighbour_rows(edges: np.ndarray, n: int, weights: np.ndarray | None = None, loops: bool = True) -> Rows:
    """The rows of A + I, or of A without loops, for edges (2, E) in any order and direction.

    Counts and places ends instead of sorting them, so it needs no memory but that of the result.
    """
    from numba import get_num_threads

    from g3nn.kernels import cpu_rows

    if not cpu_rows.is_sorted(edges, True):
        edges, weights = _sorted_pairs(edges, n, weights)
    parts = get_num_threads()
    smaller, larger = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    cpu_rows.count(edges[1], parts, smaller)
    cpu_rows.count(edges[0], parts, larger)
    rowptr = _starts(smaller + larger + loops)
    col = np.empty(rowptr[-1], dtype=np.int32 if n <= 2**31 else np.int64)
    values = None if weights is None else np.empty(rowptr[-1])
    middle = rowptr[:-1] + smaller
    if loops:
        col[middle] = np.arange(n)
        if values is not None:
            values[middle] = 1.0
    cpu_rows.place_neighbours(edges, weights, rowptr[:-1].copy(), middle + loops, parts, col, values)
    return Rows(rowptr, col, values)


def edge_rows(edges: np.ndarray, n: int) -> tuple[Rows, np.ndarray | None]:
    """The rows of a matrix with an entry for each edge (2, E), and the number of the edge of each entry, None if they
    are in the order of the entries already."""
    from g3nn.kernels import cpu_rows

    order = None if cpu_rows.is_sorted(edges, False) else np.lexsort(edges[::-1])
    source, target = edges if order is None else edges[:, order]
    return Rows(_starts(np.bincount(source, minlength=n)), target), order


def _starts(counts: np.ndarray) -> np.ndarray:
    """(n + 1,): where each row starts if they have these numbers (n,) of entries."""
    return np.concatenate([[0], np.cumsum(counts)])


def _sorted_pairs(edges: np.ndarray, n: int, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Each pair once, with i < j, in the order of i and then j, and the heaviest weight of each."""
    codes, place = np.unique(np.minimum(*edges) * n + np.maximum(*edges), return_inverse=True)
    pairs = np.stack([codes // n, codes % n])
    if weights is None:
        return pairs, None
    heaviest = np.zeros(codes.size)
    np.maximum.at(heaviest, place, weights)
    return pairs, heaviest


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
    x = sp.csr_array(features, copy=True)
    x.eliminate_zeros()
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    starts = np.append(x.data, 0)[x.indptr[:-1]]
    return bool((x.data > 0).all() and np.allclose(x.data, starts[row], rtol=1e-6, atol=0))


def is_identity(features: sp.csr_array | np.ndarray) -> bool:
    """Whether the features are the identity matrix, which stands for no features."""
    if features.shape[0] != features.shape[1]:
        return False
    x = sp.csr_array(features)
    return x.nnz == x.shape[0] and bool((x.diagonal() == 1).all())
