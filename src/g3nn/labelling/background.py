"""A learner in a process of its own, so that people go on while it learns, whatever happens to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from g3nn.base.errors import G3NNError
from g3nn.labelling.learner import Beliefs, Doubts, Learner, Why
from g3nn.labelling.project import Json
from g3nn.labelling.tables import Known

IDLE, LEARNING, WORKING, WRITING, FAILED = "idle", "learning", "working", "writing", "failed"

PATIENT, MOST_NEW = 50, 5
"""With many labels a new one changes little: the learner waits until one label in 50 is new, but for at most 5 new
labels."""


class Background:
    """Starts the learner, passes on what people say, and holds its last predictions and the results it wrote.

    make: what makes the learner, in its process. out: the folder for results. effort: of the fit that they come from.
    Reasons and edges are answered between two fits, before the next one.
    """

    def __init__(self, make: Callable[[], Learner], out: Path, effort: str) -> None:
        self._make, self.out, self._effort = make, out, effort
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._thread = ThreadPoolExecutor(1, "learner")
        self._closed = False
        self._asked: list[Future[Any]] = []
        self._wanted: Known | None = None
        self._learned: Known | None = None
        self._written: Known | None = None
        self._doubts: Future[Doubts] | None = None
        self._result: Future[Json] | None = None
        self.beliefs: Beliefs | None = None
        self.status, self.trouble = IDLE, ""

    def teach(self, known: Known) -> None:
        """Learn from this as soon as possible, instead of what was to be learned before."""
        self._wanted = known if known.enough else None
        if not self._closed:
            self._thread.submit(self._learn)

    def why(self, row: int) -> Future[Why]:
        return self._ask("why", row)

    def doubts(self) -> Future[Doubts]:
        """It takes long, so a second call meanwhile waits for the same answer."""
        if self._doubts is None or self._doubts.done():
            self._doubts = self._ask("doubts")
        return self._doubts

    def close(self) -> None:
        """At once, in the middle of a fit too."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._stop()

    # Results: a fit to all answers, written one time after the other

    def write(self, known: Known) -> Future[Json]:
        if self._result is None or self._result.done():
            self._result = self._ask("write", known, self.out, self._effort)

            def keep(done: Future[Json]) -> None:
                if not done.cancelled() and done.exception() is None:
                    self._written = known

            self._result.add_done_callback(keep)
        return self._result

    def unwritten(self, known: Known) -> bool:
        """Whether this is enough for a model and not what the last results were written from."""
        return known.enough and self._written != known

    def result(self, known: Known) -> Json:
        """How far the results are, as the page shows it."""
        future = self._result
        if future is None:
            return {"status": "none"}
        if not future.done():
            return {"status": "writing"}
        error = None if future.cancelled() else future.exception()
        if error is not None:
            return {"status": "failed", "error": str(error)}
        return {"status": "written", "changed": self.unwritten(known), **future.result()}

    # The thread that passes requests on, one after the other

    def _ask(self, name: str, *given: object) -> Future[Any]:
        future = self._thread.submit(self._answer, name, *given)
        self._asked.append(future)
        return future

    def _learn(self) -> None:
        self._asked = [future for future in self._asked if not future.done()]
        if self._asked:
            # Requests of people come first.
            self._thread.submit(self._learn)
        elif self._wanted is not None and self._is_news(self._wanted):
            self._learned = self._wanted
            self._answer("learn", self._wanted)

    def _answer(self, name: str, *given: object) -> Any:
        self.status, self.trouble = {"learn": LEARNING, "write": WRITING}.get(name, WORKING), ""
        try:
            result = self._call(name, *given)
        except Exception as error:  # whatever ends a fit must not end labelling
            self.status, self.trouble = FAILED, str(error)
            raise
        if name == "learn":
            self.beliefs = result
        self.status = IDLE
        return result

    def _is_news(self, now: Known) -> bool:
        before = self._learned
        if before is None or not before.same_edges(now) or len(now.labels) < len(before.labels):
            return True
        changed = len(now.new_labels(before))
        fresh = not set(now.labels.values()) <= set(before.labels.values())
        return changed > 0 and (fresh or changed > min(len(now.labels) / PATIENT, MOST_NEW - 1))

    # The process

    def _call(self, name: str, *given: object) -> Any:
        if self._process is None or not self._process.is_alive():
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self._make, theirs, os.getpid()), daemon=True)
            self._process.start()
            theirs.close()
        if self._closed:
            self._stop()
            raise RuntimeError("labelling has ended")
        assert self._pipe is not None
        try:
            self._pipe.send((name, given))
            fine, result = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._stop()
            reason = "the process that learns has ended; perhaps there was too little memory"
            raise RuntimeError(reason) from error
        if not fine:
            raise RuntimeError(result)
        return result

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
