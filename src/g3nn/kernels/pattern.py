"""The positions of the entries of a sparse matrix, in row order and in column order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.errors import refuse
from g3nn.kernels.backend import fast

_INT32 = 2**31 - 1
"""The largest number of 32 bits."""
_SORTED_THERE = 1 << 28
"""The most entries that a GPU sorts by column: this takes several times their memory, counting on the CPU does not."""


def index_type(most: int) -> torch.dtype:
    """The smallest type of whole numbers that holds this one."""
    return torch.int32 if most <= _INT32 else torch.int64


@dataclass(frozen=True, eq=False)
class Pattern:
    """The positions of the nnz entries of an (n, m) matrix: compressed rows and, computed on first use, the row of
    each entry and the same by column.

    rowptr (n + 1,), col (nnz,): compressed rows, columns in rising order.
    symmetric: (j, i) has an entry if (i, j) has one, so rows and columns are the same.
    """

    shape: tuple[int, int]
    rowptr: Tensor
    col: Tensor
    symmetric: bool = False

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array, symmetric: bool = False) -> Pattern:
        matrix = sp.csr_array(matrix)
        rowptr, col = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
        return cls.from_rows(rowptr, col, int(matrix.shape[1]), symmetric)

    @classmethod
    def from_rows(cls, rowptr: Tensor, col: Tensor, width: int, symmetric: bool = False) -> Pattern:
        """From compressed rows, on their device."""
        shape, kind = (rowptr.numel() - 1, width), index_type(width - 1)
        # A number that is cut to 32 bits may become that of another column. On a GPU, the check would mean waiting.
        if col.dtype != kind and col.device.type == "cpu" and col.numel():
            first, last = (int(end) for end in col.aminmax())
            if first < 0 or last >= width:
                refuse("col", f"columns {first}..{last}", f"columns 0..{width - 1}, as many as the matrix has")
        return cls(shape, rowptr.to(torch.int64), col.to(kind), symmetric)

    @property
    def nnz(self) -> int:
        return int(self.col.numel())

    @cached_property
    def row(self) -> Tensor:
        """(nnz,): the row of each entry."""
        rows = torch.arange(self.shape[0], dtype=index_type(self.shape[0] - 1), device=self.col.device)
        return rows.repeat_interleave(self.rowptr.diff(), output_size=self.nnz)

    @property
    def t_rowptr(self) -> Tensor:
        """(m + 1,): `rowptr` of the transpose."""
        return self.rowptr if self.symmetric else self._turned[0]

    @property
    def t_col(self) -> Tensor:
        """(nnz,): `col` of the transpose."""
        return self.col if self.symmetric else self._turned[1]

    @property
    def perm(self) -> Tensor:
        """(nnz,): where each entry of the transpose is in the row order."""
        return self._turned[2]

    @cached_property
    def _turned(self) -> tuple[Tensor, Tensor, Tensor]:
        """t_rowptr, t_col and perm; of a symmetric pattern the first two are its own."""
        if self.col.device.type != "cpu" and self.nnz > _SORTED_THERE:
            t_rowptr, t_col, perm = (part.to(self.col.device) for part in self.to("cpu")._turned)
        else:
            turn = getattr(fast(self.col), "turned", _turned)
            t_rowptr, t_col, perm = turn(self.rowptr, self.col, self.shape[1], index_type(self.nnz - 1))
        return (self.rowptr, self.col, perm) if self.symmetric else (t_rowptr, t_col, perm)

    def to(self, device: torch.device | str) -> Pattern:
        if self.col.device == torch.device(device):
            return self
        return Pattern(self.shape, self.rowptr.to(device), self.col.to(device), self.symmetric)


def _turned(rowptr: Tensor, col: Tensor, m: int, places: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Compressed columns of compressed rows, on any device: t_rowptr, t_col and perm."""
    ordered, perm = col.sort(stable=True)
    # Counting the entries of each column would make the host wait for a GPU.
    ends = torch.searchsorted(ordered, torch.arange(m, dtype=col.dtype, device=col.device), right=True)
    t_rowptr = torch.cat([ends.new_zeros(1), ends])
    row = torch.searchsorted(rowptr, perm, right=True) - 1
    return t_rowptr, row.to(index_type(len(rowptr) - 2)), perm.to(places)
