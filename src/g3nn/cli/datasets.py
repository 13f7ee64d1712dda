"""`g3nn datasets`: the benchmark graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g3nn.base.errors import G3NNError, Problems, warn_caller
from g3nn.base.folders import check_new_folder
from g3nn.cli.options import AsJson
from g3nn.graph.datasets import ALL_DATASETS, DATASETS, load, statistics
from g3nn.graph.tables.frames import EXAMPLE_FILES
from g3nn.graph.tables.frames import export as write_tables
from g3nn.graph.task import NodeTask

LISTED = (*DATASETS, *(name for name in ALL_DATASETS if ALL_DATASETS.package(name)))
"""Those of the paper and those of other packages."""


def datasets(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(LISTED)}; default: all of them.")] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the dataset as tables for `g3nn fit` into a new folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sizes of the benchmark graphs, with the mean number of nodes within two hops."""
    if export is not None:
        _export(name, export)
    rows = {task.name: statistics(task) for task in ([load(name)] if name else _all_tasks())}
    if as_json:
        numbers = [{"name": one, **row, "mean_two_hop": round(row["mean_two_hop"], 1)} for one, row in rows.items()]
        print(json.dumps(numbers[0] if name else numbers))
        return
    _show(rows)
    if export is not None:
        print(f"{', '.join(EXAMPLE_FILES)} in {export}")


def _all_tasks() -> Iterator[NodeTask]:
    """What another package cannot load does not keep the others from being shown."""
    for name in LISTED:
        try:
            yield load(name)
        except G3NNError as error:
            if name in DATASETS:
                raise
            warn_caller(f"{error} It is left out.")


def _export(name: str | None, folder: Path) -> None:
    """Report all problems before anything is loaded."""
    with Problems() as problems:
        if name is None:
            problems.add("export", folder, "the name of one dataset as well", f"Say which: {', '.join(LISTED)}.")
        check_new_folder(folder, problems, "export")
    assert name is not None
    write_tables(load(name), folder)


def _show(rows: Mapping[str, Mapping[str, float]]) -> None:
    # Without lines between the columns, names and numbers fit on a terminal of 80 columns.
    table = Table(box=SIMPLE, pad_edge=False, collapse_padding=True)
    for column in ("dataset", "nodes", "edges", "classes", "features", "mean\n2-hop", "train", "val", "test"):
        table.add_column(column, justify="left" if column == "dataset" else "right")
    for name, row in rows.items():
        table.add_row(name, *(f"{size:,}" if isinstance(size, int) else f"{size:.1f}" for size in row.values()))
    Console().print(table)
