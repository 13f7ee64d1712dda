"""How many replicas fit into memory, from a measurement of one."""

from __future__ import annotations

from collections.abc import Callable

import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.task import NodeTask
from g3nn.threads import all_memory
from g3nn.threads import free_memory as free_of_cpu

_USABLE = 0.8
"""Share of the free memory that a stack may take."""
_share = 1.0
"""Share of all memory, free or not, that this process may take. It belongs to the process, as memory does."""
_BYTES_PER_EDGE = 32
"""Both ends as they are drawn, and twice among the neighbours."""
_KEPT_PER_SAVED = 2.0
"""On a CPU what the backward pass keeps is counted; gradients and temporary results take as much again."""


def replicas_that_fit(epoch: Callable[[], None], device: torch.device) -> int:
    """At least 1. `epoch` runs one epoch of one replica on the device and leaves nothing behind."""
    measure = _peak_on_gpu if device.type == "cuda" else _kept_on_cpu
    return max(1, int(_USABLE * free_memory(device)) // max(1, measure(epoch, device)))


def fits(task: NodeTask, device: torch.device) -> bool:
    """Whether the graph and dense features may live on the device, with as much room left for what is computed."""
    if device.type == "cpu":
        return True
    features = 0 if sp.issparse(task.features) else 4 * task.features.size
    return features + _BYTES_PER_EDGE * task.num_edges < free_memory(device) // 2


def take_share(share: float) -> None:
    """Leave the rest of all memory to the processes that work beside this one."""
    global _share
    _share = share


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still take."""
    free, total = _on_gpu(device) if device.type == "cuda" else _on_cpu()
    return min(free, int(_share * total))


def _on_gpu(device: torch.device) -> tuple[int, int]:
    free, total = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)), int(total)


def _on_cpu() -> tuple[int, int]:
    return free_of_cpu(), all_memory()


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
