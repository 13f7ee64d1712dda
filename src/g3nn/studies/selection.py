"""Choosing a point of a grid by its mean validation loss, in two rounds. Nothing here looks at a test label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from g3nn.studies.records import Point, Record
from g3nn.studies.suite import Protocol

Losses = Mapping[tuple[str, int], float]
"""Validation loss by point key and seed."""


@dataclass(frozen=True)
class Phase:
    """The trainings (point, seed) that a grid is waiting for, done or not, and how many each later phase needs."""

    stage: str
    trainings: tuple[tuple[Point, int], ...]
    later: tuple[int, ...] = ()


def losses(records: Sequence[Record]) -> dict[tuple[str, int], float]:
    """Validation losses of the trainings for selection. One that diverged or failed counts as infinitely bad."""
    return {(record.point.key, record.seed): _loss(record) for record in records if record.stage == "select"}


def current_phase(points: Sequence[Point], known: Losses, protocol: Protocol) -> Phase:
    """What a grid is waiting for: a round of selection or, when the choice can be made, the trials of the best point.

    First round: all points with the same few seeds. Second round: the best of them, the finalists, with more seeds. The
    lowest mean over all seeds wins; of equal points the one with the lowest key. A grid of one point needs no losses.
    """
    finalists = points
    if len(points) > 1:
        count = min(len(points), protocol.finalists)
        further = _seeds(protocol, protocol.finalist_seeds)[protocol.selection_seeds :] if count > 1 else ()
        first = tuple((point, seed) for point in points for seed in _seeds(protocol, protocol.selection_seeds))
        if _incomplete(first, known):
            return Phase("select", first, (count * len(further), protocol.trials))
        finalists = _ranked(points, _seeds(protocol, protocol.selection_seeds), known)[:count]
        second = tuple((point, seed) for point in finalists for seed in further)
        if _incomplete(second, known):
            return Phase("select", second, (protocol.trials,))
    if len(finalists) > 1:
        finalists = _ranked(finalists, _seeds(protocol, protocol.finalist_seeds), known)
    seeds = range(protocol.first_seed, protocol.first_seed + protocol.trials)
    return Phase("trial", tuple((finalists[0], seed) for seed in seeds))


def chosen(points: Sequence[Point], known: Losses, protocol: Protocol) -> Point | None:
    """The point that the trials report; None while a training of the selection is missing."""
    phase = current_phase(points, known, protocol) if points else None
    return phase.trainings[0][0] if phase and phase.stage == "trial" else None


def _loss(record: Record) -> float:
    if record.val_loss is None or record.status in ("diverged", "failed"):
        return math.inf
    return record.val_loss


def _seeds(protocol: Protocol, count: int) -> range:
    return range(protocol.first_selection_seed, protocol.first_selection_seed + count)


def _incomplete(trainings: Sequence[tuple[Point, int]], known: Losses) -> bool:
    return any((point.key, seed) not in known for point, seed in trainings)


def _ranked(points: Sequence[Point], seeds: range, known: Losses) -> list[Point]:
    """Lowest mean loss first."""

    def rank(point: Point) -> tuple[float, str]:
        return math.fsum(known[point.key, seed] for seed in seeds) / len(seeds), point.key

    return sorted(points, key=rank)
