"""`g3nn label`: a page on this machine on which people label nodes while a model learns."""

from __future__ import annotations

import getpass
import secrets
import sys
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from g3nn.base.errors import Problems
from g3nn.base.folders import mend
from g3nn.cli import options
from g3nn.cli.results import check_file
from g3nn.labelling.background import Background
from g3nn.labelling.learner import ClassifierLearner
from g3nn.labelling.opinions import answers_table
from g3nn.labelling.project import FILE, Project
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import Records, ShownColumns
from g3nn.labelling.tables import check_unchanged, read_unlabelled

RESULT = "result"
"""The folder inside a project that is as `g3nn fit` writes one."""

_REQUIRED = ("nodes", "edges", "id", "label")
_READ = ("id", "categorical", "source", "target", "weight", "directed", "na", "keep_na", "drop_unknown_edges", "strict")
_REMEMBERED = (*_REQUIRED, "text", "title", "image", "url", "ignore", *_READ[1:])
"""The options with which a project goes on."""

HISTORY = ("seq", "at", "person", "node", "kind", "label", "note", "how", "guess", "sure", "undone")


def label(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the project; one that exists goes on.")],
    nodes: Annotated[Path | None, typer.Option(metavar="FILE", help="Table with one row per node.")] = None,
    edges: Annotated[Path | None, typer.Option(metavar="FILE", help="Table with one row per edge.")] = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="Column of the node table with the ids.")] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with classes; empty where unknown, or not there at all.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Column of words, to read and to learn from. Repeatable.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with a name to show, not to learn from.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with pictures: files below the folder of the node table.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="COL", help="Column with links to open.")] = None,
    categorical: options.CategoricalColumns = None,
    ignore: options.IgnoredColumns = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    directed: options.Directed = False,
    na: options.NullWords = None,
    keep_na: options.KeepNulls = False,
    drop_unknown_edges: options.DropUnknownEdges = False,
    strict: options.Strict = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers so far to .csv, .parquet or .xlsx, and stop."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="With --export: every answer, also corrected and undone ones.")
    ] = False,
    effort: Annotated[str, typer.Option(help="Of the result in the end: quick, default or thorough.")] = "default",
    person: Annotated[str | None, typer.Option(help="Your name in the answers; the page can change it.")] = None,
    port: Annotated[int, typer.Option(help="Where the page is served; the next free one if it is in use.")] = 8765,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address of the page, do not open it.")] = False,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(help="What the models begin with.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Label nodes in a page on this machine, while a model learns and chooses what to ask.

    Every answer is on disk before the next question. The same command goes on later, and then --out is enough. "Finish"
    on the page, or control-C here, writes DIR/result, a folder as `g3nn fit` writes one.
    """
    given, problems = dict(locals()), Problems()
    from g3nn.estimator.panel import EFFORTS  # Here: it loads torch.

    problems.name("effort", effort, EFFORTS)
    if not 0 <= port <= 65_535:
        problems.add("port", port, "a number from 0 (any) to 65535")
    if export is not None:
        check_file(export, [], problems)
        problems.raise_if_any()
        with Project.open(out, create=False) as project:
            _export(project, export, history, quiet)
        return
    _check_installed(problems)
    begun = _remembered(out, {name: given[name] for name in _REMEMBERED}, problems)
    problems.raise_if_any()
    shown = ShownColumns(begun["label"], begun["title"], tuple(begun["text"]), begun["image"], begun["url"])
    reading = {name: begun[name] for name in _READ}
    graph = read_unlabelled(begun["nodes"], begun["edges"], shown, begun["ignore"], problems, **reading)
    with Project.open(out) as project:
        check_unchanged(project, graph, begun)
        _serve(project, Records(graph, shown, begun["nodes"].parent), begun["nodes"].name, given)


def _check_installed(problems: Problems) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        advice = "pip install 'g3nn[label]'"
        problems.add("g3nn label", f"no package {error.name}", "starlette and uvicorn, which serve the page", advice)


def _remembered(out: Path, typed: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """What a project began with, if only its folder is named; otherwise what was typed, if that is enough to begin."""
    begun = (out / FILE).is_file()
    if begun and all(typed[name] is None for name in _REQUIRED):
        with Project.open(out) as project:
            known: dict[str, Any] = project.facts().get("options", {})
        if known:
            typed = {**known, "strict": typed["strict"]}
    if lacking := [f"--{name}" for name in _REQUIRED if typed[name] is None]:
        advice = "" if begun else "Only a project that has begun knows its tables by itself."
        problems.add("options", f"no {', '.join(lacking)}", "tables and their columns", advice)
    if not begun and out.exists() and (not out.is_dir() or any(out.iterdir())):
        problems.add("out", f"{out}, which holds something else", "a new or an empty folder, or a labelling project")
    elif not out.absolute().parent.is_dir():
        problems.add("out", out, "a folder inside one that exists")
    lists = {name: list(typed[name] or ()) for name in ("text", "categorical", "ignore", "na")}
    tables = {name: Path(path).absolute() for name in ("nodes", "edges") if (path := typed[name])}
    return {**typed, **lists, **tables}


def _serve(project: Project, records: Records, title: str, given: dict[str, Any]) -> None:
    """given: the options of the command, by name."""
    from g3nn.labelling.server import HOST, listening, make_app, serve  # Here: its packages may not be installed.

    result, seed = project.folder / RESULT, given["seed"]
    mend(result)
    records.prepare()
    learner = partial(ClassifierLearner, records.graph, records.shown.label, given["device"], seed)
    background = Background(learner, result, given["effort"])
    try:
        desk = Desk(project, records, background, seed)
        token, listener = secrets.token_urlsafe(24), listening(given["port"])
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"

        def ready() -> None:
            print(f"label at {address}\ncontrol-C ends; every answer is in {project.path} at once", flush=True)
            if not given["no_open"]:
                webbrowser.open(address)

        serve(make_app(desk, token, title, given["person"] or _user()), listener, ready)
        _finish(desk, given["quiet"])
    finally:
        background.close()


def _finish(desk: Desk, quiet: bool) -> None:
    """The results, unless they are there already, or somebody has no time."""
    state, known, background = desk.state(), desk.known(), desk.background
    if not quiet:
        print(f"\n{state['labels']} labels on {state['answered']} answered nodes are kept")
    if not background.unwritten(known):
        return
    if not quiet:
        print(f"writing {background.out}; control-C leaves without it", flush=True)
    try:
        written = background.write(known).result()
    except KeyboardInterrupt:
        print("left without results; the same command goes on", file=sys.stderr)
    except Exception as error:  # answers are safe whatever happened
        print(f"error: no results: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    else:
        print(f"results in {written['out']}: model {written['model']}; look at {Path(written['out']) / 'report.html'}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "me"


def _export(project: Project, out: Path, history: bool, quiet: bool) -> None:
    from g3nn.estimator.showing import write_file

    begun = project.facts().get("options", {})
    if history:
        rows = project.history()
        table = pa.table({name: [row[name] for row in rows] for name in HISTORY})
    else:
        table = answers_table(project.current(), begun.get("id") or "id", begun.get("label") or "label")
    write_file(table, out)
    if not quiet:
        print(f"{table.num_rows} {'answers' if history else 'nodes'} in {out}")
