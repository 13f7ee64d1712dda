"""Tensors and draws in the form that the numba kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.kernels.draw import Draw


def array(tensor: Tensor) -> np.ndarray:
    """A contiguous numpy view of a CPU tensor, or a copy if it was strided."""
    return tensor.detach().contiguous().numpy()


def noise(draw: Draw | None, like: Tensor) -> tuple[Any, ...]:
    """Seeds, counter, threshold and scale, as the kernels take them; threshold 0 keeps everything."""
    if draw is None:
        return np.zeros(like.shape[0], dtype=np.int64), 0, 0, number(1.0, like)
    return array(draw.seeds), int(draw.counter), draw.threshold, number(draw.scale, like)


def number(value: float, like: Tensor) -> Any:
    """In the precision of `like`: a Python float would lift the arithmetic of a kernel to double precision."""
    return np.float64(value) if like.dtype == torch.float64 else np.float32(value)
