"""Running a suite until nothing is left to do. What is done is in the store: a run can stop and go on at any time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from g3nn.errors import Problems
from g3nn.experiments.executors import Executor, check_executor, make_executor
from g3nn.experiments.progress import Tally, watching
from g3nn.experiments.records import Record
from g3nn.experiments.schedule import MOST_REPLICAS, Only, schedule
from g3nn.experiments.store import Store
from g3nn.experiments.suite import Suite


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
    """What a run did, and what is wrong among all records of its part of the suite, earlier ones included."""

    suite: str
    stacks: int
    trainings: int
    seconds: float
    diverged: int
    failures: tuple[Failure, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}


def run(
    suite: Suite,
    store_path: str | Path,
    *,
    only: Only = None,
    trials: int | None = None,
    executor: str | Executor = "local",
    device: str = "auto",
    workers: int | None = None,
    progress: bool = True,
) -> RunReport:
    """Train everything that a suite asks for and the store does not hold yet.

    The records of a job are stored in one go as soon as it is done. A training that failed is not tried again.
    only:     part of the suite, as {"dataset": "cora,pubmed"}; see `Suite.entries`.
    trials:   another number of trials than the suite says.
    executor: "local" or "ray", or one of your own.
    workers:  jobs at once. With the local executor more than one run in processes of their own, which a script must
              start under `if __name__ == "__main__"`; several share a GPU well.
    progress: a bar on a terminal, else one line for each job on standard error; False is silent.
    """
    problems = Problems()
    suite = checked_part(suite, only, trials, problems)
    if isinstance(executor, str):
        check_executor(executor, device, workers, problems)
    problems.raise_if_any()
    start = time.perf_counter()
    place = make_executor(executor, device, workers) if isinstance(executor, str) else executor
    with place as active, Store.open(store_path, environment=active.environment()) as store:
        tally = Tally(active.workers)
        with watching(tally, progress) as watch:
            most = MOST_REPLICAS[active.device]
            while (now := schedule(suite, store, only, most)).jobs:
                tally.expect(now.work)
                watch.begin()
                for job, records in active.execute(now.jobs):
                    store.append(records)
                    tally.add(job, records)
                    watch.done(job, records)
        held = store.records()
    return _report(suite, only, tally, held, time.perf_counter() - start)


def checked_part(suite: Suite, only: Only, trials: int | None, problems: Problems) -> Suite:
    """The suite with that number of trials. Records it if there is no such part of it."""
    with problems.gathered():
        suite = suite.with_trials(trials) if trials is not None else suite
    with problems.gathered():
        if not suite.entries(only):
            problems.add("only", dict(only or {}), "a part of the suite that is not empty", "Leave a filter out.")
    return suite


def _report(suite: Suite, only: Only, tally: Tally, held: Sequence[Record], seconds: float) -> RunReport:
    keys = {point.key for entry in suite.entries(only) for point in suite.points(entry)}
    own = [record for record in held if record.point.key in keys]
    kinds = Counter(_kind(record) for record in own if record.status == "failed")
    return RunReport(
        suite=suite.name,
        stacks=tally.stacks,
        trainings=tally.trainings,
        seconds=seconds,
        diverged=sum(record.status == "diverged" for record in own),
        failures=tuple(Failure(*kind, count) for kind, count in sorted(kinds.items())),
    )


def _kind(record: Record) -> tuple[str, str, str, str, str, str]:
    point = record.point
    return record.stage, point.dataset, point.setting, point.model, point.objective, record.error
