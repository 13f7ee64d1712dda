"""The processes that train one model together: a process group of torch, if there is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from g3nn.base.errors import G3NNError, Problems, refuse

T = TypeVar("T")

_STARTED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""The variables that torchrun sets for each process that it starts."""


@dataclass(frozen=True)
class Workers:
    """This process, the one numbered `rank`, among the `size` that train together. Alone, nothing is exchanged."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Workers:
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this is the process that reports and writes for all."""
        return self.rank == 0

    @staticmethod
    def exchanges(device: torch.device) -> bool:
        """Whether the group has a backend for tensors on this device."""
        backends = dist.get_backend_config().split(",")
        return any(backend.partition(":")[0] == device.type for backend in backends)

    def sum(self, tensor: Tensor) -> Tensor:
        """Over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        """Over the processes, in place."""
        return self.sum(tensor).div_(self.size) if self.size > 1 else tensor

    def as_first(self, tensor: Tensor) -> Tensor:
        """What the first process has, in place: rounding may differ between machines, decisions may not."""
        if self.size > 1:
            dist.broadcast(tensor, src=0)
        return tensor

    def told(self, find: Callable[[], T]) -> T:
        """What `find` gives in the first process, which alone calls it, for all. They also share its errors."""
        if self.size == 1:
            return find()
        found: list[Any] = [None, None]
        if self.leads:
            try:
                found[0] = find()
            except G3NNError as error:
                found[1] = error
        dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise found[1]
        return found[0]

    def averaged(self, model: nn.Module, function: Callable[..., T], unused: bool) -> Callable[..., T]:
        """A function of the model, such that a backward pass through it leaves the mean gradient of all processes.

        unused: whether some parameters do not enter the result."""
        if self.size == 1 or not any(parameter.requires_grad for parameter in model.parameters()):
            return function
        return DistributedDataParallel(_Called(model, function), find_unused_parameters=unused)


class _Called(nn.Module):
    """A function of a model as a module, as torch wants it."""

    def __init__(self, model: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self._function = function

    def forward(self, *arguments: Any) -> Any:
        return self._function(*arguments)


@contextmanager
def joined_by_torchrun(device: str) -> Iterator[Workers]:
    """Among the processes that torchrun started, each with a GPU of its own unless the device is "cpu"; alone if it did
    not."""
    if (dist.is_available() and dist.is_initialized()) or not all(name in os.environ for name in _STARTED):
        yield Workers.current()
        return
    on_gpu = device != "cpu" and torch.cuda.is_available()
    _check(on_gpu)
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend, rank, size = "cpu:gloo,cuda:nccl" if on_gpu else "gloo", *(int(os.environ[name]) for name in _STARTED[:2])
    dist.init_process_group(backend, store=_store(size), rank=rank, world_size=size)
    try:
        yield Workers.current()
    finally:
        dist.destroy_process_group()


def _store(size: int) -> Any:
    """Where the processes meet, apart from those that torchrun started before and that were killed: the addresses that
    they left there are no longer true. None: where torch says, since only on one machine the count of starts is that of
    all."""
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if not kept or os.environ.get("GROUP_WORLD_SIZE") != "1":
        return None
    parts: Any = dist  # It does not declare its stores.
    whole = parts.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, is_master=False)
    return parts.PrefixStore(f"start-{os.environ['TORCHELASTIC_RESTART_COUNT']}", whole)


def _check(on_gpu: bool) -> None:
    """Whether torch can connect the processes."""
    if not dist.is_available():
        refuse("torchrun", "a torch without torch.distributed", "one with it", "Start one process, or use Linux.")
    problems = Problems()
    has = {"gloo": dist.is_gloo_available(), "nccl": not on_gpu or dist.is_nccl_available()}
    for backend in (name for name, there in has.items() if not there):
        advice = "Use device='cpu'." if backend == "nccl" else "Start one process."
        problems.add("torchrun", f"a torch without {backend}", "one that was built with it", advice)
    here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.cuda.device_count()
    if on_gpu and here > gpus:
        advice = f"Start torchrun with --nproc-per-node {gpus}, or use device='cpu'."
        problems.add("torchrun", f"{here} processes for {gpus} GPUs", "at most one for each GPU", advice)
    problems.raise_if_any()
