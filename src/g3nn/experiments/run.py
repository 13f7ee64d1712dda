"""Running a suite until nothing is left to do. Results are stored at once: a run can stop and go on at any time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from g3nn.errors import Problems
from g3nn.experiments.executors import make_executor
from g3nn.experiments.progress import Tally, watching
from g3nn.experiments.records import Record
from g3nn.experiments.schedule import MOST_REPLICAS, schedule
from g3nn.experiments.store import Store
from g3nn.experiments.suite import Only, Suite, checked_part
from g3nn.experiments.worker import Executor


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
    """What a run did. diverged, failures: among all records of this part of the suite, including earlier ones."""

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

    The records of a job are stored together as soon as it is done. A training that failed is not tried again.
    only:     part of the suite, such as {"dataset": "cora,pubmed"}; see `Suite.entries`.
    trials:   replaces the number of trials of the suite.
    executor: "local", "ray" or an `Executor`, which has its own device and workers.
    workers:  jobs at once. With the local executor, more than one run in separate processes, which a script must start
              under `if __name__ == "__main__"`; several can share a GPU.
    progress: a bar on a terminal, else one line for each job on standard error; False is silent.
    """
    problems = Problems()
    suite = checked_part(suite, only, trials, problems)
    if isinstance(executor, str):
        with problems.gathered():
            executor = make_executor(executor, device, workers)
    problems.raise_if_any()
    assert isinstance(executor, Executor)
    start = time.perf_counter()
    with executor, Store.open(store_path, environment=executor.environment()) as store:
        tally = Tally(executor.workers)
        with watching(tally, progress) as tell:
            while (plan := schedule(suite, store, only, MOST_REPLICAS[executor.device])).jobs:
                tally.expect(plan.stacks, plan.trainings)
                tell(None, ())
                for job, records in executor.execute(plan.jobs):
                    store.append(records)
                    tally.add(job, records)
                    tell(job, records)
        records = store.records()
    return _report(suite, only, tally, records, time.perf_counter() - start)


def _report(suite: Suite, only: Only, tally: Tally, records: Sequence[Record], seconds: float) -> RunReport:
    keys = {point.key for entry in suite.entries(only) for point in suite.points(entry)}
    own = [record for record in records if record.point.key in keys]
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
