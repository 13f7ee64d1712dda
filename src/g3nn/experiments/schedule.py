"""What is left to do: from a suite and the records there are to the jobs that can run now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from g3nn.experiments.job import Job, architecture
from g3nn.experiments.records import STAGES, Point
from g3nn.experiments.selection import Losses, chosen, current_round, losses
from g3nn.experiments.store import Store
from g3nn.experiments.suite import Protocol, Suite

MOST_REPLICAS = {"cpu": 32, "cuda": 256}
"""In one job, by device: enough to keep it busy, not so many that an interrupted run loses much."""

Only = Mapping[str, str] | None
"""The part of a suite that is wanted; see `Suite.entries`."""


@dataclass(frozen=True)
class Training:
    """One training that a suite asks for."""

    stage: str
    point: Point
    seed: int

    @property
    def mark(self) -> tuple[str, str, int]:
        return self.stage, self.point.key, self.seed


@dataclass(frozen=True)
class Work:
    """An estimate of what is left, with the rounds that are not decided yet.

    trainings: by dataset and model, on which the time of one depends most.
    """

    stacks: int
    trainings: Mapping[tuple[str, str], int]

    @property
    def total(self) -> int:
        return sum(self.trainings.values())


@dataclass(frozen=True)
class _Phase:
    """Where one grid stands: the trainings it waits for, done or not, and how many each later phase will ask for."""

    trainings: tuple[Training, ...]
    later: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The jobs that can run now, and an estimate of all that is left, they included."""

    jobs: list[Job]
    work: Work


def schedule(suite: Suite, store: Store, only: Only, max_replicas: int) -> Schedule:
    """What is missing in the store, in an order that depends on nothing but the suite.

    Stacks are cut from all trainings of a phase, and then lose those that are done. So a run that was interrupted goes
    on with the very stacks that it would have trained.
    """
    done, phases = _done(store), _phases(suite, store, only)
    groups: dict[tuple[str, str], list[Training]] = {}
    for training in dict.fromkeys(training for phase in phases for training in phase.trainings):
        groups.setdefault((training.stage, architecture(training.point)), []).append(training)
    stacks = (stack for group in groups.values() for stack in _evenly(group, max_replicas))
    missing = ([training for training in stack if training.mark not in done] for stack in stacks)
    jobs = [_job(stack) for stack in missing if stack]
    return Schedule(jobs, _work(jobs, phases, max_replicas))


def pending(suite: Suite, store: Store, only: Only, max_replicas: int) -> list[Job]:
    """The jobs that can run now. More may follow from what they find; none are left when the suite is done."""
    return schedule(suite, store, only, max_replicas).jobs


def _work(jobs: list[Job], phases: list[_Phase], max_replicas: int) -> Work:
    stacks, trainings = len(jobs), Counter[tuple[str, str]]()
    for job in jobs:
        trainings[job.dataset, job.model] += job.size
    for phase in phases:
        point = phase.trainings[0].point
        trainings[point.dataset, point.model] += sum(phase.later)
        stacks += sum(-(-count // max_replicas) for count in phase.later)
    return Work(stacks, +trainings)


def _phases(suite: Suite, store: Store, only: Only) -> list[_Phase]:
    """One for each grid; two cells that ask for the same points share theirs."""
    known = losses(store.records(stage="select"))
    grids = dict.fromkeys(tuple(suite.points(entry)) for entry in suite.entries(only))
    return [_phase(points, known, suite.protocol) for points in grids]


def _phase(points: tuple[Point, ...], known: Losses, protocol: Protocol) -> _Phase:
    now = current_round(points, known, protocol)
    if now is not None:
        return _Phase(tuple(Training("select", *one) for one in now.trainings), (now.later, protocol.trials))
    point = chosen(points, known, protocol)
    assert point is not None
    seeds = range(protocol.first_seed, protocol.first_seed + protocol.trials)
    return _Phase(tuple(Training("trial", point, seed) for seed in seeds), ())


def _done(store: Store) -> set[tuple[str, str, int]]:
    return {(stage, *pair) for stage in STAGES for pair in store.have(stage)}


def _evenly(group: list[Training], most: int) -> list[list[Training]]:
    """As few stacks as there can be, of sizes that differ by one at most."""
    count = -(-len(group) // most)
    cuts = [len(group) * k // count for k in range(count + 1)]
    return [group[start:end] for start, end in pairwise(cuts)]


def _job(stack: list[Training]) -> Job:
    points, seeds = tuple(one.point for one in stack), tuple(one.seed for one in stack)
    return Job(stack[0].stage, points, seeds)
