"""`g3nn label`: a page on this machine on which people label nodes while a model learns."""

from __future__ import annotations

import getpass
import secrets
import sys
import webbrowser
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from g3nn.base.errors import Problems
from g3nn.base.folders import mend
from g3nn.cli.options import EDGES, ID, NODES, Device, Quiet, TableOptions, column, command_of, option
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

_APART = ("nodes", "edges", "label", "text", "ignore")
"""Arguments of `read_tables` that differ where labels come from people."""

HISTORY = ("seq", "at", "person", "node", "kind", "label", "note", "how", "guess", "sure", "undone")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(TableOptions):
    """Label nodes in a page on this machine, while a model learns and chooses what to ask.

    Every answer is on disk before the next question. The same command goes on later, and then --out is enough. "Finish"
    on the page, or control-C here, writes DIR/result, a folder as `g3nn fit` writes one.
    """

    nodes: Annotated[Path | None, NODES] = None
    edges: Annotated[Path | None, EDGES] = None
    id: Annotated[str | None, ID] = None
    label: str | None = column(None, "Column with classes; empty where unknown, or not there at all.")
    text: list[str] | None = column(None, "Column of words, to read and to learn from. Repeatable.")
    title: str | None = column(None, "Column with a name to show, not to learn from.")
    image: str | None = column(None, "Column with pictures: files below the folder of the node table.")
    url: str | None = column(None, "Column with links to open.")
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the project; one that exists goes on.")]
    export: Path | None = option(None, "Write the answers so far to .csv, .parquet or .xlsx, and stop.", metavar="FILE")
    history: bool = option(False, "With --export: every answer, also corrected and undone ones.", "--history")
    effort: str = option("default", "Of the result in the end: quick, default or thorough.")
    person: str | None = option(None, "Your name in the answers; the page can change it.")
    port: int = option(8765, "Where the page is served; the next free one if it is in use.")
    no_open: bool = option(False, "Print the address of the page, do not open it.", "--no-open")
    device: Device = "auto"
    seed: int = option(0, "What the models begin with.")
    quiet: Quiet = False

    def run(self) -> None:
        from g3nn.estimator.effort import EFFORTS  # Here: it loads torch.

        problems = Problems()
        problems.name("effort", self.effort, EFFORTS)
        if not 0 <= self.port <= 65_535:
            problems.add("port", self.port, "a number from 0 (any) to 65535")
        if self.export is not None:
            check_file(self.export, [], problems)
            problems.raise_if_any()
            with Project.open(self.out, create=False) as project:
                _export(project, self.export, self.history, self.quiet)
            return
        _check_installed(problems)
        begun = _remembered(self, problems)
        problems.raise_if_any()
        given = {field.name: getattr(begun, field.name) for field in fields(TableOptions)}
        given |= {name: list(given[name] or ()) for name in ("text", "categorical", "ignore", "na")}
        given |= {name: Path(given[name]).absolute() for name in ("nodes", "edges")}
        shown = ShownColumns(given["label"], begun.title, tuple(given["text"]), begun.image, begun.url)
        reading = {name: value for name, value in given.items() if name not in _APART}
        nodes, options = given["nodes"], {**given, "title": begun.title, "image": begun.image, "url": begun.url}
        graph = read_unlabelled(nodes, given["edges"], shown, given["ignore"], problems, **reading)
        with Project.open(self.out) as project:
            check_unchanged(project, graph, options)
            _serve(project, Records(graph, shown, nodes.parent), nodes.name, self)


label = command_of(LabelOptions)


def _check_installed(problems: Problems) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        advice = "pip install 'g3nn[label]'"
        problems.add("g3nn label", f"no package {error.name}", "starlette and uvicorn, which serve the page", advice)


def _remembered(typed: LabelOptions, problems: Problems) -> LabelOptions:
    """The options with which a project began, if only its folder is named; otherwise those that were typed, if they are
    enough to begin."""
    begun, out, options = (typed.out / FILE).is_file(), typed.out, typed
    if begun and all(value is None for value in (typed.nodes, typed.edges, typed.id, typed.label)):
        with Project.open(out) as project:
            options = replace(typed, **{**project.facts().get("options", {}), "strict": typed.strict})
    if lacking := [f"--{name}" for name in ("nodes", "edges", "id", "label") if getattr(options, name) is None]:
        advice = "" if begun else "Only a project that has begun can go on without them."
        problems.add("options", f"no {', '.join(lacking)}", "tables and their columns", advice)
    if not begun and out.exists() and (not out.is_dir() or any(out.iterdir())):
        problems.add("out", f"{out}, which holds something else", "a new or an empty folder, or a labelling project")
    elif not out.absolute().parent.is_dir():
        problems.add("out", out, "a folder inside one that exists")
    return options


def _serve(project: Project, records: Records, title: str, options: LabelOptions) -> None:
    from g3nn.labelling.server import HOST, listening, make_app, serve  # Here: its packages may not be installed.

    result, seed = project.folder / RESULT, options.seed
    mend(result)
    records.prepare()
    learner = partial(ClassifierLearner, records.graph, records.shown.label, options.device, seed)
    background = Background(learner, result, options.effort)
    try:
        desk = Desk(project, records, background, seed)
        token, listener = secrets.token_urlsafe(24), listening(options.port)
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"

        def ready() -> None:
            print(f"label at {address}\ncontrol-C ends; every answer is in {project.path} at once", flush=True)
            if not options.no_open:
                webbrowser.open(address)

        serve(make_app(desk, token, title, options.person or _user()), listener, ready)
        _finish(desk, options.quiet)
    finally:
        background.close()


def _finish(desk: Desk, quiet: bool) -> None:
    """Write the results, unless they are there already; control-C leaves without them."""
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
        page = Path(str(written["out"])) / "report.html"
        print(f"results in {written['out']}: model {written['model']}; look at {page}")


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
