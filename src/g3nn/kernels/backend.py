"""The fast kernels for a tensor: numba on the CPU, Triton on CUDA, None if these are not installed.

`g3nn.kernels.cpu` and `g3nn.kernels.gpu` have the same functions. Without them, operations fall back to plain torch
(`g3nn.kernels.reference`).
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType
from typing import Any

from torch import Tensor


# Imported on first use, since numba would double the time of `import g3nn`.
@cache
def _numba_kernels() -> ModuleType | None:
    return _installed("g3nn.kernels.cpu")


@cache
def _triton_kernels() -> ModuleType | None:
    return _installed("g3nn.kernels.gpu")


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def fast(tensor: Tensor) -> Any:
    """The module of fast kernels for the device of `tensor`, or None."""
    if tensor.device.type == "cpu":
        return _numba_kernels()
    return _triton_kernels() if tensor.device.type == "cuda" else None
