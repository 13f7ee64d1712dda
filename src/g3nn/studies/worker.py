"""What all executors share: the loop over jobs, the data of a job, and what a worker process does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from typing import Any, Self

from g3nn.base.errors import DeviceMemoryError
from g3nn.graph.datasets import NOISE, load, seeded
from g3nn.graph.task import NodeTask
from g3nn.studies.job import Job
from g3nn.studies.records import Environment, Record
from g3nn.training.memory import take_share

RunJob = Callable[[Job, str, NodeTask], list[Record]]
"""Such as `run_job`; tests bring one that does not train."""

Ended = list[Record] | DeviceMemoryError
"""How a job ended that says something about its points, or nothing."""


class Executor(ABC):
    """Where jobs run. A context: what it holds is released at the end, however that comes.

    device: "cpu" or "cuda", where the trainings run. workers: how many jobs run at once. running: those jobs.
    """

    device: str
    workers: int

    def __init__(self) -> None:
        self.running: dict[Future[list[Record]], Job] = {}

    def environment(self) -> Environment:
        """What the trainings run on."""
        return Environment.current(self.device)

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Ended]]:
        """Every job with its records, or that it found no memory, as soon as it is done, in any order."""
        waiting = deque(jobs)
        while waiting or self.running:
            while waiting and len(self.running) < self.workers:
                job = waiting.popleft()
                self.running[self.submit(job)] = job
            done = wait(self.running, return_when=FIRST_COMPLETED).done.pop()
            job = self.running.pop(done)
            try:
                ended: Ended = self.result(done, f"do a job ({job})")
            except DeviceMemoryError as error:
                ended = error
            yield job, ended

    @abstractmethod
    def submit(self, job: Job) -> Future[list[Record]]:
        """Start a job."""

    def result(self, done: Future[Any], purpose: str) -> Any:
        """What a worker returned. Its errors are raised here."""
        return done.result()

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """End the jobs that are still running."""


@cache
def task_of(dataset: str, setting: str, seed: int = 0) -> NodeTask:
    """Loaded once in each process. seed: of the noise or the split, 0 if they depend on none."""
    if setting in NOISE:
        sound = task_of(dataset, "standard", seed if seeded(dataset, "standard") else 0)
        return NOISE[setting](sound, seed=seed).task
    return load(dataset, setting, seed)


def task_for(job: Job) -> NodeTask:
    return task_of(job.first.dataset, job.first.setting, job.task_seed)


def in_worker(run: RunJob, job: Job, device: str, threads: int = 1, memory: float = 1.0) -> list[Record]:
    """What a worker process does, with its share of the cores and of the memory of the machine."""
    import numba
    import torch

    take_share(memory)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    return run(job, device, task_for(job))
