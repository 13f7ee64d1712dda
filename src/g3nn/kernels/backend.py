"""Which implementation serves a tensor: numba for the CPU where it is installed, plain torch everywhere else."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

import numpy as np
from torch import Tensor


@cache
def _numba_kernels() -> ModuleType | None:
    # Imported on first use: numba alone would double the time that `import g3nn` takes.
    try:
        return importlib.import_module("g3nn.kernels.cpu")
    except ModuleNotFoundError:
        return None


def cpu_kernels(tensor: Tensor) -> ModuleType | None:
    """The numba kernels if they can work on `tensor`, else None."""
    return _numba_kernels() if tensor.device.type == "cpu" else None


def array(tensor: Tensor) -> np.ndarray:
    """A contiguous numpy view (or copy, if it was strided) of a CPU tensor."""
    return tensor.detach().contiguous().numpy()
