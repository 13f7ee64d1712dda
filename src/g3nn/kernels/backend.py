"""The fast kernels for a tensor, and operations whose gradients they compute.

`g3nn.kernels.cpu` (numba) and `g3nn.kernels.gpu` (Triton) have the same functions. Where they are not installed,
operations fall back to plain torch (`g3nn.kernels.reference`), which has those that compute no gradient.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result", Tensor, tuple[Tensor, Tensor])
Saved = tuple[Tensor | None, ...]

_KERNELS = {"cpu": "g3nn.kernels.cpu", "cuda": "g3nn.kernels.gpu"}


# Imported on first use, since numba would double the time of `import g3nn`.
@cache
def _installed(device: str) -> ModuleType | None:
    try:
        return importlib.import_module(_KERNELS[device]) if device in _KERNELS else None
    except ModuleNotFoundError:
        return None


def fast(tensor: Tensor) -> ModuleType | None:
    """The module of fast kernels for the device of `tensor`, or None."""
    return _installed(tensor.device.type)


def differentiable(
    forward: Callable[..., tuple[Result, Saved]], backward: Callable[..., Saved], *inputs: Tensor | None
) -> Result:
    """The result of `forward(*inputs)`, whose gradient is that of `backward` if kernels are installed.

    `forward` also returns the tensors to save. `backward` takes these and the gradients of the results, and returns
    those of the inputs. It must not refer to other large tensors: they would stay in memory, and the memory of an epoch
    is estimated from the saved ones.
    """
    wanted = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in inputs)
    if not wanted or (inputs[0] is not None and fast(inputs[0]) is None):
        # On a small graph autograd takes longer to take note of an operation than the operation takes. Plain torch has
        # gradients of its own.
        return forward(*inputs)[0]
    return _Differentiable.apply(forward, backward, *inputs)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Callable[..., Any], backward: Callable[..., Saved], *inputs: Tensor | None) -> Any:
        result, saved = forward(*inputs)
        ctx.save_for_backward(*saved)
        ctx.gradients = backward
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Saved:
        return None, None, *ctx.gradients(*ctx.saved_tensors, *grads)
