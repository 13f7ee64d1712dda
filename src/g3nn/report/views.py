"""How a comparison is laid out for a reader: tables as in the paper, key figures, and how everything was run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from g3nn.experiments.comparison import CellResult, Comparison
from g3nn.experiments.records import Environment
from g3nn.experiments.suite import Suite, label
from g3nn.experiments.tables import CLOSE, DISCRIMINATIVE, Summary, selected, summaries
from g3nn.report.assets import count, number, signed

Value = TypeVar("Value")

GENERATIVE = "generative"

FULL_COLOUR = 0.03
"""A difference from the published value of this size or more has the strongest colour."""


@dataclass(frozen=True)
class CellView:
    """One cell, ready to print.

    bold: no mean of its dataset is higher. A discriminative model is held against the generative ones of every
    objective, which the page narrows down to those that the reader looks at.
    strength: how much of the full colour its difference has, in percent.
    """

    id: str
    result: CellResult
    label: str
    bold: bool
    strength: int

    @property
    def direction(self) -> str:
        difference = self.result.difference
        if difference is None or signed(difference) == signed(0.0):
            return "same"
        return "above" if difference > 0 else "below"


@dataclass(frozen=True)
class Row:
    model: str
    variant: str
    cells: tuple[CellView | None, ...]


@dataclass(frozen=True)
class Group:
    """Rows that belong together: the discriminative models, or the generative ones under one objective."""

    label: str
    kind: str
    objective: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Block:
    """One table."""

    table: str
    setting: str
    datasets: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    @property
    def longest_name(self) -> int:
        return max(len(row.model) for row in self.rows)

    @property
    def published(self) -> bool:
        """Whether there is anything to compare with."""
        return any(view is not None and view.result.published is not None for row in self.rows for view in row.cells)


@dataclass(frozen=True)
class Choice:
    """The generative model that validation chose on a dataset and setting, and the highest of its peers."""

    id: str
    result: CellResult
    peer: CellResult | None

    @property
    def p_value(self) -> str:
        """Of a t-test between the two, in words of a table."""
        p = None if self.peer is None else self.result.peers.get(self.peer.label)
        return "–" if p is None else "< 0.001" if p < 0.001 else number(p)


@dataclass(frozen=True)
class Filter:
    """Values that the reader can pick. `name` is also what stands in the address of a view."""

    name: str
    label: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Card:
    """What the page comes to for some of the models: one figure and lines of smaller print."""

    title: str
    figure: str
    label: str
    lines: tuple[str, ...]


def kind_of(cell: CellResult) -> str:
    return DISCRIMINATIVE if cell.counterpart is None else GENERATIVE


def cell_id(cell: CellResult) -> str:
    return ".".join((cell.table, cell.setting, cell.dataset, cell.label, cell.objective))


def blocks(suite: Suite, cells: Sequence[CellResult]) -> list[Block]:
    """One table for each table and setting of the suite, in its order."""
    found = []
    for table, setting in _distinct((cell.table, cell.setting) for cell in cells):
        members = [cell for cell in cells if (cell.table, cell.setting) == (table, setting)]
        datasets = _datasets(members)
        found.append(Block(table, setting, datasets, _groups(suite, members, datasets)))
    return found


def _groups(suite: Suite, cells: Sequence[CellResult], datasets: Sequence[str]) -> tuple[Group, ...]:
    keys = _distinct((kind_of(cell), cell.objective) for cell in cells)
    groups = []
    for kind, objective in sorted(keys, key=lambda key: (key[0] == GENERATIVE, suite.objectives.index(key[1]))):
        members = [cell for cell in cells if (kind_of(cell), cell.objective) == (kind, objective)]
        found = {(cell.label, cell.dataset): _view(suite, cell) for cell in members}
        rows = tuple(
            Row(model, variant, tuple(found.get((label(model, variant), dataset)) for dataset in datasets))
            for model, variant in _distinct((cell.model, cell.variant) for cell in members)
        )
        title = _group_label(kind if kind == DISCRIMINATIVE else objective)
        groups.append(Group(title, kind, objective, rows))
    return tuple(groups)


def _view(suite: Suite, cell: CellResult) -> CellView:
    where = f"{cell.label.upper()} on {cell.dataset.capitalize()}, {cell.setting}"
    bold = cell.bold
    if kind_of(cell) == GENERATIVE:
        where += f", {cell.objective} objective"
    else:
        bold = set(cell.best_in) == set(suite.objectives)
    measured = "not measured" if cell.mean is None else f"measured {_spread(cell.mean, cell.std)}"
    published = "" if cell.published is None else f", published {_spread(cell.published, cell.published_std)}"
    difference = "" if cell.difference is None else f", difference {signed(cell.difference)}"
    strength = round(100 * min(abs(cell.difference or 0.0) / FULL_COLOUR, 1))
    chosen = ", chosen by validation" if cell.selected else ""
    return CellView(cell_id(cell), cell, f"{where}: {measured}{published}{difference}{chosen}", bold, strength)


def _spread(mean: float, std: float | None) -> str:
    return number(mean) if std is None else f"{number(mean)} ± {number(std)}"


def choices(comparison: Comparison) -> list[Choice]:
    """One for each dataset and setting, in suites that select a model."""
    settings, datasets = _distinct(cell.setting for cell in comparison.cells), _datasets(comparison.cells)
    found = []
    for cell in sorted(
        selected(comparison), key=lambda cell: (settings.index(cell.setting), datasets.index(cell.dataset))
    ):
        peers = [
            one
            for one in comparison.cells
            if (one.dataset, one.setting) == (cell.dataset, cell.setting) and one.label in cell.peers and one.mean
        ]
        found.append(Choice(cell_id(cell), cell, max(peers, key=lambda one: one.mean or 0.0, default=None)))
    return found


def filters(cells: Sequence[CellResult]) -> list[Filter]:
    """Those that offer a choice."""
    kinds = _distinct(kind_of(cell) for cell in cells)
    objectives = _distinct(cell.objective for cell in cells if kind_of(cell) == GENERATIVE)
    choices = [
        Filter("setting", "Setting", tuple((name, name) for name in _distinct(cell.setting for cell in cells))),
        Filter("dataset", "Dataset", tuple((name, name.capitalize()) for name in _datasets(cells))),
        Filter("objective", "Objective", tuple((name, name) for name in objectives)),
        Filter("kind", "Model", tuple((name, name) for name in kinds)),
    ]
    return [choice for choice in choices if len(choice.values) > 1]


def cards(comparison: Comparison) -> list[Card]:
    """What to know before reading any table. Nothing is said about what was not measured."""
    return [_card(summary) for summary in summaries(comparison)]


def _card(summary: Summary) -> Card:
    title, measured = _group_label(summary.name), f"{summary.measured} of {summary.cells}"
    lines = []
    if summary.underlined:
        lines.append(f"{summary.reproduced} of {summary.underlined} published underlines reproduced")
    if summary.failed:
        lines.append(f"{count(summary.failed, 'trial')} failed")
    if not summary.published:
        return Card(title, measured, "cells measured", tuple(lines))
    close, of_what = f"{summary.close} of {summary.published}", f"within {CLOSE:g} of the published mean or above"
    return Card(title, close, of_what, (*lines, f"{measured} cells measured"))


def _group_label(name: str) -> str:
    return "Discriminative" if name == DISCRIMINATIVE else f"Generative, {name} objective"


def introduction(cells: Sequence[CellResult]) -> str:
    """What is compared, in a sentence."""
    models, settings = _distinct(cell.label for cell in cells), _distinct(cell.setting for cell in cells)
    trials = [cell.trials for cell in cells if cell.mean is not None]
    few, many = min(trials, default=0), max(trials, default=0)
    measured = f"each the mean of {count(many, 'trial') if few == many else f'{few} to {many} trials'}, "
    return (
        f"Test accuracy of {count(len(models), 'model')} on {_listed(name.capitalize() for name in _datasets(cells))} "
        f"under {count(len(settings), 'setting')}, {measured if trials else 'not measured yet, '}"
        "beside the published value."
    )


def protocol(suite: Suite) -> list[str]:
    """How the numbers come about, in sentences."""
    rules = suite.protocol
    seeds = f"seeds {rules.first_seed} to {rules.first_seed + rules.trials - 1}"
    trials = seeds if rules.trials > 1 else f"seed {rules.first_seed}"
    return [
        _selection(suite),
        f"The chosen point is trained with {trials}, which take no part in the choice. The tables show the mean and "
        "the standard deviation of the test accuracy.",
    ]


def _selection(suite: Suite) -> str:
    rules = suite.protocol
    sizes = [len(suite.points(entry)) for entry in suite.entries()]
    smallest, largest = min(sizes, default=0), max(sizes, default=0)
    if largest < 2:
        return "Every cell has one point, so nothing is chosen."
    points = count(largest, "point") if smallest == largest else f"{smallest} to {largest} points"
    text = f"The grid of a cell has {points}, each trained with {count(rules.selection_seeds, 'seed')} from "
    text += f"{rules.first_selection_seed} on"
    if rules.finalists > 1 and rules.finalist_seeds > rules.selection_seeds:
        text += f" and the best {rules.finalists} of them with {rules.finalist_seeds} in all"
    return f"{text}. The lowest mean validation loss is chosen; no test label takes part."


def environments(found: Iterable[Environment]) -> list[str]:
    """One line for each machine and set of versions."""
    parts = ([*one.hardware.items(), *one.software.items()] for one in found)
    return list(_distinct(", ".join(f"{name} {value}" for name, value in line) for line in parts))


def _datasets(cells: Sequence[CellResult]) -> tuple[str, ...]:
    return _distinct(cell.dataset for cell in cells)


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


def _listed(names: Iterable[str]) -> str:
    *others, last = list(names) or [""]
    return f"{', '.join(others)} and {last}" if others else last
