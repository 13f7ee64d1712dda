"""What a computation gets of the machine: threads, how they wait for each other and what is left of them after a fork,
and memory. Nothing that the user set is overridden."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""How a user tells OpenMP what an idle thread does."""

_GRAIN = 4000
"""Nodes, edges and stored feature values (see `NodeTask.extent`) that are worth a thread. With less, threads wait for
each other longer than they work."""

CGROUP = Path("/sys/fs/cgroup")
"""Where a container finds its limits."""

_forked = False
_threaded = False
"""Whether this process had several threads when it last forked."""
_lock = Lock()


def wait_passively() -> None:
    """Idle threads sleep. By default they spin for milliseconds, on cores that other processes may need.

    OpenMP reads this when it is loaded, so it must be said before torch and numba are imported.
    """
    if not any(name in os.environ for name in _WAITING):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def cores(cgroup: Path = CGROUP) -> int:
    """Cores that this process may use: by its affinity, and by the quota of its container."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return allowed if quota is None else max(1, min(allowed, round(quota)))


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time, as version 2 or version 1 of cgroups says it; None for no limit."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        # "max" is no number.
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = " ".join((cgroup / name).read_text() for name in files).split()
            share = int(quota) / int(period)
            return share if share > 0 else None
    return None


def host_memory(proc: Path = Path("/proc"), cgroup: Path = CGROUP) -> tuple[int, int]:
    """Free and total bytes: those of the machine, or those of the narrowest control group that this process is in."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    information = proc / "meminfo"
    free = total // 2
    if information.exists():
        free = 1024 * _fields(information)["MemAvailable:"]
    for limit, used in _limits(proc, cgroup):
        free, total = min(free, max(0, limit - used)), min(total, limit)
    return free, total


_LIMITS = (
    ("0", "", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""By version of control groups: its line in /proc/self/cgroup, its folder, and the names of limit, use and, in
memory.stat, of what was read from files and is given back as soon as memory is needed."""


def _limits(proc: Path, cgroup: Path) -> Iterator[tuple[int, int]]:
    """The limit and use of every control group that holds this process. A container may see its own as the root."""
    try:
        lines = [line.split(":", 2) for line in (proc / "self" / "cgroup").read_text().splitlines()]
    except OSError:
        lines = []
    for controller, folder, limit, use, cached in _LIMITS:
        root = cgroup / folder
        own = next((path for number, names, path in lines if controller in (number, *names.split(","))), "/")
        place = root / own.strip("/")
        for group in (place, *place.parents):
            # "max" is no number, and so is a file that is not there.
            with suppress(OSError, ValueError):
                most, used = (int((group / name).read_text()) for name in (limit, use))
                with suppress(OSError, ValueError):
                    used -= _fields(group / "memory.stat").get(cached, 0)
                yield most, used
            if group == root:
                break


def _fields(file: Path) -> dict[str, int]:
    """Of a file whose lines are a name and a number."""
    return {name: int(number) for name, number, *_ in map(str.split, file.read_text().splitlines())}


@contextmanager
def enough_for(extent: int, replicas: int = 1) -> Iterator[None]:
    """As many threads as work on a graph of this extent keeps busy, of those allowed; afterwards as before.

    Allowed are as many as torch has, which follows OMP_NUM_THREADS and `torch.set_num_threads`, and as there are cores,
    unless OMP_NUM_THREADS was set. The kernels in numba give the same bits with any number of threads. A dense product
    in torch does not, so how many threads torch gets does not depend on how many replicas train beside each other.
    """
    import numba
    import torch

    # Read before numba starts its threads, for that resets the number of torch.
    before = torch.get_num_threads()
    allowed = before if "OMP_NUM_THREADS" in os.environ else min(before, cores())
    numba_before = 1 if _forked else numba.get_num_threads()
    try:
        torch.set_num_threads(_useful(extent, allowed))
        if not _forked:
            numba.set_num_threads(_useful(extent * replicas, min(allowed, numba_before)))
        yield
    finally:
        torch.set_num_threads(before)
        if not _forked:
            numba.set_num_threads(numba_before)


def _useful(extent: int, allowed: int) -> int:
    return max(1, min(allowed, extent // _GRAIN))


def forked() -> bool:
    """Whether this process was forked from one with several threads, which did not come along. If they were those of
    OpenMP, it would wait for them for ever, so one thread must do."""
    return _forked


def turn() -> AbstractContextManager[object]:
    """A context for parallel kernels of numba. Those of its own pool, which it takes where there is neither TBB nor
    OpenMP, run one after the other: it ends the process if two threads use that pool at once."""
    return nullcontext() if _layer() in ("tbb", "omp") else _lock


def _layer() -> str:
    """What numba's parallel kernels run on; nothing before the first of them."""
    try:
        return str(sys.modules["numba"].threading_layer())
    except (KeyError, AttributeError, ValueError):
        return ""


def _before_fork() -> None:
    global _threaded
    try:
        _threaded = len(os.listdir("/proc/self/task")) > 1
    except OSError:
        _threaded = True  # not Linux, where it cannot be counted


def _after_fork() -> None:
    global _forked, _lock
    _lock = Lock()  # another thread may have held it
    _forked = _forked or _layer() != "" or (_threaded and "torch" in sys.modules)
    if _forked and (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
