"""How many replicas fit into memory, from a measurement of one."""

from __future__ import annotations

import errno
from collections.abc import Callable

import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.errors import DeviceMemoryError
from g3nn.base.threads import host_memory
from g3nn.graph.task import NodeTask

_USABLE = 0.8
"""Share of the free memory that a stack may take."""
_share = 1.0
"""Share of all memory, free or not, that this process may take. It belongs to the process, as memory does."""
_MOST_PER_END = 1 << 16
"""Bytes that no model needs for a node or for an end of an edge."""
_BYTES_PER_EDGE = 32
"""Both ends as they are drawn, and twice among the neighbours."""
_KEPT_PER_SAVED = 2.0
"""On a CPU what the backward pass keeps is counted; gradients and temporary results take as much again."""


def replicas_that_fit(epoch: Callable[[], None], device: torch.device) -> int:
    """At least 1. `epoch` runs one epoch of one replica on the device and leaves nothing behind."""
    return max(1, usable_memory(device) // max(1, measured(epoch, device)))


def usable_memory(device: torch.device) -> int:
    """Bytes that a training may take."""
    return int(_USABLE * free_memory(device))


def measured(work: Callable[[], None], device: torch.device) -> int:
    """About how many bytes this takes on the device."""
    return (_peak_on_gpu if device.type == "cuda" else _kept_on_cpu)(work, device)


def surely_fits(task: NodeTask, device: torch.device) -> bool:
    """Whether a graph is so small that no model of it needs to be measured."""
    return _MOST_PER_END * (task.num_nodes + 2 * task.num_edges) < usable_memory(device)


def gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"


def fits(task: NodeTask, device: torch.device) -> bool:
    """Whether the graph and dense features may live on the device, with as much memory left for what is computed."""
    if device.type == "cpu":
        return True
    features = 0 if sp.issparse(task.features) else 4 * task.features.size
    return features + _BYTES_PER_EDGE * task.num_edges < free_memory(device) // 2


def take_share(share: float) -> None:
    """Leave the rest of all memory to the processes that work beside this one."""
    global _share
    _share = share


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, means that memory ran out. Another time there may be enough."""
    while error is not None:
        # On a CPU torch has no error of its own for it.
        if isinstance(error, MemoryError | DeviceMemoryError | torch.OutOfMemoryError) or (
            (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))
            or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take."""
    free, total = _on_gpu(device) if device.type == "cuda" else host_memory()
    return min(free, int(_share * total))


def _on_gpu(device: torch.device) -> tuple[int, int]:
    free, total = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)), int(total)


def _peak_on_gpu(epoch: Callable[[], None], device: torch.device) -> int:
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    epoch()
    return torch.cuda.max_memory_allocated(device) - before


def _kept_on_cpu(epoch: Callable[[], None], device: torch.device) -> int:
    """Bytes that one epoch keeps for its backward pass, each piece of memory counted once."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        epoch()
    return int(_KEPT_PER_SAVED * sum(sizes.values()))
