"""Results of a project: a fit to all answers, written one time after the other."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

from g3nn.labelling.questions import Desk

Json = dict[str, Any]


class Finishing:
    """Writes the results of a project, one time after the other. out: the folder. effort: of the fit."""

    def __init__(self, desk: Desk, out: Path, effort: str) -> None:
        self.desk, self.out, self.effort = desk, out, effort
        self._future: Future[Json] | None = None
        self._written: Any = None

    @property
    def needed(self) -> bool:
        """Whether people have said anything since the last results were written, and enough for a model."""
        known = self.desk.known()
        return known.enough and self._written != (known.labels, known.removed, known.added)

    def start(self) -> Future[Json]:
        if self._future is None or self._future.done():
            known = self.desk.known()
            self._future = self.desk.background.write(known, self.out, self.effort)

            def keep(done: Future[Json]) -> None:
                if not done.cancelled() and done.exception() is None:
                    self._written = known.labels, known.removed, known.added

            self._future.add_done_callback(keep)
        return self._future

    def told(self) -> Json:
        future = self._future
        if future is None:
            return {"status": "none"}
        if not future.done():
            return {"status": "writing"}
        error = None if future.cancelled() else future.exception()
        if error is not None:
            return {"status": "failed", "error": str(error)}
        return {"status": "written", "changed": self.needed, **future.result()}
