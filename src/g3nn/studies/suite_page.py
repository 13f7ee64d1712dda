"""The page of a suite: its tables beside the published ones, and the details of every cell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from g3nn.pages import assets
from g3nn.pages.averages import curves, pooled
from g3nn.studies import suite_views as views
from g3nn.studies.comparison import CellResult, compare
from g3nn.studies.records import Evidence
from g3nn.studies.statistics import LEVEL
from g3nn.studies.store import Store
from g3nn.studies.suite import Suite
from g3nn.studies.tables import REPRODUCED_WITHIN, layouts, summaries


def write_report(suite: Suite, store_path: Path, out_path: Path) -> None:
    """Write the page of a suite from the results in a store."""
    assets.check_target(out_path)
    with Store.read(store_path) as store:
        comparison = compare(suite, store)
        environments = views.environments(store.environments())
    cells = comparison.cells
    rates = views.rates(cells)
    text = assets.render(
        "paper.html.j2",
        styles=["paper.css"],
        scripts=["evidence.js", "drawer.js", "paper.js", "rates.js"],
        data={
            "cells": [_details(cell) for cell in cells],
            "datasets": views.datasets(suite),
            "rates": rates,
            "full_colour": views.FULL_COLOUR,
            "level": LEVEL,
        },
        suite=suite,
        introduction=views.introduction(cells),
        summaries=summaries(comparison),
        group_label=views.group_label,
        close=REPRODUCED_WITHIN,
        choices=views.choices(comparison),
        rates=rates,
        filters=views.filters(cells),
        full_colour=views.FULL_COLOUR,
        level=LEVEL,
        layouts=layouts(cells),
        view=partial(views.view, suite),
        protocol=views.protocol(suite),
        environments=environments,
    )
    assets.write(out_path, text)


def _details(cell: CellResult) -> dict[str, Any]:
    """What the drawer of a cell shows. A run is [seed, test accuracy, validation loss, epochs, status, error]."""
    return {
        **cell.facts(),
        "id": views.cell_id(cell),
        "kind": views.kind_of(cell),
        "label": cell.label,
        "grid": _grid(cell),
        "runs": [[run.seed, run.test_accuracy, run.val_loss, run.epochs, run.status, run.error] for run in cell.runs],
        **_evidence([record.evidence for record in cell.runs if record.evidence is not None]),
    }


def _evidence(trials: Sequence[Evidence]) -> dict[str, Any]:
    """Averages over the trials of a cell, if there are any."""
    if not trials:
        return {}
    return {
        "test_nodes": trials[0].test_nodes,
        "scores": {name: fmean(getattr(trial, name) for trial in trials) for name in ("ece", "brier", "nll")},
        "curves": curves([(trial.epochs, trial.curves) for trial in trials]),
        "reliability": pooled(trial.reliability for trial in trials),
        "degrees": pooled(trial.degrees for trial in trials),
        "confusion": np.mean([trial.confusion for trial in trials], axis=0).tolist(),
    }


def _grid(cell: CellResult) -> dict[str, Any]:
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
