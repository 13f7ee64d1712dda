"""The page of a suite: its tables beside the published ones, and what is behind every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from g3nn.experiments.comparison import CellResult, Comparison, compare
from g3nn.experiments.records import Point, Record
from g3nn.experiments.statistics import LEVEL
from g3nn.experiments.store import Store
from g3nn.experiments.suite import Suite
from g3nn.report import assets, views
from g3nn.report.averages import average, tidy

_PLAIN = (
    "table", "dataset", "setting", "label", "objective", "row", "counterpart", "published", "published_std",
    "mean", "std", "trials", "failed", "difference", "difference_low", "difference_high", "binomial_low",
    "binomial_high", "p_value", "significant", "above", "val_loss", "val_accuracy",
    "selected",
)  # fmt: skip
"""What a panel shows of a cell as the comparison has it."""


def write_report(suite: Suite, store_path: Path, out_path: Path) -> None:
    """Write the page of a suite, from the store alone."""
    assets.check_target(out_path)
    with Store.read(store_path) as store:
        text = page(suite, compare(suite, store), store)
    assets.write(out_path, text)


def page(suite: Suite, comparison: Comparison, store: Store) -> str:
    """The page as text."""
    cells = comparison.cells
    return assets.render(
        "paper.html.j2",
        styles=["paper.css", "panel.css"],
        scripts=["evidence.js", "paper.js", "panel.js", "start.js"],
        data={
            "cells": _cells(cells, store.records(stage="trial", evidence=True)),
            "full_colour": views.FULL_COLOUR,
            "level": LEVEL,
        },
        suite=suite,
        introduction=views.introduction(cells),
        cards=views.cards(comparison),
        choices=views.choices(comparison),
        filters=views.filters(cells),
        full_colour=views.FULL_COLOUR,
        level=LEVEL,
        blocks=views.blocks(suite, cells),
        protocol=views.protocol(suite),
        environments=views.environments(store.environments()),
    )


def _cells(cells: Sequence[CellResult], records: Sequence[Record]) -> list[dict[str, Any]]:
    """Everything the scripts show, by cell."""
    by_point: dict[str, list[Record]] = {}
    for record in records:
        by_point.setdefault(record.point.key, []).append(record)
    return [_cell(cell, by_point) for cell in cells]


def _cell(cell: CellResult, by_point: Mapping[str, Sequence[Record]]) -> dict[str, Any]:
    trials: Sequence[Record] = ()
    if cell.chosen is not None:
        point = Point(cell.dataset, cell.setting, cell.model, cell.objective, cell.chosen)
        trials = by_point.get(point.key, ())
    return {
        "id": views.cell_id(cell),
        "kind": views.kind_of(cell),
        **{name: _plain(getattr(cell, name)) for name in _PLAIN},
        "peers": {peer: _plain(p) for peer, p in cell.peers.items()},
        "chosen": None if cell.chosen is None else dict(cell.chosen),
        "grid": _grid(cell),
        "runs": [_run(record) for record in trials],
        **average([record.evidence for record in trials if record.evidence is not None]),
    }


def _plain(value: Any) -> Any:
    return tidy(value, 6) if isinstance(value, float) else value


def _run(record: Record) -> list[Any]:
    """seed, test accuracy, validation loss, epochs, status, error."""
    scores = [tidy(record.test_accuracy, 6), tidy(record.val_loss, 6)]
    return [record.seed, *scores, record.epochs, record.status, record.error]


def _grid(cell: CellResult) -> dict[str, Any]:
    """The points of the grid by the options in which they differ: names once, then one row of values for each."""
    options = [dict(point.options) for point in cell.selection]
    names = sorted({name for one in options for name in one})
    varied = [name for name in names if len({repr(one.get(name)) for one in options}) > 1]
    return {
        "names": varied,
        "points": [
            [
                *(one.get(name) for name in varied),
                tidy(point.mean_val_loss, 6),
                point.seeds,
                cell.chosen is not None and one == dict(cell.chosen),
            ]
            for one, point in zip(options, cell.selection, strict=True)
        ],
    }
