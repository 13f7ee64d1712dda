"""What runs a job, here or in another process, with its share of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from g3nn.data import load
from g3nn.experiments.job import Job
from g3nn.experiments.records import Record
from g3nn.task import NodeTask
from g3nn.training.memory import take_share

Load = Callable[[str, str], NodeTask]
RunJob = Callable[[Job, str, NodeTask], list[Record]]
"""As `run_job`; tests bring one that does not train."""


def read_all(jobs: Sequence[Job], load: Load) -> None:
    """All data before any training: what is missing should not turn up after hours."""
    for dataset, setting in dict.fromkeys((job.dataset, job.setting) for job in jobs):
        load(dataset, setting)


def in_worker(run: RunJob, job: Job, device: str, threads: int = 1, memory: float = 1.0) -> list[Record]:
    """What a worker does, with its share of the cores and of the memory, whatever the machine has."""
    import numba
    import torch

    take_share(memory)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    return run(job, device, _task(job.dataset, job.setting))


@cache
def _task(dataset: str, setting: str) -> NodeTask:
    """Read once in each worker."""
    return load(dataset, setting)
