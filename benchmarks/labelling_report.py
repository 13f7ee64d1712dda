"""Tables of `labelling.py`, from stored records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

Record = dict[str, Any]

Cells = dict[tuple[str, int], dict[int, float]]
"""By strategy and mark: accuracies by seed."""


def table(records: Sequence[Record]) -> str:
    """For each graph, share of wrong answers and learner: mean accuracy at every mark, the area under the curve up to 5
    and up to 20 labels per class, and the labels per class at which random's last accuracy is reached."""
    groups: dict[tuple[str, float, str], Cells] = defaultdict(lambda: defaultdict(dict))
    for one in records:
        if "learner" in one:
            cell = groups[one["graph"], one["wrong"], one["learner"]][one["strategy"], one["mark"]]
            cell[one["seed"]] = one["accuracy"]
    parts = [_section(*key, cells) for key, cells in sorted(groups.items())]
    return "\n\n".join([*parts, _times(records)])


def _section(graph: str, wrong: float, learner: str, cells: Cells) -> str:
    marks = sorted({mark for _, mark in cells})
    strategies = sorted({strategy for strategy, _ in cells}, key=lambda name: (name != "default", name))
    curves = {name: [_mean(cells, name, mark) for mark in marks] for name in strategies}
    seeds = max(len(cell) for cell in cells.values())
    lines = [f"## {graph}, {wrong:.0%} wrong, {learner}, {seeds} seeds", ""]
    heads = ["strategy", *map(str, marks), "area to 5", "area to 20", "random's last at"]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    goal = curves.get("random", [float("nan")])[-1]
    for name in strategies:
        areas = [_area(marks, curves[name], most) for most in (5, 20)]
        row = [name, *(f"{value:.3f}" for value in [*curves[name], *areas]), _reached(marks, curves[name], goal)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _mean(cells: Cells, strategy: str, mark: int) -> float:
    found = cells.get((strategy, mark), {})
    return fmean(found.values()) if found else float("nan")


def _area(marks: Sequence[int], curve: Sequence[float], most: int) -> float:
    """The mean height of the curve up to a mark."""
    x, y = (np.array(values, dtype=float) for values in (marks, curve))
    x, y = x[x <= most], y[x <= most]
    return float(np.trapezoid(y, x) / (x[-1] - x[0])) if len(x) > 1 else float("nan")


def _reached(marks: Sequence[int], curve: Sequence[float], goal: float) -> str:
    """Where the curve first reaches a height, between marks on a straight line."""
    for place, height in enumerate(curve):
        if height >= goal:
            if place == 0:
                return f"{marks[0]}"
            below, step = curve[place - 1], marks[place] - marks[place - 1]
            return f"{marks[place - 1] + step * (goal - below) / (height - below):.1f}"
    return "not"


def _times(records: Sequence[Record]) -> str:
    """Seconds of a first fit, a question and an update, where models were asked."""
    found: dict[str, list[Record]] = defaultdict(list)
    for one in records:
        if "nodes" in one and one["update_seconds"] > 1e-3:
            found[f"{one['graph']} on {one['device']}"].append(one)
    lines = ["## Seconds", "", "| graph | first fit | question | update |", "|---|---|---|---|"]
    for where, runs in sorted(found.items()):
        names = ("first_fit_seconds", "question_seconds", "update_seconds")
        lines.append("| " + " | ".join([where, *(f"{fmean(run[name] for run in runs):.2f}" for name in names)]) + " |")
    return "\n".join(lines)
