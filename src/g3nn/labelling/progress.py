"""How often the model guesses right, seen before it learns each answer: a curve that says when to stop.

Nodes that the model chose are harder than others, so how often it is right on them says little about the rest. Every
few questions, chance chooses a node instead, each that is left alike, and the guess is not shown until the answer is
given. Only those questions make up the estimate; it is about the nodes that are left and that people can answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from g3nn.graph.calibrate import wilson_interval
from g3nn.labelling.agreed import Opinion
from g3nn.labelling.project import CHOSEN, RANDOM, Answer

EVERY = 5
"""One question in so many is put by chance."""

WINDOW = 50
"""The last so many questions count: older guesses are those of a model that knew less."""

MOST_POINTS = 120


def progress(current: Sequence[Answer], opinions: Mapping[str, Opinion]) -> dict[str, Any]:
    """The estimate now, and how it got there.

    current: as `Project.current` has it. A guess is right if it is what people say of the node by now. curve: after so
    many labels, [labels, share, low, high] of the questions put by chance, and asked: [labels, share] of all.
    """
    by_chance: list[bool] = []
    asked: list[bool] = []
    curve: list[tuple[int, float, float, float]] = []
    others: list[tuple[int, float]] = []
    labels = 0
    for answer in current:
        if answer.label is None:
            continue
        labels += 1
        if answer.guess is None or answer.how not in (CHOSEN, RANDOM):
            continue
        right = answer.guess == opinions[answer.node].label
        asked.append(right)
        others.append((labels, _share(asked)))
        if answer.how == RANDOM:
            by_chance.append(right)
            curve.append((labels, _share(by_chance), *_interval(sum(by_chance[-WINDOW:]), len(by_chance[-WINDOW:]))))
    return {
        "every": EVERY,
        "window": WINDOW,
        "checked": len(by_chance[-WINDOW:]),
        "right": sum(by_chance[-WINDOW:]),
        "now": curve[-1][1:] if curve else None,
        "curve": _thinned(curve),
        "asked": _thinned(others),
    }


def _share(right: Sequence[bool]) -> float:
    last = right[-WINDOW:]
    return sum(last) / len(last)


@cache
def _interval(right: int, size: int) -> tuple[float, float]:
    return wilson_interval(right / size, size)


def _thinned(points: list[Any]) -> list[Any]:
    """At most so many, the last among them."""
    step = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::step][::-1]
