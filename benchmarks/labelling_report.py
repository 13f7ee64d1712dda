"""Tables and the picture of `labelling.py`, from stored records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import ttest_rel
from svg import Panel, curves

Record = dict[str, Any]

EARLY = 5
"""Labels per class up to which the first area counts."""


@dataclass(frozen=True)
class Group:
    """What one learner makes of the choices of all strategies on one graph. curves: accuracies (marks,) of strategies
    and seeds."""

    graph: str
    wrong: float
    learner: str
    marks: tuple[int, ...]
    curves: dict[str, dict[int, np.ndarray]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def strategies(self) -> list[str]:
        """That of the library first."""
        return sorted(self.curves, key=lambda name: (name != "default", name))

    @property
    def title(self) -> str:
        """With the number of seeds that all strategies have."""
        seeds = min(len(runs) for runs in self.curves.values())
        wrong = f", {self.wrong:.0%} wrong answers" if self.wrong else ""
        labels = f"{self.marks[0]} to {self.marks[-1]}" if len(self.marks) > 1 else f"{self.marks[0]}"
        return f"{self.graph}, {self.learner}, {labels} per class{wrong}, {seeds} seeds"

    def mean(self, strategy: str) -> np.ndarray:
        """(marks,)"""
        return np.mean(list(self.curves[strategy].values()), axis=0)

    def area(self, curve: np.ndarray, most: int) -> float:
        """The mean height of a curve up to a mark."""
        x = np.array(self.marks, dtype=float)
        early = x <= most
        return float(np.trapezoid(curve[early], x[early]) / np.ptp(x[early])) if early.sum() > 1 else float("nan")

    def chance(self, strategy: str) -> float:
        """p of the paired t-test that the default is no better in the first area."""
        one, other = self.curves["default"], self.curves[strategy]
        seeds = sorted(one.keys() & other.keys())
        if strategy == "default" or len(seeds) < 2:
            return float("nan")
        areas = [[self.area(runs[seed], EARLY) for seed in seeds] for runs in (one, other)]
        return float(ttest_rel(*areas, alternative="greater").pvalue)

    def reached(self, strategy: str) -> str:
        """Where the mean curve first reaches the last accuracy of random, between marks on a straight line."""
        if "random" not in self.curves:
            return "–"
        goal, curve = self.mean("random")[-1], self.mean(strategy)
        if curve[0] >= goal:
            return f"{self.marks[0]}"
        for (start, end), (low, high) in zip(pairwise(self.marks), pairwise(curve), strict=True):
            if high >= goal:
                return f"{start + (end - start) * (goal - low) / (high - low):.1f}"
        return "not"

    def table(self) -> str:
        ends = sorted({EARLY, self.marks[-1]}) if len(self.marks) > 1 else []
        heads = ["strategy", *map(str, self.marks), *(f"area to {end}" for end in ends), "p", "random's last at"]
        lines = [f"## {self.title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for name in self.strategies:
            curve = self.mean(name)
            figures = [*curve, *(self.area(curve, end) for end in ends)]
            chance = self.chance(name) if "default" in self.curves else float("nan")
            p = "" if np.isnan(chance) else f"{chance:.2g}"
            lines.append("| " + " | ".join([name, *map("{:.3f}".format, figures), p, self.reached(name)]) + " |")
        return "\n".join(lines)


def groups(records: Iterable[Record]) -> list[Group]:
    """One for each graph, share of wrong answers, learner and number of first and last labels."""
    found: dict[tuple[Any, ...], Group] = {}
    for one in records:
        if "learner" in one:
            marks = tuple(map(int, one["accuracy"]))
            key = (one["graph"], one["wrong"], one["learner"], marks)
            curve = np.array(list(one["accuracy"].values()))
            found.setdefault(key, Group(*key)).curves[one["strategy"]][one["seed"]] = curve
    return [found[key] for key in sorted(found)]


def table(records: Sequence[Record]) -> str:
    """For each group: mean accuracy at every mark; the mean height of the curve up to 5 labels per class and up to the
    last; p, that the default is no better than this strategy up to 5 labels; and the labels per class at which random's
    last accuracy is reached."""
    return "\n\n".join([*(group.table() for group in groups(records)), _times(records)])


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


def drawing(records: Sequence[Record]) -> str:
    """An SVG: a panel for each group with true answers, a line for each strategy; the graphs of a learner together."""
    drawn = [one for one in groups(records) if not one.wrong and "random" in one.curves and len(one.marks) > 1]
    drawn.sort(key=lambda group: (group.marks, group.learner))
    panels = [
        Panel(one.title, {name: (one.marks, one.mean(name).tolist()) for name in one.strategies}) for one in drawn
    ]
    return curves("Test accuracy against labels per class, by strategy", panels, "default")
