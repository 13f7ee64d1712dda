"""`g3nn bench`: suites of experiments, from the trainings to the tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from g3nn.cli.options import AsJson
from g3nn.errors import DataError, Problems
from g3nn.experiments.comparison import compare
from g3nn.experiments.executors import EXECUTORS, check_executor
from g3nn.experiments.run import RunReport, checked_part, run
from g3nn.experiments.store import Store
from g3nn.experiments.suite import FILTERS, Suite, load_suite, suite_names
from g3nn.experiments.tables import FORMATS, render
from g3nn.report import write_report
from g3nn.report.assets import check_target, write

bench = typer.Typer(no_args_is_help=True, help="Run suites of experiments and compare them with what was published.")

SuiteName = Annotated[str, typer.Argument(help="A suite by name (see `g3nn bench suites`), or its file or folder.")]
StorePath = Annotated[Path, typer.Option("--store", help="File with the records of all trainings.")]
Filters = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="KEY=VALUE", help=f"Part of the suite: {', '.join(FILTERS)}, VALUE may be a list."),
]
ExecutorName = Annotated[str, typer.Option(help=f"Where to train: {' or '.join(EXECUTORS)}.")]
Workers = Annotated[int | None, typer.Option(help="Jobs at once, in processes of their own. Several can share a GPU.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@bench.command("run")
def run_suite(
    suite: SuiteName,
    store: StorePath,
    only: Filters = None,
    trials: Annotated[
        int | None, typer.Option(help="Trials of each cell; the suite says how many if left out.")
    ] = None,
    executor: ExecutorName = "local",
    workers: Workers = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Train what the store does not hold yet. Interrupt it at any time; the same command goes on."""
    problems = Problems()
    part = filters(only, problems)
    loaded = checked_suite(suite, part, trials, problems)
    check_executor(executor, device, workers, problems)
    check_store(store, problems)
    problems.raise_if_any()
    assert loaded is not None
    with resumable():
        report = run(loaded, store, only=part, trials=trials, executor=executor, device=device, workers=workers)
    tell_problems(report)
    if as_json:
        print(json.dumps({**report.to_json(), "store": str(store)}))
    else:
        print(f"{report.stacks} stacks, {report.trainings} trainings in {report.seconds:.1f} s; records in {store}")


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
    part = filters(only, problems)
    loaded = checked_suite(suite, part, None, problems)
    problems.name("format", form, FORMATS)
    check_store(store, problems, made=True)
    if out is not None:
        check_out(out, store, problems)
    problems.raise_if_any()
    assert loaded is not None
    with Store.read(store) as held:
        text = render(compare(loaded, held, part), form)
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
    """One HTML file with everything there is to see, made from the stored records alone."""
    problems = Problems()
    loaded = checked_suite(suite, {}, None, problems)
    check_store(store, problems, made=True)
    check_out(out, store, problems)
    problems.raise_if_any()
    assert loaded is not None
    write_report(loaded, store, out)
    print(f"report in {out}")


@bench.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(help="Stores whose records are taken over.")],
    into: Annotated[Path, typer.Option(help="The store that receives them; made if there is none.")],
    as_json: AsJson = False,
) -> None:
    """Gather the records of several stores in one. Records that it holds already stay as they are."""
    problems = Problems()
    check_store(into, problems, argument="into")
    for file in files:
        check_store(file, problems, made=True, argument="file")
    problems.raise_if_any()
    with Store.open(into) as store:
        merged = store.merge(files)
    if as_json:
        print(json.dumps(asdict(merged)))
        return
    print(f"{merged.added} records added, {merged.present} were there already")
    if merged.conflicts:
        print(f"note: {merged.conflicts} were there with another result, which stays", file=sys.stderr)


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
    """KEY=VALUE texts by key; a key that comes again adds to its values."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key or not value:
            problems.add("--only", repr(text), "KEY=VALUE, such as dataset=cora,pubmed")
        else:
            found[key] = f"{found[key]},{value}" if key in found else value
    return found


def checked_suite(name: str, only: dict[str, str], trials: int | None, problems: Problems) -> Suite | None:
    """The suite, or None if it cannot be read; whether the wanted part of it exists is checked too."""
    suite = None
    with problems.gathered():
        suite = load_suite(name)
    if suite is not None:
        checked_part(suite, only, trials, problems)
    return suite


def check_store(path: Path, problems: Problems, made: bool = False, argument: str = "store") -> None:
    """Record it if there is something else at this path, or (`made`) nothing."""
    if path.exists():
        try:
            Store.read(path).close()
        except DataError as error:
            problems.add(argument, path, "a store of results", str(error))
    elif made:
        problems.add(argument, f"{path}, which does not exist", "a store that `g3nn bench run` made")
    elif not path.absolute().parent.is_dir():
        problems.add(argument, path, "a file in a folder that exists")


def check_out(path: Path, store: Path, problems: Problems) -> None:
    """Record it if a file cannot be written there."""
    with problems.gathered():
        check_target(path)
    if path.resolve() == store.resolve():
        problems.add("out", path, "another file than the store")


@contextmanager
def resumable() -> Iterator[None]:
    """An interrupt ends the command with a word on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print("stopped. What is done is stored: the same command goes on from there.", file=sys.stderr)
        raise typer.Exit(130) from None


def tell_problems(report: RunReport) -> None:
    for failure in report.failures:
        print(f"note: {failure}", file=sys.stderr)
    if report.diverged:
        print(f"note: {report.diverged} trainings diverged", file=sys.stderr)
