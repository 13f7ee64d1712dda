"""How far a run is: a bar where somebody is watching, else a line for each job."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from g3nn.experiments.job import Job
from g3nn.experiments.records import Record
from g3nn.experiments.schedule import Work


class Tally:
    """What a run has done, what it has left to do, and how long that may take. `workers` jobs run at once."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.stacks = self.trainings = self._stacks_left = 0
        self._left: Counter[tuple[str, str]] = Counter()
        self._done: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)

    def expect(self, work: Work) -> None:
        self._stacks_left, self._left = work.stacks, Counter(work.trainings)

    def add(self, job: Job, records: Sequence[Record]) -> None:
        kind = (job.dataset, job.model)
        self.stacks += 1
        self.trainings += job.size
        self._stacks_left -= 1
        self._left[kind] -= job.size
        self._done[kind] += job.size
        self._seconds[kind] += sum(record.seconds for record in records)

    @property
    def all_stacks(self) -> int:
        return self.stacks + self._stacks_left

    @property
    def all_trainings(self) -> int:
        return self.trainings + sum(self._left.values())

    def time_left(self) -> str:
        """By the mean time of a training so far: of the same dataset and model, else of all. Empty before the first."""
        if not self.trainings:
            return ""
        overall = sum(self._seconds.values()) / self.trainings
        means = {kind: self._seconds[kind] / count for kind, count in self._done.items()}
        seconds = sum(count * means.get(kind, overall) for kind, count in self._left.items())
        return f"{timedelta(seconds=round(seconds / self._workers))} left"


class Watch(Protocol):
    """Called when a round begins, and after each job."""

    def begin(self) -> None: ...

    def done(self, job: Job, records: Sequence[Record]) -> None: ...


@contextmanager
def watching(tally: Tally, show: bool) -> Iterator[Watch]:
    """A bar on a terminal, else lines on standard error; nothing if `show` is false."""
    if not show:
        yield _Silent()
    elif not sys.stderr.isatty():
        yield _Lines(tally)
    else:
        with _bar(tally) as bar:
            yield bar


class _Silent:
    def begin(self) -> None:
        """Nobody is watching."""

    def done(self, job: Job, records: Sequence[Record]) -> None:
        """Nobody is watching."""


class _Lines:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def begin(self) -> None:
        tally = self._tally
        stacks, trainings = tally.all_stacks - tally.stacks, tally.all_trainings - tally.trainings
        self._print(f"to do: {trainings} trainings in about {stacks} stacks")

    def done(self, job: Job, records: Sequence[Record]) -> None:
        seconds = sum(record.seconds for record in records)
        bad = Counter(record.status for record in records if record.status in ("diverged", "failed"))
        notes = "".join(f", {count} {status}" for status, count in sorted(bad.items()))
        position = f"[{self._tally.stacks}/{self._tally.all_stacks}]"
        self._print(f"{position} {job}: {job.size} trainings{notes}, {seconds:.1f} s, {self._tally.time_left()}")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _bar(tally: Tally) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    texts = (TextColumn("trainings,"), TextColumn("{task.fields[stacks]} stacks"), TextColumn("{task.fields[left]}"))
    columns = (BarColumn(bar_width=10), MofNCompleteColumn(), *texts, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=None, stacks="", left="")

        class Bar:
            def begin(self) -> None:
                stacks = f"{tally.stacks}/{tally.all_stacks}"
                bar.update(
                    row,
                    completed=tally.trainings,
                    total=tally.all_trainings,
                    stacks=stacks,
                    left=tally.time_left(),
                )

            def done(self, job: Job, records: Sequence[Record]) -> None:
                self.begin()

        yield Bar()
