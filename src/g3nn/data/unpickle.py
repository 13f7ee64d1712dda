"""Reads the pickles in the Planetoid files without running any code from them.

A pickle names classes to build. Here, each admitted name stands for a passive record that only keeps the state it is
given; no other name is admitted. Arrays are then built from these records by the ordinary constructors of numpy and
scipy, which check their input. This also reads Python 2 pickles, wherever numpy and scipy have their classes now.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.errors import DataError


class _Record:
    """What the pickle says about one object: the arguments of its constructor, and its state."""

    __slots__ = ("arguments", "state")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Record):
    __slots__ = ()

    def build(self) -> np.ndarray:
        """State of numpy.ndarray: (version, shape, dtype, Fortran order, bytes)."""
        _, shape, dtype, fortran, content = self.state
        if isinstance(content, str):  # Python 2 wrote bytes as text; latin1 maps each character back to its byte
            content = content.encode("latin1")
        return np.frombuffer(content, dtype=dtype.build()).reshape(shape, order="F" if fortran else "C")


class _Dtype(_Record):
    __slots__ = ()

    def build(self) -> np.dtype[Any]:
        """Arguments of numpy.dtype: ('f4', ...). State: (version, byte order, ...)."""
        dtype = np.dtype(str(self.arguments[0])).newbyteorder(self.state[1])
        if dtype.kind not in "biuf":
            raise ValueError(f"array of type {dtype}, where numbers are expected")
        return dtype


class _Csr(_Record):
    __slots__ = ()

    def build(self) -> sp.csr_array:
        """State of csr_matrix: its attributes by name."""
        data, indices, indptr = (self.state[key].build() for key in ("data", "indices", "indptr"))
        matrix = sp.csr_array((data, indices, indptr), shape=self.state["_shape"])
        matrix.check_format(full_check=True)
        return matrix


_ADMITTED: dict[tuple[str, str], type] = {
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is neither a numpy nor a scipy array")
        return _ADMITTED[module, name]


def array(content: bytes, place: str) -> np.ndarray | sp.csr_array:
    """The numpy array or CSR matrix in a pickle. `place` names it in errors."""
    try:
        record = _load(content)
        if not isinstance(record, _Array | _Csr):
            raise ValueError(f"it holds a {type(record).__name__}, not an array")
        return record.build()
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
