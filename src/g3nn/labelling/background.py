"""A learner in a process of its own, so that people go on while it learns, whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from g3nn.base.errors import G3NNError
from g3nn.base.processes import WorkerPool
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
        self._pool: WorkerPool | None = None
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
        if self._pool is not None:
            self._pool.kill()

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
        work = partial(_work, self._make, name, given)
        try:
            self._pool = self._pool or WorkerPool(1)
            asked = self._pool.submit(work)
        except BrokenProcessPool:  # The process has ended since it was last asked.
            self._pool = WorkerPool(1)
            asked = self._pool.submit(work)
        if self._closed:
            self._pool.kill()
            raise RuntimeError("labelling has ended")
        try:
            return asked.result()
        except BrokenProcessPool as error:
            reason = "the process that learns has ended; perhaps there was too little memory"
            raise RuntimeError(reason) from error


_learner: Learner | None = None
"""In the process that learns."""


def _work(make: Callable[[], Learner], name: str, given: tuple[object, ...]) -> Any:
    global _learner
    try:
        _learner = _learner or make()
        return getattr(_learner, name)(*given)
    except Exception as error:  # the page shows what went wrong
        kind = "" if isinstance(error, G3NNError) else f"{type(error).__name__}: "
        raise RuntimeError(f"{kind}{error}") from None
