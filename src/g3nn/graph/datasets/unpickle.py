"""Reads the pickles in the Planetoid files without running any code from them.

A pickle names what to call. Only the names below are admitted, which make arrays of numbers, dictionaries and lists.
This also reads Python 2 pickles, wherever numpy and scipy have their classes now.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import DataError


class _Kind:
    """Stands for a dtype. numpy's own takes any state without a check, and may end the process."""

    def __init__(self, code: str, *_: Any) -> None:
        self.dtype = np.dtype(code)
        if self.dtype.kind not in "biuf":
            raise ValueError(f"array of type {self.dtype}, where numbers are expected")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """The second part is the order of bytes; the others say nothing about numbers."""
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Stands for an array, for the same reason."""

    values: np.ndarray

    def __init__(self, *_: Any) -> None:
        """A pickle makes an empty array first, and fills it by its state."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, raw = state
        if not isinstance(kind, _Kind):
            raise ValueError(f"an array of {type(kind).__name__}, where a dtype is expected")
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        values = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if by_columns else "C")
        self.values = values.astype(kind.dtype.newbyteorder("="))


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "dtype"): _Kind,
    ("scipy.sparse.csr", "csr_matrix"): SimpleNamespace,  # keeps the attributes of the matrix
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is neither a numpy nor a scipy array")
        return _ADMITTED[module, name]


def array(content: bytes, place: str) -> np.ndarray | sp.csr_array:
    """The numpy array or CSR matrix in a pickle. `place` names it in errors."""
    try:
        read = _load(content)
        if isinstance(read, SimpleNamespace):
            parts = (read.data.values, read.indices.values, read.indptr.values)
            matrix = sp.csr_array(parts, shape=read._shape)
            matrix.check_format(full_check=True)
            return matrix
        if not isinstance(read, _Array):
            raise ValueError(f"it holds a {type(read).__name__}, not an array")
        return read.values
    except Exception as error:  # a hostile pickle can raise anything
        raise DataError(f"{place}: not a pickled array: {error}") from error


def neighbour_lists(content: bytes, place: str) -> dict[int, list[int]]:
    """The neighbours of each node in a pickled `defaultdict(list)`. `place` names it in errors."""
    try:
        graph = _load(content)
        if not isinstance(graph, dict):
            raise ValueError(f"it holds a {type(graph).__name__}, not a dictionary")
        return {int(node): [int(neighbour) for neighbour in neighbours] for node, neighbours in graph.items()}
    except Exception as error:  # a hostile pickle can raise anything
        raise DataError(f"{place}: not a pickled graph: {error}") from error


def _load(content: bytes) -> Any:
    return _Unpickler(io.BytesIO(content), encoding="latin1").load()
