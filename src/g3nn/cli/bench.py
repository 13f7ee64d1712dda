"""`g3nn bench`: suites of experiments, from the trainings to the tables. Only training loads torch."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from g3nn.base.errors import DataError, Problems
from g3nn.cli.options import AsJson, Device, ExecutorName
from g3nn.pages.assets import check_target, write
from g3nn.studies.comparison import compare
from g3nn.studies.store import Store
from g3nn.studies.suite import FILTERS, Suite, checked_part
from g3nn.studies.suite_file import load_suite, suite_names
from g3nn.studies.suite_page import write_report
from g3nn.studies.tables import FORMATS, render

if TYPE_CHECKING:
    from g3nn.studies.run import RunReport

bench = typer.Typer(
    help="Run suites of experiments and compare them with published results.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

SuiteName = Annotated[str, typer.Argument(help="The name of a suite (see `g3nn bench suites`), or its file or folder.")]
StorePath = Annotated[Path, typer.Option("--store", help="File with the records of all trainings.")]
Filters = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="KEY=VALUE", help=f"Part of the suite: {', '.join(FILTERS)}; VALUE may be a list."),
]
Workers = Annotated[int | None, typer.Option(help="Jobs at once, in separate processes. Several can share a GPU.")]


@bench.command("run")
def run_suite(
    suite: SuiteName,
    store: StorePath,
    only: Filters = None,
    trials: Annotated[int | None, typer.Option(help="Trials of each cell; default: as the suite says.")] = None,
    executor: ExecutorName = "local",
    workers: Workers = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Train what the store does not hold yet. Interrupt it at any time; the same command goes on.

    The exit code is 0 if all is well, 1 if trainings failed now or earlier, 2 if nothing could be run, 130 after an
    interrupt. A training that found no memory is tried again by the next run, any other failure is not.
    """
    _, report = train_missing(suite, store, executor, device, workers, only=only, trials=trials)
    if as_json:
        print(json.dumps({**asdict(report), "seconds": round(report.seconds, 3), "store": str(store)}))
    else:
        print(f"{report.stacks} stacks, {report.trainings} trainings in {report.seconds:.1f} s; records in {store}")
    end(report)


@bench.command("table")
def table(
    suite: SuiteName,
    store: StorePath,
    only: Filters = None,
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "text",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of the terminal.")] = None,
) -> None:
    """Measured beside published numbers, with differences and their significance."""
    problems = Problems()
    problems.name("format", form, FORMATS)
    loaded, part = checked(suite, store, problems, only=only, out=out)
    with Store.read(store) as results:
        text = render(compare(loaded, results, part), form)
    if out is None:
        print(text, end="")
    else:
        write(out, text)


@bench.command("report")
def report_page(
    suite: SuiteName,
    store: StorePath,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """One HTML file with all results, made only from the stored records."""
    loaded, _ = checked(suite, store, Problems(), out=out)
    write_report(loaded, store, out)
    print(f"report in {out}")


@bench.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(help="Stores whose records are copied.")],
    into: Annotated[Path, typer.Option(help="The store that receives them; created if it does not exist.")],
    as_json: AsJson = False,
) -> None:
    """Copy the records of several stores into one. Records that it already holds stay unchanged."""
    with Problems() as problems:
        check_store(into, problems, argument="into")
        for file in files:
            check_store(file, problems, exists=True, argument="file")
    with Store.open(into) as store:
        merged = store.merge(files)
    if as_json:
        print(json.dumps(asdict(merged)))
        return
    print(f"{merged.added} records added, {merged.present} already present")
    if merged.conflicts:
        print(f"note: {merged.conflicts} already present with another result, which stays", file=sys.stderr)


@bench.command("suites")
def suites(as_json: AsJson = False) -> None:
    """The suites that come with g3nn."""
    loaded = {name: load_suite(name) for name in suite_names()}
    if as_json:
        rows = [{"name": name, "title": suite.title, "source": suite.source} for name, suite in loaded.items()]
        print(json.dumps(rows))
        return
    for name, suite in loaded.items():
        print(f"{name}: {suite.title} ({suite.source})")


def filters(texts: Sequence[str] | None, problems: Problems) -> dict[str, str]:
    """KEY=VALUE texts by key; the values of a repeated key are joined. Cells without a variant have an empty one."""
    values: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key or not (value or key == "variant"):
            problems.add("--only", repr(text), "KEY=VALUE, such as dataset=cora,pubmed")
        else:
            values[key] = f"{values[key]},{value}" if key in values else value
    return values


def checked(
    name: str,
    store: Path,
    problems: Problems,
    *,
    only: Sequence[str] | None = None,
    out: Path | None = None,
    trials: int | None = None,
    to_run: bool = False,
) -> tuple[Suite, dict[str, str]]:
    """A suite and the part of it that is wanted. Raises all problems, also if the store cannot be used as it is needed,
    or `out` not be written."""
    part = filters(only, problems)
    with problems.gathered():
        suite = checked_part(load_suite(name, to_run), part, trials, problems)
    check_store(store, problems, exists=not to_run)
    if out is not None:
        with problems.gathered():
            check_target(out)
        if os.path.realpath(out) == os.path.realpath(store):
            problems.add("out", out, "another file than the store")
    problems.raise_if_any()
    return suite, part


def check_store(path: Path, problems: Problems, exists: bool = False, argument: str = "store") -> None:
    """Record it if the file is something else or, where it must exist, missing."""
    try:
        # Unlike the methods of a path, these do not raise where nothing may be looked up.
        if exists or os.path.exists(path):
            Store.read(path).close()
        elif not os.path.isdir(path.absolute().parent):
            problems.add(argument, path, "a file in a folder that exists")
    except DataError as error:
        problems.add(argument, path, "a store of results", str(error))


def train_missing(
    name: str,
    store: Path,
    executor: str,
    device: str,
    workers: int | None,
    *,
    only: Sequence[str] | None = None,
    out: Path | None = None,
    trials: int | None = None,
) -> tuple[Suite, RunReport]:
    """Run a suite and note what went wrong. An interrupt says how to go on."""
    from g3nn.studies import run
    from g3nn.studies.executors import make_executor

    problems = Problems()
    with problems.gathered():
        place = make_executor(executor, device, workers)
    suite, part = checked(name, store, problems, only=only, out=out, trials=trials, to_run=True)
    try:
        report = run.run(suite, store, place, part)
    except KeyboardInterrupt:
        print("Finished trainings are stored: the same command goes on from there.", file=sys.stderr)
        raise typer.Exit(130) from None
    for failure in (*report.failures, *report.postponed):
        print(f"note: {failure}", file=sys.stderr)
    if report.postponed:
        advice = "run the same command again, with fewer workers or when other processes have ended"
        print(f"note: what found no memory is not stored: {advice}", file=sys.stderr)
    if report.diverged:
        print(f"note: {report.diverged} trainings diverged", file=sys.stderr)
    return suite, report


def end(report: RunReport) -> None:
    """Say by the exit code whether trainings failed. The store and all that is made from it are there all the same."""
    if report.failures or report.postponed:
        raise typer.Exit(1)
