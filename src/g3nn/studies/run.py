"""Running a suite until nothing is left to do. Results are stored at once: a run can stop and go on at any time.

What is left follows from the suite and the records in the store, as jobs that can run now.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from g3nn.base.errors import DeviceMemoryError
from g3nn.graph.datasets import folder_of
from g3nn.studies.executors import Executor
from g3nn.studies.job import Job, stack_key
from g3nn.studies.records import Point, Record
from g3nn.studies.selection import current_phase, losses
from g3nn.studies.store import Store
from g3nn.studies.suite import CLEANED, Cell, Only, Suite

MOST_REPLICAS = {"cpu": 32, "cuda": 256}
"""Replicas in one job, by device: enough to keep it busy, few enough that an interrupted run loses little."""


@dataclass(frozen=True)
class Failure:
    """Trainings of one kind that ended with the same error."""

    stage: str
    dataset: str
    setting: str
    model: str
    objective: str
    error: str
    trainings: int

    def __str__(self) -> str:
        where = f"{self.stage} {self.model} [{self.objective}] on {self.dataset} {self.setting}"
        return f"{where}: {self.trainings} failed: {self.error}"


@dataclass(frozen=True)
class RunReport:
    """What a run did. diverged, failures: among all records of this part of the suite, including earlier ones.

    postponed: what found no memory. Nothing of it is stored, so that the next run tries it again.
    """

    suite: str
    stacks: int
    trainings: int
    seconds: float
    diverged: int
    failures: tuple[Failure, ...]
    postponed: tuple[Failure, ...]


@dataclass(frozen=True)
class Schedule:
    """The jobs that can run now, and an estimate of all that is left, including them and the rounds to come.

    trainings: by dataset and model, which determine the time of one more than anything else.
    """

    jobs: list[Job]
    stacks: int
    trainings: Counter[tuple[str, str]]


def run(suite: Suite, store_path: str | Path, executor: Executor, only: Only = None) -> RunReport:
    """Train everything in a suite, or in a part of it, that is not in the store yet.

    The records of a job are stored together as soon as it is done. A training that failed is not tried again, unless it
    found no memory. Progress is a bar on a terminal, else one line for each job on standard error. Cells whose files or
    packages are not there are left out, with a note.
    """
    start = time.perf_counter()
    suite = _possible(suite, only)
    postponed: dict[Job, str] = {}
    tally = Tally(executor)
    with executor, Store.open(store_path, environment=executor.environment()) as store, tally.shown():
        while (plan := schedule(suite, store, only, MOST_REPLICAS[executor.device], postponed)).jobs:
            tally.expect(plan)
            for job, ended in executor.execute(plan.jobs):
                if isinstance(ended, DeviceMemoryError):
                    postponed[job] = str(ended)
                    ended = []
                store.append(ended)
                tally.add(job, ended)
        records = store.records()
    keys = {point.key for entry in suite.entries(only) for point in suite.points(entry)}
    own = [record for record in records if record.point.key in keys]
    return RunReport(
        suite=suite.name,
        stacks=tally.stacks,
        trainings=tally.trainings,
        seconds=time.perf_counter() - start,
        diverged=sum(record.status == "diverged" for record in own),
        failures=_failures((one.stage, one.point, one.error) for one in own if one.status == "failed"),
        postponed=_failures((job.stage, point, error) for job, error in postponed.items() for point in job.points),
    )


def _failures(trainings: Iterable[tuple[str, Point, str]]) -> tuple[Failure, ...]:
    """From the stage, the point and the error of each."""
    kinds = Counter((stage, *point.names, error) for stage, point, error in trainings)
    return tuple(Failure(*kind, count) for kind, count in sorted(kinds.items()))


def schedule(suite: Suite, store: Store, only: Only, max_replicas: int, put_off: Iterable[Job] = ()) -> Schedule:
    """What is missing in the store and not put off, in an order that depends on nothing but the suite.

    Stacks are cut from all trainings of a phase and then lose those that are done, so that an interrupted run goes on
    with exactly the stacks that it would have trained.
    """
    records = store.records()
    done = {(record.stage, record.point.key, record.seed) for record in records}
    done |= {(job.stage, point.key, seed) for job in put_off for point, seed in job.replicas}
    known = losses(records)
    # Two cells that need the same points share one phase.
    grids: dict[tuple[Point, ...], int] = {}
    for entry in suite.entries(only):
        if points := tuple(suite.points(entry)):
            grids[points] = max(grids.get(points, 0), suite.trials(entry.cell))
    phases = [current_phase(points, known, replace(suite.protocol, trials=trials)) for points, trials in grids.items()]
    groups: dict[tuple[str, tuple[str, int | None]], dict[tuple[Point, int], None]] = {}
    for phase in phases:
        for training in phase.trainings:
            groups.setdefault((phase.stage, stack_key(*training)), {})[training] = None
    jobs, left = [], Counter[tuple[str, str]]()
    for (stage, _), group in groups.items():
        for stack in _evenly(list(group), max_replicas):
            missing = [(point, seed) for point, seed in stack if (stage, point.key, seed) not in done]
            if missing:
                points, seeds = zip(*missing, strict=True)
                jobs.append(Job(stage, points, seeds))
                left[points[0].dataset, points[0].model] += len(points)
    stacks = len(jobs)
    for phase in phases:
        point, _ = phase.trainings[0]
        left[point.dataset, point.model] += sum(phase.later)
        stacks += sum(-(-count // max_replicas) for count in phase.later)
    return Schedule(jobs, stacks, +left)


def _evenly(group: list[tuple[Point, int]], most: int) -> list[list[tuple[Point, int]]]:
    """As few stacks as possible, of sizes that differ by one at most."""
    count = -(-len(group) // most)
    cuts = [len(group) * k // count for k in range(count + 1)]
    return [group[start:end] for start, end in pairwise(cuts)]


def _possible(suite: Suite, only: Only) -> Suite:
    """The suite without training in cells that need a package, or a file that cannot be downloaded, that is missing."""
    lacking = {cell: lack for cell in suite.cells if not cell.quoted and (lack := _lack(cell))}
    wanted = {entry.cell for entry in suite.entries(only)}
    by_advice: dict[str, list[str]] = {}
    for cell, (what, advice) in lacking.items():
        if cell in wanted:
            by_advice.setdefault(advice, []).append(what)
    for advice, needs in by_advice.items():
        missing = ", ".join(sorted(set(needs)))
        cells = f"{len(needs)} cells are" if len(needs) > 1 else "1 cell is"
        print(f"note: {cells} left out: there is no {missing}. {advice} and run again.", file=sys.stderr)
    return replace(suite, cells=tuple(replace(cell, quoted=cell.quoted or cell in lacking) for cell in suite.cells))


def _lack(cell: Cell) -> tuple[str, str] | None:
    """What a cell needs that is not there, and how to get it."""
    if cell.model == CLEANED and find_spec("cleanlab") is None:
        return "cleanlab", "Install it with pip install 'g3nn[peers]'"
    folder = folder_of(cell.dataset, cell.setting)
    if folder is None or folder.file(cell.dataset):
        return None
    return f"{cell.dataset}.npz", f"Set {folder.variable} to the folder with these files"


class Tally:
    """What a run has done, what is left, and how long that may take: a bar on a terminal, else a line for each job on
    standard error."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.stacks = self.trainings = self._stacks_left = 0
        self._left: Counter[tuple[str, str]] = Counter()
        self._done: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)
        words = ("trainings,", "{task.fields[stacks]} stacks", "{task.fields[left]}")
        columns = (BarColumn(10), MofNCompleteColumn(), *words, TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self._row = self._bar.add_task("", total=None, stacks="", left="")

    def shown(self) -> AbstractContextManager[object]:
        """While this is open, the bar is there."""
        return nullcontext() if self._bar.disable else self._bar  # a disabled bar ends with an empty line

    def expect(self, plan: Schedule) -> None:
        """Say what is left now."""
        self._stacks_left, self._left = plan.stacks, plan.trainings.copy()
        self._show(f"to do: {self._left.total()} trainings in about {plan.stacks} stacks")

    def add(self, job: Job, records: Sequence[Record]) -> None:
        """records: none if the job was put off."""
        kind = (job.first.dataset, job.first.model)
        self._stacks_left -= 1
        self._left[kind] -= job.size
        if not records:
            self._show(f"[{self._position}] {job}: no memory for {job.size} trainings, which are put off")
            return
        seconds = sum(record.seconds for record in records)
        self.stacks += 1
        self.trainings += job.size
        self._done[kind] += job.size
        self._seconds[kind] += seconds
        bad = Counter(record.status for record in records if record.status in ("diverged", "failed"))
        notes = "".join(f", {count} {status}" for status, count in sorted(bad.items()))
        self._show(f"[{self._position}] {job}: {job.size} trainings{notes}, {seconds:.1f} s, {self._time_left()}")

    @property
    def _position(self) -> str:
        return f"{self.stacks}/{self.stacks + self._stacks_left}"

    def _time_left(self) -> str:
        """By the mean time of trainings of the same dataset and model, else of all. Empty before the first."""
        if not self.trainings:
            return ""
        overall = sum(self._seconds.values()) / self.trainings
        means = {kind: self._seconds[kind] / count for kind, count in self._done.items()}
        seconds = sum(count * means.get(kind, overall) for kind, count in self._left.items())
        return f"{timedelta(seconds=round(seconds / self._executor.workers))} left"

    def _show(self, line: str) -> None:
        if self._bar.disable:
            print(line, file=sys.stderr, flush=True)
        else:
            total, left = self.trainings + self._left.total(), self._time_left()
            self._bar.update(self._row, completed=self.trainings, total=total, stacks=self._position, left=left)
