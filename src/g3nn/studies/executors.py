"""Executors by name: on this machine, or on a Ray cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any, Self

from g3nn.base.errors import DeviceMemoryError, Problems, TrainingError
from g3nn.base.threads import cores
from g3nn.studies.executors_ray import RayExecutor
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Record
from g3nn.studies.worker import Ended, Executor, RunJob, in_worker, task_for
from g3nn.training.checks import checked_device

EXECUTORS = ("local", "ray")


class LocalExecutor(Executor):
    """One job after another in this process or, with more workers, several at once in processes of this machine.

    On a GPU the processes share it: one stack of small models leaves most of it idle. On a CPU they share the cores.
    """

    def __init__(self, device: str = "auto", workers: int = 1, run: RunJob = run_job) -> None:
        super().__init__()
        problems = Problems()
        self.device = checked_device(device, problems).type
        problems.raise_if_any()
        self.workers, self._device, self._run = workers, device, run
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        self._others = set(active_children())
        if self.workers > 1:
            # A forked process could not use a GPU that this one has touched.
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_begin)
        return self

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Ended]]:
        # Before any training: a missing file should not turn up after hours.
        for job in jobs:
            task_for(job)
        yield from super().execute(jobs)

    def submit(self, job: Job) -> Future[list[Record]]:
        if self._pool is not None:
            threads = max(1, cores() // self.workers)
            return self._pool.submit(in_worker, self._run, job, self._device, threads, 1 / self.workers)
        done: Future[list[Record]] = Future()
        try:
            done.set_result(self._run(job, self._device, task_for(job)))
        except DeviceMemoryError as error:
            done.set_exception(error)
        return done

    def result(self, done: Future[Any], purpose: str) -> Any:
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
            for child in set(active_children()) - self._others if self.running else ():
                child.terminate()
            self._pool.shutdown(cancel_futures=True)
        self.running.clear()


def _begin() -> None:
    """Leave interrupts to the process that started this one, and end when that process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    starter = parent_process()
    assert starter is not None
    starter.join()
    os._exit(1)


def make_executor(name: str, device: str = "auto", workers: int | None = None) -> Executor:
    """An executor by name, not started yet. Raises with everything that is wrong."""
    problems = Problems()
    problems.name("executor", name, EXECUTORS)
    if workers is not None and workers < 1:
        problems.add("workers", workers, "a whole number of at least 1")
    with problems.gathered():
        executor = RayExecutor(device, workers) if name == "ray" else LocalExecutor(device, workers or 1)
    problems.raise_if_any()
    return executor
