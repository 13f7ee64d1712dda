"""Running a suite until nothing is left to do. Results are stored at once: a run can stop and go on at any time."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from g3nn.base.errors import DeviceMemoryError
from g3nn.graph.datasets import folder_of
from g3nn.studies.executors import Executor
from g3nn.studies.job import Job
from g3nn.studies.progress import Tally, watching
from g3nn.studies.records import Record
from g3nn.studies.schedule import MOST_REPLICAS, schedule
from g3nn.studies.store import Store
from g3nn.studies.suite import CLEANED, Cell, Only, Suite

Kind = tuple[str, str, str, str, str, str]
"""Of a failure: its fields, without the number of trainings."""


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


def run(suite: Suite, store_path: str | Path, executor: Executor, only: Only = None) -> RunReport:
    """Train everything that a suite, or a part of it, asks for and the store does not hold yet.

    The records of a job are stored together as soon as it is done. A training that failed is not tried again, unless it
    found no memory. Progress is a bar on a terminal, else one line for each job on standard error. Cells whose files or
    packages are not there are left out, with a note.
    """
    start = time.perf_counter()
    suite = _possible(suite, only)
    postponed: dict[Job, str] = {}
    with executor, Store.open(store_path, environment=executor.environment()) as store:
        tally, most = Tally(executor.workers), MOST_REPLICAS[executor.device]
        with watching(tally) as tell:
            while (plan := schedule(suite, store, only, most, postponed)).jobs:
                tally.expect(plan.stacks, plan.trainings)
                tell(None, ())
                for job, ended in executor.execute(plan.jobs):
                    if isinstance(ended, DeviceMemoryError):
                        postponed[job] = str(ended)
                        ended = []
                    store.append(ended)
                    tally.add(job, ended)
                    tell(job, ended)
        records = store.records()
    return _report(suite, only, tally, records, postponed, time.perf_counter() - start)


def _possible(suite: Suite, only: Only) -> Suite:
    """The suite with nothing to train in cells that need a package, or a file that nobody can download, that is not
    there."""
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


def _report(
    suite: Suite, only: Only, tally: Tally, records: Sequence[Record], postponed: dict[Job, str], seconds: float
) -> RunReport:
    keys = {point.key for entry in suite.entries(only) for point in suite.points(entry)}
    own = [record for record in records if record.point.key in keys]
    failed = Counter((record.stage, *record.point.names, record.error) for record in own if record.status == "failed")
    put_off: Counter[Kind] = Counter()
    for job, error in postponed.items():
        put_off[job.stage, *job.first.names, error] += job.size
    return RunReport(
        suite=suite.name,
        stacks=tally.stacks,
        trainings=tally.trainings,
        seconds=seconds,
        diverged=sum(record.status == "diverged" for record in own),
        failures=_failures(failed),
        postponed=_failures(put_off),
    )


def _failures(kinds: Counter[Kind]) -> tuple[Failure, ...]:
    return tuple(Failure(*kind, count) for kind, count in sorted(kinds.items()))
