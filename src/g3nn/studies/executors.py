"""Where jobs run: in this process, in several processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from g3nn.base.errors import DeviceMemoryError, Problems, TrainingError, refuse
from g3nn.base.processes import WorkerPool
from g3nn.base.threads import cores
from g3nn.graph.datasets import DRAWN, load, seeded
from g3nn.graph.task import NodeTask
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Environment, Record
from g3nn.training.checks import checked_device
from g3nn.training.memory import take_share

T = TypeVar("T")

EXECUTORS = ("local", "ray")

RunJob = Callable[[Job, str, NodeTask], list[Record]]
"""Such as `run_job`; tests bring one that does not train."""

Ended = list[Record] | DeviceMemoryError
"""How a job ended: with records, or without memory, which says nothing about its points."""


class Executor(ABC):
    """Where jobs run. A context: what it holds is released at the end, however that comes.

    device: "cpu" or "cuda", where the trainings run. workers: how many jobs run at once. running: those jobs.
    """

    device: str
    workers: int

    def __init__(self, run: RunJob) -> None:
        self.run = run
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
                yield job, self.result(done, f"do a job ({job})")
            except DeviceMemoryError as error:
                yield job, error

    @abstractmethod
    def submit(self, job: Job) -> Future[list[Record]]:
        """Start a job."""

    @abstractmethod
    def result(self, done: Future[T], purpose: str) -> T:
        """What a worker returned. Its errors are raised here."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """End the jobs that are still running."""


@cache
def task_of(dataset: str, setting: str, seed: int = 0) -> NodeTask:
    """Loaded once in each process. seed: of the noise or the split, 0 if they depend on none."""
    if setting in DRAWN:
        sound = task_of(dataset, "standard", seed if seeded(dataset, "standard") else 0)
        return DRAWN[setting](sound, seed=seed).task
    return load(dataset, setting, seed)


def task_for(job: Job) -> NodeTask:
    return task_of(job.first.dataset, job.first.setting, job.task_seed)


def in_worker(run: RunJob, job: Job, device: str, threads: int, memory: float) -> list[Record]:
    """What a worker process does, with its share of the cores and of the memory of the machine."""
    import numba
    import torch

    take_share(memory)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    return run(job, device, task_for(job))


class LocalExecutor(Executor):
    """One job after another in this process or, with more workers, several at once in processes of this machine.

    On a GPU the processes share it: one stack of small models leaves most of it idle. On a CPU they share the cores.
    """

    def __init__(self, device: str = "auto", workers: int = 1, run: RunJob = run_job) -> None:
        super().__init__(run)
        with Problems() as problems:
            self.device = checked_device(device, problems).type
        self.workers, self._device = workers, device
        self._pool: WorkerPool | None = None

    def __enter__(self) -> Self:
        self._pool = WorkerPool(self.workers) if self.workers > 1 else None
        return self

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Ended]]:
        # Before any training: a missing file should not turn up after hours.
        for job in jobs:
            task_for(job)
        yield from super().execute(jobs)

    def submit(self, job: Job) -> Future[list[Record]]:
        if self._pool is not None:
            threads = max(1, cores() // self.workers)
            return self._pool.submit(in_worker, self.run, job, self._device, threads, 1 / self.workers)
        done: Future[list[Record]] = Future()
        try:
            done.set_result(self.run(job, self._device, task_for(job)))
        except DeviceMemoryError as error:
            done.set_exception(error)
        return done

    def result(self, done: Future[T], purpose: str) -> T:
        try:
            return done.result()
        except BrokenProcessPool:
            raise TrainingError(
                f"could not {purpose}: a worker process died, perhaps for lack of memory. Finished trainings are "
                "stored: run again with fewer workers. (A script that starts workers must do so under "
                "if __name__ == '__main__'.)"
            ) from None

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            (self._pool.kill if self.running else self._pool.shutdown)()
        self.running.clear()


class RayExecutor(Executor):
    """Several jobs at once on a `cluster`. Every worker loads its own data; the records come back here.

    Where the cluster has GPUs and the device is not "cpu", each job gets a GPU, or a fraction of one if there are more
    workers than GPUs.
    """

    def __init__(self, device: str = "auto", workers: int | None = None, run: RunJob = run_job) -> None:
        super().__init__(run)
        with Problems() as problems:
            check_cluster(device, problems)
        self.device, self.workers = device, workers or 0

    def __enter__(self) -> Self:
        self._cluster = cluster(self.device, self.workers)
        self.device, self.workers, self._gpus = self._cluster.__enter__()
        return self

    def environment(self) -> Environment:
        """That of one worker: this machine may be a different one."""
        return self.result(self._call(Environment.current, self.device), "describe itself")

    def submit(self, job: Job) -> Future[list[Record]]:
        return self._call(in_worker, self.run, job, self.device, 1, self._gpus or 1.0)

    def result(self, done: Future[T], purpose: str) -> T:
        import ray

        try:
            return done.result()
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, DeviceMemoryError):
                raise cause from None
            raise TrainingError(f"the cluster could not {purpose}: {cause}") from None

    def _call(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Call a function on a worker, with the resources of a job."""
        import ray

        remote = ray.remote(_called).options(num_cpus=1, num_gpus=self._gpus)
        return remote.remote(function, *arguments).future()

    def __exit__(self, *_: object) -> None:
        import ray

        for unfinished in self.running:
            ray.cancel(unfinished.object_ref, force=True)  # type: ignore[attr-defined]
        self.running.clear()
        self._cluster.__exit__(None, None, None)


def _called(function: Callable[..., T], *arguments: object) -> T:
    """For methods, too, which Ray does not call by itself."""
    return function(*arguments)


def check_cluster(device: str, problems: Problems) -> None:
    """Record it if there can be no cluster, or none with this device."""
    problems.name("device", device, ("auto", "cpu", "cuda"))
    if find_spec("ray") is None:
        advice = "Install the extra: pip install 'g3nn[ray]'."
        problems.add("executor", "'ray', but the package ray is not installed", "local", advice)


@contextmanager
def cluster(device: str, workers: int | None) -> Iterator[tuple[str, int, float]]:
    """A connection to the Ray cluster that RAY_ADDRESS names, or to a local one that is started with as many CPUs as
    workers, by default those of this machine. A connection that was there before stays. Yields what `share` says."""
    import ray

    started = not ray.is_initialized()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if started and os.environ.get("RAY_ADDRESS"):
        ray.init(address="auto", **quiet)
    elif started:
        ray.init(address="local", num_cpus=workers or os.cpu_count(), include_dashboard=False, **quiet)
    try:
        yield share(device, workers, ray.cluster_resources())
    finally:
        if started:
            ray.shutdown()


def share(device: str, workers: int | None, resources: Mapping[str, float]) -> tuple[str, int, float]:
    """Where jobs run on a cluster with these resources, how many at once, and the number of GPUs for each of them.

    Raises if the cluster lacks the device.
    """
    gpus = int(resources.get("GPU", 0)) if device != "cpu" else 0
    if gpus:
        jobs = workers or gpus
        return "cuda", jobs, 1 / math.ceil(jobs / gpus)
    if device == "cuda":
        refuse("device", "'cuda'", "cpu", "The cluster has no GPU: use device='cpu' or 'auto'.")
    return "cpu", workers or max(1, int(resources.get("CPU", 1))), 0


def make_executor(name: str, device: str = "auto", workers: int | None = None) -> Executor:
    """An executor by name, not started yet. Raises with everything that is wrong."""
    with Problems() as problems:
        problems.name("executor", name, EXECUTORS)
        if workers is not None and workers < 1:
            problems.add("workers", workers, "a whole number of at least 1")
        with problems.gathered():
            executor = RayExecutor(device, workers) if name == "ray" else LocalExecutor(device, workers or 1)
    return executor
