"""What a computation gets of the machine: threads, how they wait for each other, and memory. Nothing that the user set
is overridden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""How a user tells OpenMP what an idle thread does."""

_GRAIN = 4000
"""Nodes, edges and stored feature values (see `NodeTask.extent`) that are worth a thread. With less, threads wait for
each other longer than they work."""

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
"""The limit of a container, what it has taken, and of that the parts; in version 2 and in version 1 of cgroups."""


def wait_passively() -> None:
    """Idle threads sleep. By default they spin for milliseconds, on cores that other processes may need.

    OpenMP reads this when it is loaded, so it must be said before torch and numba are imported.
    """
    if not any(name in os.environ for name in _WAITING):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def cores(cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use: by its affinity, and by the quota of its container."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return allowed if quota is None else max(1, min(allowed, round(quota)))


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time, as version 2 or version 1 of cgroups says it; None for no limit."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return None
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def free_memory(cgroup: Path = _CGROUP) -> int:
    """Bytes that this process may still take, of the machine and of its container; half of all if nobody says."""
    free, information = all_memory() // 2, Path("/proc/meminfo")
    if information.exists():
        free = 1024 * _counts(information)["MemAvailable:"]
    for limit, usage, statistics in _MEMORY_FILES:
        try:
            bound = int((cgroup / limit).read_text()) - int((cgroup / usage).read_text())
            # Pages of files that nobody needs are given up for others.
            free = min(free, bound + _counts(cgroup / statistics)["inactive_file"])
        except (OSError, ValueError, KeyError):
            continue
    return max(free, 0)


def all_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _counts(path: Path) -> dict[str, int]:
    """The numbers in a file of the system that has a name and a number in each line."""
    return {name: int(number) for name, number, *_ in map(str.split, path.read_text().splitlines())}


@contextmanager
def enough_for(extent: int, replicas: int = 1) -> Iterator[None]:
    """As many threads as work on a graph of this extent keeps busy, of those allowed; afterwards as before.

    Allowed are as many as torch has, which knows OMP_NUM_THREADS and `torch.set_num_threads`, and as there are cores,
    unless OMP_NUM_THREADS was set. The kernels in numba give the same bits with any number of threads. A dense product
    in torch does not, so how many threads torch gets does not depend on how many replicas train beside each other.
    """
    import torch

    # Read before numba starts its threads, for that resets the number of torch.
    before = torch.get_num_threads()
    allowed = before if "OMP_NUM_THREADS" in os.environ else min(before, cores())
    numba = _numba()
    numba_before = numba.get_num_threads() if numba is not None else 1
    try:
        torch.set_num_threads(_useful(extent, allowed))
        if numba is not None:
            numba.set_num_threads(_useful(extent * replicas, min(allowed, numba_before)))
        yield
    finally:
        torch.set_num_threads(before)
        if numba is not None:
            numba.set_num_threads(numba_before)


def _useful(extent: int, allowed: int) -> int:
    return max(1, min(allowed, extent // _GRAIN))


def _numba() -> ModuleType | None:
    try:
        import numba
    except ModuleNotFoundError:
        return None
    return numba
