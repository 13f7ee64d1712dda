"""Executors by name: in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from g3nn.errors import Problems
from g3nn.experiments.executors_processes import ProcessExecutor
from g3nn.experiments.executors_ray import RayExecutor
from g3nn.experiments.job import Job, run_job
from g3nn.experiments.records import Record
from g3nn.experiments.worker import Executor, RunJob, load_all, task_of
from g3nn.training.checks import checked_device

EXECUTORS = ("local", "ray")


class LocalExecutor(Executor):
    """One job after another in this process."""

    workers = 1

    def __init__(self, device: str = "auto", run: RunJob = run_job) -> None:
        problems = Problems()
        self.device = checked_device(device, problems).type
        problems.raise_if_any()
        self._device, self._run = device, run

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        load_all(jobs)
        for job in jobs:
            yield job, self._run(job, self._device, task_of(job.first.dataset, job.first.setting))


def make_executor(name: str, device: str = "auto", workers: int | None = None) -> Executor:
    """An executor by name, not started yet. Raises with everything that is wrong."""
    problems = Problems()
    problems.name("executor", name, EXECUTORS)
    if workers is not None and workers < 1:
        problems.add("workers", workers, "a whole number of at least 1")
    executor: Executor
    with problems.gathered():
        if name == "ray":
            executor = RayExecutor(device, workers)
        else:
            executor = LocalExecutor(device) if workers in (None, 1) else ProcessExecutor(device, workers)
    problems.raise_if_any()
    return executor
