"""Features of chosen nodes, wherever all of them are: on the device, in memory, or in a file that is mapped."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.mapped import Unchanged, forget
from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import SparseMatrix
from g3nn.model.inputs import Features

_AT_ONCE = 4096
"""Rows that are read of a file before its pages are given back: the system maps many pages around each."""


class FeatureRows:
    """X (n, d), of which rows are taken."""

    def __init__(self, matrix: Matrix, device: torch.device, dtype: torch.dtype, on_device: bool) -> None:
        self._device, self._dtype = device, dtype
        self._sparse = sp.csr_array(matrix) if sp.issparse(matrix) else None
        self._rows: np.ndarray | Tensor | None = None if self._sparse is not None else matrix
        self._file = Unchanged(matrix) if isinstance(matrix, np.memmap) else None
        if on_device and self._sparse is None and self._file is None:
            self._rows = torch.from_numpy(matrix).to(device, dtype)

    def at(self, nodes: Tensor) -> Features:
        if isinstance(self._rows, Tensor):
            return Features(self._rows[nodes.to(self._rows.device)])
        places = nodes.cpu().numpy()
        if self._sparse is not None:
            return Features(SparseMatrix.from_scipy(self._sparse[places]).to(self._device, self._dtype))
        assert self._rows is not None
        if self._file is None:
            return self._moved(self._rows[places])
        self._file.check()
        rows = np.empty((len(places), self._rows.shape[1]), dtype=self._rows.dtype)
        # In the order of the file, so that it is read forwards.
        order = np.argsort(places, kind="stable")
        for start in range(0, len(order), _AT_ONCE):
            some = order[start : start + _AT_ONCE]
            rows[some] = self._rows[places[some]]
            forget(self._rows)
        return self._moved(rows)

    def _moved(self, rows: np.ndarray) -> Features:
        return Features(torch.from_numpy(rows).to(self._device, self._dtype))
