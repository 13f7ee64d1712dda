"""A learner in a process of its own, so that people go on while it learns, whatever happens to it."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from g3nn.base.errors import G3NNError
from g3nn.labelling.learner import Beliefs, Doubts, Known, Learner, Why

IDLE, LEARNING, WORKING, WRITING, FAILED = "idle", "learning", "working", "writing", "failed"

PATIENT, MOST_NEW = 50, 5
"""With many labels a new one changes little: the learner waits for a share of one in so many, but not for more than so
many new labels."""


@dataclass(frozen=True)
class Job:
    name: str
    given: tuple[Any, ...]
    future: Future[Any]


class Background:
    """Starts the learner, tells it what people say, and holds what it believed last.

    make: what makes the learner, in its process. Reasons and edges are answered between two fits, before the next one.
    """

    def __init__(self, make: Callable[[], Learner]) -> None:
        self._make = make
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._wake = threading.Condition()
        self._jobs: list[Job] = []
        self._wanted: Known | None = None
        self._learned: Known | None = None
        self._doubts: Future[Doubts] | None = None
        self._closed = False
        self.beliefs: Beliefs | None = None
        self.status, self.trouble, self.since = IDLE, "", time.time()
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)
        self._thread.start()

    def teach(self, known: Known) -> None:
        """Learn from this as soon as possible, instead of what was to be learned before."""
        with self._wake:
            self._wanted = known if known.enough else None
            self._wake.notify()

    def why(self, row: int) -> Future[Why]:
        return self._ask("why", row)

    def doubts(self) -> Future[Doubts]:
        """It takes long, so who asks again meanwhile waits for the same answer."""
        if self._doubts is None or self._doubts.done():
            self._doubts = self._ask("doubts")
        return self._doubts

    def write(self, known: Known, out: Path, effort: str) -> Future[dict[str, Any]]:
        return self._ask("write", known, out, effort)

    def close(self) -> None:
        """At once, in the middle of a fit too."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._stop()

    def _ask(self, name: str, *given: Any) -> Future[Any]:
        job = Job(name, given, Future())
        with self._wake:
            self._jobs.append(job)
            self._wake.notify()
        return job.future

    def _run(self) -> None:
        while (job := self._next()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            self._tell({"learn": LEARNING, "write": WRITING}.get(job.name, WORKING))
            try:
                result = self._answer(job)
            except Exception as error:  # whatever ends a fit must not end labelling
                job.future.set_exception(error)
                self._tell(FAILED, str(error))
            else:
                if job.name == "learn":
                    self.beliefs = result
                job.future.set_result(result)
                self._tell(IDLE)

    def _next(self) -> Job | None:
        """What to do now; None at the end."""
        with self._wake:
            while True:
                if self._closed:
                    for job in self._jobs:
                        job.future.cancel()
                    return None
                if self._jobs:
                    return self._jobs.pop(0)
                if self._wanted is not None and self._is_news(self._wanted):
                    self._learned = self._wanted
                    return Job("learn", (self._wanted,), Future())
                self._wake.wait()

    def _is_news(self, known: Known) -> bool:
        if self._learned is None:
            return True
        before, now = self._learned, known
        if (before.removed, before.added) != (now.removed, now.added) or len(now.labels) < len(before.labels):
            return True
        changed = sum(before.labels.get(row) != label for row, label in now.labels.items())
        fresh = not set(now.labels.values()) <= set(before.labels.values())
        return changed > 0 and (fresh or changed > min(len(now.labels) / PATIENT, MOST_NEW - 1))

    def _tell(self, status: str, trouble: str = "") -> None:
        self.status, self.trouble, self.since = status, trouble, time.time()

    # The process

    def _answer(self, job: Job) -> Any:
        if self._process is None or not self._process.is_alive():
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send((job.name, job.given))
            fine, result = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._stop()
            reason = "the process that learns has ended; perhaps there was too little memory"
            raise RuntimeError(reason) from error
        if not fine:
            raise RuntimeError(result)
        return result

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._make, theirs, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()

    def _stop(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.join(10)
        if pipe is not None:
            pipe.close()


def _serve(make: Callable[[], Learner], pipe: Connection, parent: int) -> None:
    """Answer until the other side hangs up, or dies."""
    import signal

    # Control-C in the terminal is for the server, which then ends this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    learner: Learner | None = None
    while True:
        try:
            name, given = pipe.recv()
        except EOFError:
            return
        try:
            learner = learner or make()
            result: tuple[bool, Any] = True, getattr(learner, name)(*given)
        except G3NNError as error:
            result = False, str(error)
        except Exception as error:  # the page shows what went wrong
            result = False, f"{type(error).__name__}: {error}"
        pipe.send(result)


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
