"""Processes that work for this one, and end with it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context, parent_process
from threading import Thread


class WorkerPool(ProcessPoolExecutor):
    """A pool whose processes leave interrupts to this one, and end when it is killed.

    They are spawned: a forked process could not use a GPU that this one has touched.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers, mp_context=get_context("spawn"), initializer=_begin)
        self._others = set(active_children())

    def kill(self) -> None:
        """End the processes at once, in the middle of their work too."""
        for child in set(active_children()) - self._others:
            child.kill()
        self.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    starter = parent_process()
    assert starter is not None
    starter.join()
    os._exit(1)
