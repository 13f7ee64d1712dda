"""Types of edges that join nodes by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from g3nn.graph.outcomes.labels import is_known
from g3nn.graph.task import NodeTask
from g3nn.queries.genuine import coordinates

_COORDINATES = 32
_FEWEST, _MOST = 200, 100_000
"""Edges of a type that can tell whether they join nodes by chance, and that are looked at."""
_SHUFFLES, _CLEAR = 20, 4.0
"""How often ends are shuffled, and how many standard deviations from what that gives are no chance."""
_LITTLE = 0.1
"""A type says nothing if its ends are surely less alike than this share of those of another type."""


class Likeness(NamedTuple):
    """How much more alike some nodes are than where ends are shuffled, and the standard deviation of that."""

    more: float
    deviation: float

    @property
    def clear(self) -> bool:
        return abs(self.more) > _CLEAR * self.deviation

    @property
    def at_most(self) -> float:
        return abs(self.more) + _CLEAR * self.deviation


def types_by_chance(task: NodeTask) -> tuple[str, ...]:
    """The names of the types whose edges say nothing: as to features, their ends and the nodes that share an end are
    hardly more alike than where ends are shuffled, far less than those of another type. And labels of training show
    nothing else, nor do they go with numbers of edges.

    Nodes without features count as the mean of those that they are joined to by types which were found to say
    something. Where no type does, features tell nothing about edges, and all types stay.
    """
    relations, rng = task.relations, np.random.default_rng(0)
    if relations is None or len(relations.names) == 1:
        return ()
    pairs = {type: relations.of(type).pairs for type in range(len(relations.names))}
    pairs = {type: found for type, found in pairs.items() if found.shape[1] >= _FEWEST}
    rows, seen, most = _of_features(task), dict[int, list[Likeness]](), 0.0
    while found := {type: told for type in pairs.keys() - seen.keys() if (told := _likeness(rows, pairs[type], rng))}:
        seen |= found
        for type in sorted(found):
            clear = [abs(one.more) for one in found[type] if one.clear]
            if clear:
                most, rows = max(most, *clear), _filled(rows, pairs[type], relations.kinds)
    labels = _of_labels(task)

    def says_nothing(type: int) -> bool:
        if any(one.clear or one.at_most > _LITTLE * most for one in seen[type]):
            return False
        return not any(one.clear for one in (*_likeness(labels, pairs[type], rng), *_counted(labels, pairs[type], rng)))

    return tuple(relations.names[type] for type in sorted(seen) if says_nothing(type))


def _of_features(task: NodeTask) -> np.ndarray:
    assert task.relations is not None
    given = np.asarray(abs(task.features).sum(axis=1)).ravel() > 0
    return _scaled(coordinates(task.features, _COORDINATES), given, task.relations.kinds)


def _of_labels(task: NodeTask) -> np.ndarray:
    assert task.relations is not None
    values = task.labels[task.train]
    if values.ndim == 1:
        values = np.eye(task.num_classes)[values]
    rows, known = np.zeros((task.num_nodes, values.shape[1])), np.zeros(task.num_nodes, dtype=bool)
    rows[task.train], known[task.train] = np.where(is_known(values), values, np.nanmean(values, axis=0)), True
    return _scaled(rows, known, task.relations.kinds)


def _scaled(rows: np.ndarray, known: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """(n, d), 0 where nothing is known, and for the others of each kind with a mean of 0 and a squared length of 1 on
    average."""
    found = np.zeros(rows.shape, np.float32)
    for kind in np.unique(kinds[known]):
        nodes = np.flatnonzero(known & (kinds == kind))
        centred = rows[nodes] - rows[nodes].mean(0)
        length = np.sqrt((centred**2).sum(1).mean())
        # Where all are alike, they differ by rounding errors alone.
        found[nodes] = centred / length if length > 1e-6 else 0.0
    return found


def _known(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows.any(axis=1))


def _filled(rows: np.ndarray, pairs: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """With the means of their neighbours for nodes of which nothing is known."""
    ends = np.concatenate([pairs, pairs[::-1]], axis=1)
    known = _known(rows)
    ends = ends[:, known[ends[0]] & ~known[ends[1]]]
    sums = _incidence(ends[1], len(rows)) @ rows[ends[0]]
    counts = np.bincount(ends[1], minlength=len(rows))
    new = _scaled(sums / np.maximum(counts, 1)[:, None], counts > 0, kinds)
    return np.where(known[:, None], rows, new)


def _incidence(places: np.ndarray, n: int) -> sp.csr_array:
    """(n, m): which of m things are at each of n places."""
    m = len(places)
    return sp.csr_array((np.ones(m, np.float32), (places, np.arange(m))), shape=(n, m))


def _likeness(rows: np.ndarray, pairs: np.ndarray, rng: np.random.Generator) -> list[Likeness]:
    """Of both ends of edges, and of nodes that share an end; what says nothing because too little is known is left
    out."""
    known = _known(rows)

    def joined(here: np.ndarray, there: np.ndarray) -> float:
        return float((here * there).sum(1).mean())

    def sharing(here: np.ndarray, ends: np.ndarray) -> float:
        counts = np.bincount(ends)
        sums, counts = _incidence(ends, len(counts)) @ here, counts[ends]
        others = (sums[ends] - here)[counts > 1] / (counts[counts > 1] - 1)[:, None]
        return float((others * here[counts > 1]).sum(1).mean()) if len(others) else 0.0

    def found() -> Iterator[Likeness]:
        for ends in (pairs, pairs[::-1]):
            here, there = _some(ends[:, known[ends[0]]], rng)
            yield _beyond(sharing, rows[here], np.unique(there, return_inverse=True)[1], rng)
            both = known[there]
            yield _beyond(joined, rows[here[both]], rows[there[both]], rng)

    return [one for one in found() if one.deviation > 0]


def _counted(rows: np.ndarray, pairs: np.ndarray, rng: np.random.Generator) -> Iterator[Likeness]:
    """How much what is known of nodes goes with how many edges they have at each end."""
    known = np.flatnonzero(_known(rows))
    for end in pairs:
        counts = np.log1p(np.bincount(end, minlength=len(rows)))[known]
        yield _beyond(lambda here, there: float(np.linalg.norm(here.T @ there)), rows[known], counts, rng)


def _some(ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Not too many edges (2, E): all of a node at the second end, or none."""
    if ends.shape[1] <= _MOST:
        return ends
    rank = rng.permutation(int(ends[1].max()) + 1)[ends[1]]
    return ends[:, np.argpartition(rank, _MOST)[:_MOST]]


def _beyond(
    measure: Callable[[np.ndarray, np.ndarray], float], here: np.ndarray, there: np.ndarray, rng: np.random.Generator
) -> Likeness:
    if not len(here):
        return Likeness(0.0, 0.0)
    shuffled = [measure(here, rng.permutation(there)) for _ in range(_SHUFFLES)]
    return Likeness(measure(here, there) - float(np.mean(shuffled)), float(np.std(shuffled)))
