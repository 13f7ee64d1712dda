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


def current_round(points: Sequence[Point], known: Losses, protocol: Protocol) -> Phase | None:
    """The round of selection that is under way; None when the choice can be made.

    First round: all points with the same few seeds. Second round: the best of them with more seeds.
    """
    if len(points) < 2:
        return None
    finalists = min(len(points), protocol.finalists)
    further = _seeds(protocol, protocol.finalist_seeds)[protocol.selection_seeds :] if finalists > 1 else ()
    first = tuple((point, seed) for point in points for seed in _seeds(protocol, protocol.selection_seeds))
    if _incomplete(first, known):
        return Phase("select", first, (finalists * len(further), protocol.trials))
    second = tuple((point, seed) for point in _finalists(points, known, protocol) for seed in further)
    return Phase("select", second, (protocol.trials,)) if _incomplete(second, known) else None


def chosen(points: Sequence[Point], known: Losses, protocol: Protocol) -> Point | None:
    """The finalist with the lowest mean validation loss over all its seeds; None while a training is missing.

    A grid of one point needs no losses. Of equal points the one with the lowest key is taken.
    """
    if not points or current_round(points, known, protocol) is not None:
        return None
    if len(points) == 1:
        return points[0]
    finalists = _finalists(points, known, protocol)
    if len(finalists) == 1:
        return finalists[0]
    return _ranked(finalists, _seeds(protocol, protocol.finalist_seeds), known)[0]


def _loss(record: Record) -> float:
    if record.val_loss is None or record.status in ("diverged", "failed"):
        return math.inf
    return record.val_loss


def _seeds(protocol: Protocol, count: int) -> range:
    return range(protocol.first_selection_seed, protocol.first_selection_seed + count)


def _incomplete(trainings: Sequence[tuple[Point, int]], known: Losses) -> bool:
    return any((point.key, seed) not in known for point, seed in trainings)


def _finalists(points: Sequence[Point], known: Losses, protocol: Protocol) -> list[Point]:
    return _ranked(points, _seeds(protocol, protocol.selection_seeds), known)[: protocol.finalists]


def _ranked(points: Sequence[Point], seeds: range, known: Losses) -> list[Point]:
    """Lowest mean loss first."""

    def rank(point: Point) -> tuple[float, str]:
        return math.fsum(known[point.key, seed] for seed in seeds) / len(seeds), point.key

    return sorted(points, key=rank)
