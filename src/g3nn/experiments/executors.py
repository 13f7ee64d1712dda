"""Where jobs run: here, in processes of this machine, or on a cluster. All executors look the same to who uses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import TracebackType
from typing import Protocol, Self

from g3nn.data import load
from g3nn.errors import Problems
from g3nn.experiments.executors_processes import ProcessExecutor
from g3nn.experiments.job import Job, run_job
from g3nn.experiments.records import Environment, Record
from g3nn.experiments.worker import RunJob, read_all
from g3nn.training.checks import checked_device

EXECUTORS = ("local", "ray")


class Executor(Protocol):
    """A context: what it holds is given back at the end, however that comes.

    device: "cpu" or "cuda", where the trainings run. workers: how many jobs run at once.
    """

    device: str
    workers: int

    def environment(self) -> Environment:
        """What the trainings run on."""
        ...

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        """Every job with its records, as soon as it is done, in any order."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalExecutor:
    """One job after another in this process. Each task is read once."""

    workers = 1

    def __init__(self, device: str = "auto", run: RunJob = run_job) -> None:
        problems = Problems()
        self.device = checked_device(device, problems).type
        problems.raise_if_any()
        self._device, self._run = device, run
        self._load = cache(load)

    def environment(self) -> Environment:
        return Environment.current(self.device)

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        read_all(jobs, self._load)
        for job in jobs:
            yield job, self._run(job, self._device, self._load(job.dataset, job.setting))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held."""


def check_executor(name: str, device: str, workers: int | None, problems: Problems) -> None:
    """Record what speaks against such an executor, without starting anything."""
    problems.name("executor", name, EXECUTORS)
    if workers is not None and workers < 1:
        problems.add("workers", workers, "a whole number of at least 1")
    if name == "ray":
        from g3nn.experiments.executors_ray import check_ray

        problems.name("device", device, ("auto", "cpu", "cuda"))
        check_ray(problems)
    else:
        checked_device(device, problems)


def make_executor(name: str, device: str = "auto", workers: int | None = None) -> Executor:
    """An executor by name. Raises with everything that speaks against it."""
    problems = Problems()
    check_executor(name, device, workers, problems)
    problems.raise_if_any()
    if name == "ray":
        from g3nn.experiments.executors_ray import RayExecutor

        return RayExecutor(device, workers)
    if workers is not None and workers > 1:
        return ProcessExecutor(device, workers)
    return LocalExecutor(device)
