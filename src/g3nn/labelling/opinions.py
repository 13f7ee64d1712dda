"""What people's answers say together: the label of each node, who disagrees, and how often the model guesses right.

A guess is compared with the answer before the model learns it: a curve that says when to stop. Nodes that the model
chose are harder than others, so how often it is right on them says little about the rest. Every few questions, chance
chooses a node instead, each that is left alike, and the guess is not shown until the answer is given. Only those
questions make up the estimate; it is about the nodes that are left and that people can answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from g3nn.graph.calibrate import wilson_interval
from g3nn.labelling.project import CHOSEN, LABEL, RANDOM, SKIP, Answer, Json

EVERY = 5
"""One question in this many is put by chance."""

WINDOW = 50
"""This many of the last questions count: older guesses come from models with fewer labels."""

MOST_POINTS = 120

_interval = cache(wilson_interval)


@dataclass(frozen=True)
class Opinion:
    """About one node. label: what most people say, the latest of equals; None if all who answered do not know.
    answers: the last one of each person, the oldest first."""

    node: str
    label: str | None
    answers: tuple[Answer, ...]

    @property
    def disagree(self) -> bool:
        """Whether people give different labels."""
        return len({one.label for one in self.answers if one.kind == LABEL}) > 1


def opinions(current: Iterable[Answer]) -> dict[str, Opinion]:
    """By node. Nodes that were only skipped are not among them."""
    by_node: dict[str, list[Answer]] = {}
    for answer in current:
        if answer.kind != SKIP:
            by_node.setdefault(answer.node, []).append(answer)
    return {node: Opinion(node, _label(answers), tuple(answers)) for node, answers in by_node.items()}


def _label(answers: list[Answer]) -> str | None:
    votes = Counter(one.label for one in answers if one.label is not None)
    # The last of equals: later answers have seen more.
    last = {one.label: place for place, one in enumerate(answers)}
    return max(votes, key=lambda label: (votes[label], last[label]), default=None)


def answers_table(current: Iterable[Answer], id: str = "id", label: str = "label") -> pa.Table:
    """A row for each node that was answered: its label, empty if people do not know, and how it came about.

    votes: how many people gave a label. people: who answered. disagreement: whether labels differ. guess, probability:
    what the model said before the first of them. how: who asked.
    """
    rows = list(opinions(current).values())
    first = [one.answers[0] for one in rows]
    told = {
        "votes": pa.array([sum(answer.kind == LABEL for answer in one.answers) for one in rows], pa.int64()),
        "people": _texts(", ".join(answer.person for answer in one.answers) for one in rows),
        "disagreement": pa.array([one.disagree for one in rows], pa.bool_()),
        "note": _texts(" / ".join(answer.note for answer in one.answers if answer.note) for one in rows),
        "guess": _texts(one.guess for one in first),
        "probability": pa.array([one.sure for one in first], pa.float64()),
        "how": _texts(one.how for one in first),
        "at": _texts(one.answers[-1].at for one in rows),
    }
    own = {id: _texts(one.node for one in rows), label: _texts(one.label for one in rows)}
    return pa.table(own | {f"answer_{name}" if name in own else name: cells for name, cells in told.items()})


def _texts(items: Iterable[str | None]) -> pa.Array:
    return pa.array(list(items), pa.large_string())


def told(answer: Answer) -> Json:
    """An answer as a page shows it."""
    names = ("person", "kind", "label", "note", "guess", "sure", "at", "how")
    return {name: getattr(answer, name) for name in names}


def progress(current: Sequence[Answer], opinions: Mapping[str, Opinion]) -> Json:
    """The estimate now, and how it got there.

    current: as `Project.current` has it. A guess is right if it is what people say of the node by now. curve: after so
    many labels, [labels, share, low, high] of the questions put by chance, and asked: [labels, share] of all. The share
    of n questions put by chance of which r were guessed right is the expected one, (r + 1) / (n + 2): few are no proof.
    """
    labelled = enumerate((answer for answer in current if answer.label is not None), 1)
    asked = [
        (labels, one.guess == opinions[one.node].label, one.how)
        for labels, one in labelled
        if one.guess is not None and one.how in (CHOSEN, RANDOM)
    ]
    by_chance = [point for point in asked if point[2] == RANDOM]
    shares = _shares(by_chance)
    curve = [(labels, (share * size + 1) / (size + 2), *_interval(share, size)) for labels, share, size in shares]
    last = [right for _, right, _ in by_chance[-WINDOW:]]
    return {
        "every": EVERY,
        "window": WINDOW,
        "checked": len(last),
        "right": sum(last),
        "now": curve[-1][1:] if curve else None,
        "curve": _thinned(curve),
        "asked": _thinned([(labels, share) for labels, share, _ in _shares(asked)]),
    }


def _shares(guesses: list[tuple[int, bool, str]]) -> Iterator[tuple[int, float, int]]:
    """After each guess: the number of labels, the share of right guesses among the last ones, and their number."""
    for end, (labels, _, _) in enumerate(guesses, 1):
        last = [right for _, right, _ in guesses[max(0, end - WINDOW) : end]]
        yield labels, sum(last) / len(last), len(last)


def _thinned(points: list[Any]) -> list[Any]:
    """At most `MOST_POINTS`, the last among them."""
    step = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::step][::-1]
