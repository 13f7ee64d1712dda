"""How far a run is: a bar on a terminal, else a line for each job."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from g3nn.studies.job import Job
from g3nn.studies.records import Record

Tell = Callable[[Job | None, Sequence[Record]], None]
"""Called after each job with its records, and with None when a new round of jobs begins."""


class Tally:
    """What a run has done, what is left, and how long that may take. `workers` jobs run at once."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.stacks = self.trainings = self.stacks_left = 0
        self._left: Counter[tuple[str, str]] = Counter()
        self._done: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)

    def expect(self, stacks: int, trainings: Mapping[tuple[str, str], int]) -> None:
        """What is left now; trainings by dataset and model."""
        self.stacks_left, self._left = stacks, Counter(trainings)

    def add(self, job: Job, records: Sequence[Record]) -> None:
        """records: none if the job was put off."""
        kind = (job.first.dataset, job.first.model)
        self.stacks_left -= 1
        self._left[kind] -= job.size
        if not records:
            return
        self.stacks += 1
        self.trainings += job.size
        self._done[kind] += job.size
        self._seconds[kind] += sum(record.seconds for record in records)

    @property
    def trainings_left(self) -> int:
        return sum(self._left.values())

    @property
    def position(self) -> str:
        return f"{self.stacks}/{self.stacks + self.stacks_left}"

    def time_left(self) -> str:
        """By the mean time of trainings of the same dataset and model, else of all. Empty before the first."""
        if not self.trainings:
            return ""
        overall = sum(self._seconds.values()) / self.trainings
        means = {kind: self._seconds[kind] / count for kind, count in self._done.items()}
        seconds = sum(count * means.get(kind, overall) for kind, count in self._left.items())
        return f"{timedelta(seconds=round(seconds / self._workers))} left"


@contextmanager
def watching(tally: Tally) -> Iterator[Tell]:
    """A bar on a terminal, else lines on standard error."""
    if not sys.stderr.isatty():
        yield lambda job, records: print(_line(tally, job, records), file=sys.stderr, flush=True)
    else:
        with _bar(tally) as tell:
            yield tell


def _line(tally: Tally, job: Job | None, records: Sequence[Record]) -> str:
    if job is None:
        return f"to do: {tally.trainings_left} trainings in about {tally.stacks_left} stacks"
    if not records:
        return f"[{tally.position}] {job}: no memory for {job.size} trainings, which are put off"
    seconds = sum(record.seconds for record in records)
    bad = Counter(record.status for record in records if record.status in ("diverged", "failed"))
    notes = "".join(f", {count} {status}" for status, count in sorted(bad.items()))
    return f"[{tally.position}] {job}: {job.size} trainings{notes}, {seconds:.1f} s, {tally.time_left()}"


@contextmanager
def _bar(tally: Tally) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    texts = (TextColumn("trainings,"), TextColumn("{task.fields[stacks]} stacks"), TextColumn("{task.fields[left]}"))
    columns = (BarColumn(bar_width=10), MofNCompleteColumn(), *texts, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=None, stacks="", left="")

        def tell(job: Job | None, records: Sequence[Record]) -> None:
            total = tally.trainings + tally.trainings_left
            bar.update(row, completed=tally.trainings, total=total, stacks=tally.position, left=tally.time_left())

        yield tell
