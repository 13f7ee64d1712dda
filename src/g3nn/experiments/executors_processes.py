"""Jobs in processes of this machine, several at once on its cores or on its GPU."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from types import TracebackType
from typing import Self

from g3nn.data import load
from g3nn.errors import Problems, TrainingError
from g3nn.experiments.job import Job, run_job
from g3nn.experiments.records import Environment, Record
from g3nn.experiments.worker import RunJob, in_worker, read_all
from g3nn.training.checks import checked_device


class ProcessExecutor:
    """As many jobs at once as there are workers, each in a process of its own; records come back here.

    On a GPU the processes share it: one stack of small models leaves most of it idle. On a CPU they share the cores.
    """

    def __init__(self, device: str = "auto", workers: int = 2, run: RunJob = run_job) -> None:
        problems = Problems()
        self.device = checked_device(device, problems).type
        problems.raise_if_any()
        self.workers, self._device, self._run = workers, device, run
        self._load = cache(load)
        self._running: dict[Future[list[Record]], Job] = {}
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        self._others = set(active_children())
        # A forked process could not use a GPU that this one has touched.
        self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_begin)
        return self

    def environment(self) -> Environment:
        return Environment.current(self.device)

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        read_all(jobs, self._load)
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        waiting, running = deque(jobs), self._running
        while waiting or running:
            while waiting and len(running) < self.workers:
                job = waiting.popleft()
                done = self._pool.submit(in_worker, self._run, job, self._device, threads, 1 / self.workers)
                running[done] = job
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(done)
                yield job, _answer(done, job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running or kind is not None:
            for child in set(active_children()) - self._others:
                child.terminate()
        self._running.clear()
        self._pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """An interrupt is for the process that started this one, which ends it; if it is killed, this one follows."""
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
            f"{job}: a process came to a sudden end, perhaps for lack of memory. What is done is kept: start again "
            "with fewer workers. (A script that starts workers must do so under if __name__ == '__main__'.)"
        ) from None
