"""`g3nn reproduce`: the paper's tables with one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from g3nn.cli.bench import Workers, end, train_missing
from g3nn.cli.options import Device, ExecutorName
from g3nn.studies.comparison import compare
from g3nn.studies.store import Store
from g3nn.studies.suite_page import write_report
from g3nn.studies.tables import render


def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="One point for each cell instead of a search.")] = False,
    store: Annotated[
        Path | None, typer.Option(help="File with the records; default: g3nn-paper.sqlite or g3nn-quick.sqlite.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The HTML report; default: beside the store.")] = None,
    executor: ExecutorName = "local",
    workers: Workers = None,
    device: Device = "auto",
) -> None:
    """Train everything in the paper's tables, print them, and write a report.

    Interrupt it at any time; the same command goes on. The exit code is 1 if trainings failed, as of `bench run`.
    """
    name = "quick" if quick else "paper"
    records = store or Path(f"g3nn-{name}.sqlite")
    page = out or records.with_suffix(".html")
    suite, report = train_missing(name, records, executor, device, workers, out=page)
    with Store.read(records) as results:
        print(render(compare(suite, results)), end="")
    write_report(suite, records, page)
    print(f"report in {page}")
    end(report)
