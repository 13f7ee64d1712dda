"""Graphs in `.npz` files, in folders that environment variables name."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import DataError

FEATURES = ("x_data", "x_indices", "x_indptr", "x_shape")
"""The arrays of a CSR matrix."""


@dataclass(frozen=True)
class Folder:
    """Where nobody can download from. what: is in the folder that the variable names."""

    variable: str
    what: str

    @property
    def advice(self) -> str:
        return f"Set {self.variable} to the folder with {self.what}."

    def file(self, name: str) -> Path | None:
        """Where the file of a graph is; None if there is no such file."""
        folder = os.environ.get(self.variable)
        path = Path(folder).expanduser() / f"{name}.npz" if folder else None
        return path if path is not None and path.is_file() else None

    def need(self, name: str) -> Path:
        """The same, but raises where there is no such file."""
        path = self.file(name)
        if path is None:
            folder = os.environ.get(self.variable) or f"a folder {self.variable}, not set"
            raise DataError(f"{name}: there is no {name}.npz in {folder}. {self.advice}")
        return path


def read_arrays(path: Path, keys: tuple[str, ...], advice: str) -> dict[str, np.ndarray]:
    """The arrays of a file by their keys."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            lacking = [key for key in keys if key not in archive]
            if lacking:
                raise DataError(f"{path}: lacks {', '.join(lacking)}. {advice}")
            return {key: archive[key] for key in keys}
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not an .npz file that can be read ({error}). {advice}") from error


def feature_rows(arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    """The matrix whose parts are the arrays `FEATURES`."""
    return sp.csr_array(tuple(arrays[key] for key in FEATURES[:3]), shape=tuple(arrays["x_shape"]))
