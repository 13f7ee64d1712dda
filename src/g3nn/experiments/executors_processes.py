"""Jobs in processes of this machine, several at once on its cores or on its GPU."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Self

from g3nn.errors import Problems, TrainingError
from g3nn.experiments.job import Job, run_job
from g3nn.experiments.records import Record
from g3nn.experiments.worker import Executor, RunJob, in_worker, load_all, spread
from g3nn.training.checks import checked_device


class ProcessExecutor(Executor):
    """Several jobs at once, each in its own process; the records come back here.

    On a GPU the processes share it: one stack of small models leaves most of it idle. On a CPU they share the cores.
    """

    def __init__(self, device: str = "auto", workers: int = 2, run: RunJob = run_job) -> None:
        problems = Problems()
        self.device = checked_device(device, problems).type
        problems.raise_if_any()
        self.workers, self._device, self._run = workers, device, run
        self._running: dict[Future[list[Record]], Job] = {}
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        self._others = set(active_children())
        # A forked process could not use a GPU that this one has touched.
        self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_begin)
        return self

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        load_all(jobs)
        threads = max(1, (os.cpu_count() or 1) // self.workers)

        def submit(job: Job) -> Future[list[Record]]:
            return self._pool.submit(in_worker, self._run, job, self._device, threads, 1 / self.workers)

        for job, done in spread(jobs, self.workers, self._running, submit, _first_done):
            yield job, _answer(done, job)

    def __exit__(self, *_: object) -> None:
        if self._running:
            for child in set(active_children()) - self._others:
                child.terminate()
        self._running.clear()
        self._pool.shutdown(cancel_futures=True)


def _first_done(futures: list[Future[list[Record]]]) -> Future[list[Record]]:
    return next(iter(wait(futures, return_when=FIRST_COMPLETED).done))


def _begin() -> None:
    """Leave interrupts to the process that started this one, and end when that process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    starter = parent_process()
    assert starter is not None
    starter.join()
    os._exit(1)


def _answer(done: Future[list[Record]], job: Job) -> list[Record]:
    try:
        return done.result()
    except BrokenProcessPool:
        raise TrainingError(
            f"{job}: a worker process died, perhaps for lack of memory. Finished trainings are stored: run again with "
            "fewer workers. (A script that starts workers must do so under if __name__ == '__main__'.)"
        ) from None
