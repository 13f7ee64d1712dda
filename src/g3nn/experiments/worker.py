"""What all executors share: the contract, the data of a job, and the way jobs are spread over workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Self, TypeVar

from g3nn.data import load
from g3nn.experiments.job import Job
from g3nn.experiments.records import Environment, Record
from g3nn.task import NodeTask
from g3nn.training.memory import take_share

RunJob = Callable[[Job, str, NodeTask], list[Record]]
"""Such as `run_job`; tests bring one that does not train."""

Handle = TypeVar("Handle")


class Executor(ABC):
    """Where jobs run. A context: what it holds is released at the end, however that comes.

    device: "cpu" or "cuda", where the trainings run. workers: how many jobs run at once.
    """

    device: str
    workers: int

    def environment(self) -> Environment:
        """What the trainings run on."""
        return Environment.current(self.device)

    @abstractmethod
    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        """Every job with its records, as soon as it is done, in any order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def load_all(jobs: Sequence[Job]) -> None:
    """Load all data before any training: a missing file should not turn up after hours."""
    for dataset, setting in dict.fromkeys((job.first.dataset, job.first.setting) for job in jobs):
        task_of(dataset, setting)


@cache
def task_of(dataset: str, setting: str) -> NodeTask:
    """Loaded once in each process."""
    return load(dataset, setting)


def spread(
    jobs: Sequence[Job],
    workers: int,
    running: dict[Handle, Job],
    submit: Callable[[Job], Handle],
    first_done: Callable[[list[Handle]], Handle],
) -> Iterator[tuple[Job, Handle]]:
    """Keep `workers` jobs running until all are done. `running` holds those that are under way."""
    waiting = deque(jobs)
    while waiting or running:
        while waiting and len(running) < workers:
            job = waiting.popleft()
            running[submit(job)] = job
        handle = first_done(list(running))
        yield running.pop(handle), handle


def in_worker(run: RunJob, job: Job, device: str, threads: int = 1, memory: float = 1.0) -> list[Record]:
    """What a worker process does, with its share of the cores and of the memory of the machine."""
    import numba
    import torch

    take_share(memory)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    return run(job, device, task_of(job.first.dataset, job.first.setting))
