"""What is left to do: from a suite and the existing records to the jobs that can run now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from g3nn.studies.job import Job, stack_key
from g3nn.studies.records import Point
from g3nn.studies.selection import Phase, current_phase, losses
from g3nn.studies.store import Store
from g3nn.studies.suite import Only, Suite

MOST_REPLICAS = {"cpu": 32, "cuda": 256}
"""Replicas in one job, by device: enough to keep it busy, few enough that an interrupted run loses little."""


@dataclass(frozen=True)
class Schedule:
    """The jobs that can run now, and an estimate of all that is left, including them and the rounds to come.

    trainings: by dataset and model, which determine the time of one more than anything else.
    """

    jobs: list[Job]
    stacks: int
    trainings: Mapping[tuple[str, str], int]


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
    jobs = []
    for (stage, _), group in groups.items():
        for stack in _evenly(list(group), max_replicas):
            missing = [(point, seed) for point, seed in stack if (stage, point.key, seed) not in done]
            if missing:
                points, seeds = zip(*missing, strict=True)
                jobs.append(Job(stage, points, seeds))
    return _with_estimate(jobs, phases, max_replicas)


def _with_estimate(jobs: list[Job], phases: list[Phase], max_replicas: int) -> Schedule:
    stacks, trainings = len(jobs), Counter[tuple[str, str]]()
    for job in jobs:
        trainings[job.first.dataset, job.first.model] += job.size
    for phase in phases:
        point, _ = phase.trainings[0]
        trainings[point.dataset, point.model] += sum(phase.later)
        stacks += sum(-(-count // max_replicas) for count in phase.later)
    return Schedule(jobs, stacks, +trainings)


def _evenly(group: list[tuple[Point, int]], most: int) -> list[list[tuple[Point, int]]]:
    """As few stacks as possible, of sizes that differ by one at most."""
    count = -(-len(group) // most)
    cuts = [len(group) * k // count for k in range(count + 1)]
    return [group[start:end] for start, end in pairwise(cuts)]
