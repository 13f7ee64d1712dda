"""How a training reports its progress: a bar with its terms, one bar for a whole fit, and lines in the log; and how it
is asked to end."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from g3nn.base.errors import warn_caller
from g3nn.training.stack import Stack
from g3nn.training.tracking import Run, Tracker

_SHOWN = {"graph": "graph", "supervised": "sup", "val_loss": "val", "val_score": "score"}
_EVERY = 10
_SECONDS = 5.0
"""Between two lines where no bar can be drawn."""
_ASKED: list[int] = []
"""The signals that asked a training to end; they belong to the process."""


Watch = Callable[[Stack, int], None]
"""Called after each step, with the number of trials that it finished."""


@contextmanager
def monitor(title: str, trials: int, show: bool | None) -> Iterator[Watch]:
    """A bar that counts finished trials. `show`: None shows it only on a terminal."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda stack, finished: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(10), MofNCompleteColumn(), "{task.fields[terms]}", TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=trials, terms="")

        def update(stack: Stack, finished: int) -> None:
            if finished or stack.epoch % _EVERY == 0:
                latest = stack.latest
                values = " ".join(f"{short} {latest[name]:.2f}" for name, short in _SHOWN.items())
                bar.update(job, advance=finished, terms=f"epoch {stack.epoch} {values}")

        yield update


class Interrupted(KeyboardInterrupt):
    """Somebody asked a training to end."""


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Within, a first control-C or SIGTERM ends a training at its next step, so that what was learned before may be
    kept; a second one ends everything at once. Gives the signals that came."""

    def ask(number: int, _: object) -> None:
        _ASKED.append(number)
        if len(_ASKED) > 1:
            raise KeyboardInterrupt
        say("interrupted: the best model so far will answer, if there is one; interrupt again to stop at once")

    before = {one: signal.signal(one, ask) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield _ASKED
    finally:
        for one, former in before.items():
            signal.signal(one, former)
        _ASKED.clear()


def _lines() -> Callable[[str, float], None]:
    """Says how far a fit is every few seconds."""
    start = told = time.monotonic()

    def tell(words: str, at: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _SECONDS:
            told = now
            say(f"{words}: {at:.0%} of the fit after {now - start:.0f} s")

    return tell


class Course:
    """Several trainings, in stages with plain words. tell: gets the stage and how far everything is, if anyone listens.

    To the trainings it is also a tracker, which numbers their runs and adds the stage.
    """

    def __init__(self, tell: Callable[[str, float], None] | None = None, track: Tracker | None = None) -> None:
        self._tell, self._track = tell, track
        self._words, self._runs, self._keeps, self.interrupted = "", 0, False, False
        self._at = self._end = self._each = 0.0

    def stage(self, words: str, until: float, trainings: int, keeps: bool = False) -> None:
        """What comes next, which share of the whole will then be done, and how many trainings that takes. keeps:
        whether a training that somebody asks to end keeps what it has learned."""
        self._keeps = keeps
        self._at, self._end, self._each = self._end, until, (until - self._end) / trainings
        self._words = words
        self._show(self._at)

    @property
    def track(self) -> Tracker | None:
        return None if self._track is None else self

    @property
    def over(self) -> bool:
        """Whether the trainings of the stage end with what they have learned."""
        return self._keeps and self.interrupted

    def begin(self, name: str, options: Mapping[str, object]) -> Run:
        """The next run. If the tracker fails after the first one, the fit goes on without it."""
        assert self._track is not None
        self._runs += 1
        try:
            return self._track.begin(f"{self._runs:03d} {self._words} {name}", {"stage": self._words, **options})
        except Exception as error:
            if self._runs == 1:
                raise
            warn_caller(f"tracking has ended, training goes on: {error}")
            self._track = None
            return _Untold()

    @contextmanager
    def training(self, epochs: int) -> Iterator[Watch]:
        """One training of the stage. epochs: the limit; it may stop early."""
        start = self._at

        def update(stack: Stack, finished: int) -> None:
            if _ASKED and not self.interrupted:
                self.interrupted = True
                if not self._keeps:
                    raise Interrupted
            if stack.epoch % _EVERY == 0:
                self._show(start + self._each * min(1.0, stack.epoch / epochs))

        yield update
        self._show(start + self._each)

    def _show(self, at: float) -> None:
        # Where memory is short a training takes several stacks, each from its first epoch on.
        self._at = min(max(self._at, at), self._end)
        if self._tell is not None:
            self._tell(self._words, self._at)


class _Untold:
    """A run without a tracker."""

    def values(self, epoch: int, values: Mapping[str, float]) -> None:
        pass

    def end(self, results: Mapping[str, float] | None) -> None:
        pass


@contextmanager
def course(show: bool, track: Tracker | None = None) -> Iterator[Course]:
    """A bar with the time left, if it is wanted; lines where there is no terminal."""
    if not show or not sys.stderr.isatty():
        yield Course(_lines() if show else None, track)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(30), TimeElapsedColumn(), "gone,", TimeRemainingColumn(), "left")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=1.0)
        yield Course(lambda words, at: bar.update(row, completed=at, description=words), track)


def say(text: str) -> None:
    """To the log "g3nn"; to standard error if no log was set up."""
    log = logging.getLogger("g3nn")
    if log.hasHandlers():
        log.info(text)
    else:
        record = log.makeRecord(log.name, logging.INFO, __file__, 0, text, (), None)
        logging.StreamHandler().handle(record)
