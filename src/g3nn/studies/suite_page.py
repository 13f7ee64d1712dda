"""The page of a suite: tables beside the published ones, key figures, how it was run, and the details of each cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np

from g3nn.pages import assets
from g3nn.pages.assets import count, number, signed
from g3nn.pages.averages import curves, pooled
from g3nn.studies.comparison import LEVEL, CellResult, Comparison, compare
from g3nn.studies.records import Environment, Evidence
from g3nn.studies.store import Store
from g3nn.studies.suite import ESTIMATOR, Suite
from g3nn.studies.tables import DISCRIMINATIVE, REPRODUCED_WITHIN, layouts, summaries

Value = TypeVar("Value")

GENERATIVE = "generative"

FULL_COLOUR = 0.03
"""A difference from the published value of this size or more has the strongest colour."""


class CellView:
    """One cell, ready to print.

    label: what a screen reader says. bold: no mean of its dataset is higher; a discriminative model is compared with
    the generative ones of every objective, which the page narrows down to those that the reader looks at. direction,
    strength: where its difference from the published value points, and how much of the full colour it has, in percent.
    """

    def __init__(self, suite: Suite, cell: CellResult) -> None:
        difference, generative = cell.difference or 0.0, kind_of(cell) == GENERATIVE
        self.id, self.result = cell_id(cell), cell
        self.bold = cell.bold if generative else set(cell.best_in) == set(suite.objectives)
        self.direction = "above" if difference > 0 else "below"
        if signed(difference) == signed(0.0):
            self.direction = "same"
        self.strength = round(100 * min(abs(difference) / FULL_COLOUR, 1))
        where = f"{cell.label.upper()} on {cell.dataset.capitalize()}, {cell.setting}"
        where += f", {cell.objective} objective" if generative else ""
        measured = "quoted" if cell.quoted else "not measured"
        said = [measured if cell.mean is None else f"measured {_spread(cell.mean, cell.std)}"]
        if cell.published is not None:
            said.append(f"published {_spread(cell.published, cell.published_std)}")
        if cell.difference is not None:
            said.append(f"difference {signed(cell.difference)}")
        if cell.selected and cell.counterpart:
            said.append("chosen by validation")
        self.label = f"{where}: {', '.join(said)}"


class Choice:
    """Our model on a dataset and setting, which validation chose, and the most accurate of its peers, if there is one.

    p_value: of a t-test between the two, as the table prints it.
    """

    def __init__(self, cell: CellResult, cells: Sequence[CellResult]) -> None:
        self.id, self.result = cell_id(cell), cell
        beside = [peer for peer in cells if (peer.dataset, peer.setting) == (cell.dataset, cell.setting)]
        peers = [peer for peer in beside if peer.label in cell.peers and peer.mean]
        self.peer = max(peers, key=lambda peer: peer.mean or 0.0, default=None)
        p = None if self.peer is None else cell.peers[self.peer.label]
        self.p_value = "< 0.001" if p is not None and p < 0.001 else number(p)


def write_report(suite: Suite, store_path: Path, out_path: Path) -> None:
    """Write the page of a suite from the results in a store."""
    assets.check_target(out_path)
    with Store.read(store_path) as store:
        comparison = compare(suite, store)
        made_in = environments(store.environments())
    cells = comparison.cells
    by_noise = rates(cells)
    text = assets.render(
        "paper.html.j2",
        styles=["paper.css"],
        scripts=["evidence.js", "drawer.js", "paper.js", "rates.js"],
        data={
            "cells": [_details(cell) for cell in cells],
            "datasets": datasets(suite),
            "rates": by_noise,
            "full_colour": FULL_COLOUR,
            "level": LEVEL,
        },
        suite=suite,
        introduction=introduction(cells),
        summaries=summaries(comparison),
        group_label=group_label,
        close=REPRODUCED_WITHIN,
        choices=choices(comparison),
        rates=by_noise,
        filters=filters(cells),
        full_colour=FULL_COLOUR,
        level=LEVEL,
        layouts=layouts(cells),
        view=partial(CellView, suite),
        protocol=protocol(suite),
        environments=made_in,
    )
    assets.write(out_path, text)


def _details(cell: CellResult) -> dict[str, object]:
    """What the drawer of a cell shows. A run is [seed, test accuracy, validation loss, epochs, status, error]."""
    return {
        **cell.facts(),
        "id": cell_id(cell),
        "kind": kind_of(cell),
        "label": cell.label,
        "grid": _grid(cell),
        "runs": [[run.seed, run.test_accuracy, run.val_loss, run.epochs, run.status, run.error] for run in cell.runs],
        **_evidence([record.evidence for record in cell.runs if record.evidence is not None]),
    }


def _evidence(trials: Sequence[Evidence]) -> dict[str, object]:
    """Averages over the trials of a cell, if there are any."""
    if not trials:
        return {}
    return {
        "test_nodes": trials[0].test_nodes,
        "scores": {name: fmean(getattr(trial, name) for trial in trials) for name in ("ece", "brier", "nll")},
        "curves": curves([(trial.epochs, trial.curves) for trial in trials]),
        "reliability": pooled([trial.reliability for trial in trials]),
        "degrees": pooled([trial.degrees for trial in trials]),
        "confusion": np.mean([trial.confusion for trial in trials], axis=0).tolist(),
    }


def _grid(cell: CellResult) -> dict[str, object]:
    """The points of the grid: the options in which they differ, and for each point their values, its mean validation
    loss, its seeds and whether it was chosen."""
    options = [dict(point.options) for point in cell.selection]
    names = sorted({name for own in options for name in own})
    varied = [name for name in names if len({repr(own.get(name)) for own in options}) > 1]
    chosen = None if cell.chosen is None else dict(cell.chosen)
    return {
        "names": varied,
        "points": [
            [*(own.get(name) for name in varied), point.mean_val_loss, point.seeds, "chosen" if own == chosen else ""]
            for own, point in zip(options, cell.selection, strict=True)
        ],
    }


def kind_of(cell: CellResult) -> str:
    return DISCRIMINATIVE if cell.counterpart is None else GENERATIVE


def cell_id(cell: CellResult) -> str:
    return ".".join((cell.table, cell.setting, cell.dataset, cell.label, cell.objective))


def _spread(mean: float, std: float | None) -> str:
    return number(mean) if std is None else f"{number(mean)} ± {number(std)}"


def choices(comparison: Comparison) -> list[Choice]:
    """One for each setting and dataset of a suite that selects a model; none for other suites."""
    cells = comparison.cells
    settings, datasets = _distinct(cell.setting for cell in cells), _datasets(cells)
    chosen = [cell for cell in cells if cell.selected]
    chosen.sort(key=lambda cell: (settings.index(cell.setting), datasets.index(cell.dataset)))
    return [Choice(cell, cells) for cell in chosen]


def filters(cells: Sequence[CellResult]) -> dict[str, tuple[str, ...]]:
    """The values that a reader can pick from, by what they are values of. The name also stands in the address."""
    offered = {
        "setting": _distinct(cell.setting for cell in cells),
        "dataset": _datasets(cells),
        "objective": _distinct(cell.objective for cell in cells if kind_of(cell) == GENERATIVE),
        "kind": _distinct(kind_of(cell) for cell in cells),
    }
    return {name: values for name, values in offered.items() if len(values) > 1}


def rates(cells: Sequence[CellResult]) -> list[dict[str, object]]:
    """For each kind of noise and dataset the accuracy of every model by the amount of noise, in percent.

    A setting such as "random-50" names both. Without noise is the amount 0 of its kind, else the standard setting, else
    the amount 0 of another kind. A quoted model has its published accuracy.
    """
    known = [cell for cell in cells if _accuracy(cell) is not None]
    named = {cell.setting: found.groups() for cell in known if (found := _AMOUNT.fullmatch(cell.setting))}
    zeros = [setting for setting, (_, amount) in named.items() if int(amount) == 0]
    sound = "standard" if not zeros or any(cell.setting == "standard" for cell in known) else zeros[0]
    panels: list[dict[str, object]] = []
    for kind, dataset in _distinct((named[cell.setting][0], cell.dataset) for cell in known if cell.setting in named):
        own = [cell for cell in known if cell.dataset == dataset]
        at = {int(amount): setting for setting, (one, amount) in named.items() if one == kind}
        at = {0: sound, **at}
        lines = []
        for label in _distinct(cell.label for cell in own):
            mine = {cell.setting: cell for cell in own if cell.label == label}
            there = {amount: mine[at[amount]] for amount in sorted(at) if at[amount] in mine}
            if any(there):
                lines.append(_line(label, there))
        panels.append({"title": f"{kind.capitalize()} on {dataset.capitalize()}", "lines": lines})
    return panels


_AMOUNT = re.compile(r"(?!labels)(\w+)-(\d+)")
"""A setting with noise: what kind, and how much in percent."""


def _line(label: str, there: dict[int, CellResult]) -> dict[str, object]:
    first = next(iter(there.values()))
    return {
        "label": f"{label} (published)" if first.quoted else label,
        "ours": first.ours,
        "quoted": first.quoted,
        "rates": list(there),
        "means": [_accuracy(cell) for cell in there.values()],
        "stds": [cell.published_std if cell.quoted else cell.std for cell in there.values()],
    }


def _accuracy(cell: CellResult) -> float | None:
    return cell.published if cell.quoted else cell.mean


def group_label(name: str) -> str:
    if name == ESTIMATOR:
        return "Estimator"
    return "Discriminative" if name == DISCRIMINATIVE else f"Generative, {name} objective"


def introduction(cells: Sequence[CellResult]) -> str:
    """What is compared, in a sentence."""
    models = _distinct(cell.label for cell in cells if not cell.quoted)
    settings = _distinct(cell.setting for cell in cells)
    datasets = [name.capitalize() for name in _datasets(cells)]
    where = " and ".join(filter(None, (", ".join(datasets[:-1]), *datasets[-1:])))
    trials = [cell.trials for cell in cells if cell.mean is not None]
    measured = f"each the mean of {_range(trials, 'trial')}" if trials else "not measured yet"
    return (
        f"Test accuracy of {count(len(models), 'model')} on {where} under {count(len(settings), 'setting')}, "
        f"{measured}, beside the published value."
    )


def protocol(suite: Suite) -> list[str]:
    """How the numbers were made, in two paragraphs."""
    first = suite.protocol.first_seed
    counts = _distinct(suite.trials(cell) for cell in suite.cells)
    trials = " or ".join(f"seeds {first} to {first + many - 1}" if many > 1 else f"seed {first}" for many in counts)
    return [
        _selection(suite),
        f"The chosen point is trained with {trials}, which had no part in the choice. The tables show the mean and "
        "the standard deviation of the test accuracy.",
    ]


def _selection(suite: Suite) -> str:
    rules = suite.protocol
    sizes = [len(suite.points(entry)) for entry in suite.entries() if not entry.cell.quoted]
    if max(sizes, default=0) < 2:
        return "Every cell has one point, so nothing is chosen."
    text = f"The grid of a cell has {_range(sizes, 'point')}, each trained with "
    text += f"{count(rules.selection_seeds, 'seed')}, starting at seed {rules.first_selection_seed}"
    if rules.finalists > 1 and rules.finalist_seeds > rules.selection_seeds:
        text += f", and the best {rules.finalists} of them with {rules.finalist_seeds} seeds in all"
    return f"{text}. The lowest mean validation loss is chosen; no test label is used."


def _range(numbers: Sequence[int], singular: str) -> str:
    few, many = min(numbers), max(numbers)
    return count(many, singular) if few == many else f"{few} to {count(many, singular)}"


def datasets(suite: Suite) -> dict[str, object]:
    """The table of datasets, for the script."""
    rows = [[row.dataset.capitalize(), row.nodes, row.edges, row.classes, row.mean_two_hop] for row in suite.datasets]
    columns = {"dataset": None, "nodes": 0, "edges": 0, "classes": 0, "in 2 hops": 1}
    return {"caption": "Datasets", "columns": columns, "rows": rows}


def environments(stored: Iterable[Environment]) -> list[str]:
    """One line for each machine and set of versions."""
    lines = ([*environment.hardware.items(), *environment.software.items()] for environment in stored)
    return list(_distinct(", ".join(f"{name} {value}" for name, value in line) for line in lines))


def _datasets(cells: Sequence[CellResult]) -> tuple[str, ...]:
    return _distinct(cell.dataset for cell in cells)


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
