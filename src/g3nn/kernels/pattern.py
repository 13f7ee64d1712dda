"""The positions of the entries of a sparse matrix, in row order and in column order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pattern:
    """The positions of the nnz entries of an (n, m) matrix, stored by row and again by column.

    rowptr (n + 1,), col (nnz,): compressed rows. row (nnz,): the row of each entry.
    t_rowptr (m + 1,), t_col (nnz,): the same for the transpose. perm (nnz,): maps its entries to the row order.
    """

    shape: tuple[int, int]
    rowptr: Tensor
    col: Tensor
    row: Tensor
    t_rowptr: Tensor
    t_col: Tensor
    perm: Tensor

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> Pattern:
        matrix = sp.csr_array(matrix)
        nnz = matrix.nnz
        positions = sp.csr_array((np.arange(nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
        transposed = positions.T.tocsr()
        transposed.sort_indices()
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return cls(
            (int(matrix.shape[0]), int(matrix.shape[1])),
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(row.astype(np.int32)),
            torch.from_numpy(transposed.indptr.astype(np.int64)),
            torch.from_numpy(transposed.indices.astype(np.int32)),
            torch.from_numpy(transposed.data.astype(np.int32)),
        )

    @classmethod
    def from_rows(cls, rowptr: Tensor, col: Tensor, width: int) -> Pattern:
        """From compressed rows, on their device."""
        row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
        ordered, perm = col.sort(stable=True)
        t_rowptr = torch.searchsorted(ordered, torch.arange(width + 1, device=col.device, dtype=col.dtype))
        narrow = [part.to(torch.int32) for part in (col, row, row[perm], perm)]
        return cls((rowptr.numel() - 1, width), rowptr, narrow[0], narrow[1], t_rowptr, narrow[2], narrow[3])

    @property
    def nnz(self) -> int:
        return int(self.col.numel())

    def to(self, device: torch.device | str) -> Pattern:
        tensors = (self.rowptr, self.col, self.row, self.t_rowptr, self.t_col, self.perm)
        return Pattern(self.shape, *(tensor.to(device) for tensor in tensors))
