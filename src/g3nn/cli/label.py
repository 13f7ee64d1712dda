"""`g3nn label`: a page on this machine on which people label nodes while a model learns."""

from __future__ import annotations

import getpass
import secrets
import sys
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from g3nn.cli.fit import CategoricalColumns, IgnoredColumns, NullWords, SourceColumn, TargetColumn, WeightColumn
from g3nn.cli.options import DropUnknownEdges, Quiet, Strict

if TYPE_CHECKING:
    from g3nn.base.errors import Problems
    from g3nn.estimator import G3NNClassifier
    from g3nn.graph.tables.graph import TableGraph
    from g3nn.labelling.project import Project
    from g3nn.labelling.records import Shown

RESULT = "result"
"""The folder inside a project that is as `g3nn fit` writes one."""

_REQUIRED = ("nodes", "edges", "id", "label")


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
    categorical: CategoricalColumns = None,
    ignore: IgnoredColumns = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction.")] = False,
    na: NullWords = None,
    keep_na: Annotated[
        bool, typer.Option("--keep-na", help="NA, N/A, nan, null, None, ? and - are values like any other.")
    ] = False,
    drop_unknown_edges: DropUnknownEdges = False,
    strict: Strict = False,
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
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="What the models begin with.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Label nodes in a page on this machine, while a model learns and chooses what to ask.

    Every answer is on disk before the next question. The same command goes on later, and then --out is enough. "Finish"
    on the page, or control-C here, writes DIR/result, a folder as `g3nn fit` writes one.
    """
    from g3nn.base.errors import Problems
    from g3nn.estimator.panel import EFFORTS
    from g3nn.labelling.project import Project

    problems = Problems()
    problems.name("effort", effort, EFFORTS)
    if not 0 <= port <= 65_535:
        problems.add("port", port, "a number from 0 (any) to 65535")
    if export is not None:
        _check_export(export, problems)
        with Project.open(out, create=False) as project:
            _export(project, export, history, quiet)
        return
    options: dict[str, Any] = {"nodes": nodes, "edges": edges, "id": id, "label": label}
    options |= {"text": text or [], "title": title, "image": image, "url": url, "categorical": categorical or []}
    options |= {"ignore": ignore or [], "source": source, "target": target, "weight": weight, "directed": directed}
    options |= {"na": na or [], "keep_na": keep_na, "drop_unknown_edges": drop_unknown_edges, "strict": strict}
    _check_installed(problems)
    options = _remembered(out, options, problems)
    problems.raise_if_any()
    graph, shown = _read(options, problems)
    with Project.open(out) as project:
        _check_unchanged(project, graph, options, problems)
        serving: dict[str, Any] = {"port": port, "open_page": not no_open, "person": person or _user(), "quiet": quiet}
        _serve(project, graph, shown, Path(options["nodes"]), effort, device, seed, **serving)


def _check_installed(problems: Problems) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        advice = "pip install 'g3nn[label]'"
        problems.add("g3nn label", f"no package {error.name}", "starlette and uvicorn, which serve the page", advice)


def _remembered(out: Path, options: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """What a project began with, if only its folder is named; otherwise what was typed, if that is enough to begin."""
    from g3nn.labelling.project import FILE, Project

    begun = (out / FILE).is_file()
    if begun and all(options[name] is None for name in _REQUIRED):
        with Project.open(out) as project:
            known: dict[str, Any] = project.facts().get("options", {})
        if known:
            return {**known, "nodes": Path(known["nodes"]), "edges": Path(known["edges"]), "strict": options["strict"]}
    if lacking := [f"--{name}" for name in _REQUIRED if options[name] is None]:
        advice = "" if begun else "Only a project that has begun knows its tables by itself."
        problems.add("options", f"no {', '.join(lacking)}", "tables and their columns", advice)
    if not begun and out.exists() and (not out.is_dir() or any(out.iterdir())):
        problems.add("out", f"{out}, which holds something else", "a new or an empty folder, or a labelling project")
    elif not out.absolute().parent.is_dir():
        problems.add("out", out, "a folder inside one that exists")
    return {**options, **{name: path.absolute() for name in ("nodes", "edges") if (path := options[name])}}


def _read(options: dict[str, Any], problems: Problems) -> tuple[TableGraph, Shown]:
    from g3nn.labelling.records import Shown
    from g3nn.labelling.tables import read_unlabelled

    shown = Shown(options["label"], options["title"], tuple(options["text"]), options["image"], options["url"])
    names = ("id", "categorical", "source", "target", "weight", "directed", "na", "keep_na", "drop_unknown_edges")
    rest = {name: options[name] for name in (*names, "strict")}
    graph = read_unlabelled(options["nodes"], options["edges"], shown, options["ignore"], problems, **rest)
    return graph, shown


def _check_unchanged(project: Project, graph: TableGraph, options: dict[str, Any], problems: Problems) -> None:
    """Tables may change as long as their ids stay; what has changed is said. Then remember what they are now."""
    import warnings

    from g3nn.base.errors import G3NNWarning
    from g3nn.labelling.changes import check_ids, differences, digest_of

    facts = project.facts()
    now = digest_of(graph, options["nodes"], options["edges"])
    if "tables" in facts:
        answered = sorted({one.node for one in project.current()})
        check_ids(facts["tables"], now, answered, graph.nodes.ids, problems)
        problems.raise_if_any()
        if found := differences(facts["tables"], now):
            note = f"the tables have changed since they were last used here: {'; '.join(found)}. All answers are kept"
            warnings.warn(note, G3NNWarning, stacklevel=2)
    kept = {**options, "nodes": str(options["nodes"]), "edges": str(options["edges"])}
    project.remember({"tables": now, "options": kept})


def _serve(
    project: Project,
    graph: TableGraph,
    shown: Shown,
    nodes: Path,
    effort: str,
    device: str,
    seed: int,
    *,
    port: int,
    open_page: bool,
    person: str,
    quiet: bool,
) -> None:
    from g3nn.base.folders import mend
    from g3nn.labelling.background import Background
    from g3nn.labelling.finishing import Finishing
    from g3nn.labelling.learner import ClassifierLearner
    from g3nn.labelling.questions import Desk
    from g3nn.labelling.records import Records
    from g3nn.labelling.running import HOST, listening, serve
    from g3nn.labelling.server import make_app

    result = project.folder / RESULT
    mend(result)
    records = Records(graph, shown, nodes.parent)
    records.prepare()
    background = Background(partial(ClassifierLearner, graph, shown.label, write_result, device, seed))
    try:
        desk = Desk(project, records, background, seed)
        finishing = Finishing(desk, result, effort)
        token, listener = secrets.token_urlsafe(24), listening(port)
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"

        def ready() -> None:
            print(f"label at {address}\ncontrol-C ends; every answer is in {project.path} at once", flush=True)
            if open_page:
                webbrowser.open(address)

        serve(make_app(desk, finishing, token, nodes.name, person), listener, ready)
        _finish(desk, finishing, quiet)
    finally:
        background.close()


def _finish(desk: Any, finishing: Any, quiet: bool) -> None:
    """The results, unless they are there already, or somebody has no time."""
    said = desk.state()
    if not quiet:
        print(f"\n{said['labels']} labels on {said['answered']} answered nodes are kept")
    if not finishing.needed:
        return
    if not quiet:
        print(f"writing {finishing.out}; control-C leaves without it", flush=True)
    try:
        written = finishing.start().result()
    except KeyboardInterrupt:
        print("left without results; the same command goes on", file=sys.stderr)
    except Exception as error:  # answers are safe whatever happened
        print(f"error: no results: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    else:
        print(f"results in {written['out']}: model {written['model']}; look at {Path(written['out']) / 'report.html'}")


def write_result(classifier: G3NNClassifier, graph: TableGraph, out: Path) -> None:
    """As `g3nn fit` does, in the place of what was there before."""
    from g3nn.base.folders import swapped
    from g3nn.cli.fit import summary, write_results

    with swapped(out) as draft:
        write_results(classifier, graph, summary(classifier, graph)["test"], draft, 0.1, None)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "me"


def _check_export(out: Path, problems: Problems) -> None:
    from g3nn.cli.results import check_file

    check_file(out, [], problems)
    problems.raise_if_any()


def _export(project: Project, out: Path, history: bool, quiet: bool) -> None:
    import pyarrow as pa

    from g3nn.base.folders import replacing
    from g3nn.graph.tables.frames import write_table
    from g3nn.labelling.agreed import answers_table

    options = project.facts().get("options", {})
    if history:
        rows = project.history()
        table = pa.table({name: [row[name] for row in rows] for name in HISTORY})
    else:
        table = answers_table(project.current(), options.get("id") or "id", options.get("label") or "label")
    with replacing(out) as draft:
        write_table(table, draft)
    if not quiet:
        print(f"{table.num_rows} {'answers' if history else 'nodes'} in {out}")


HISTORY = ("seq", "at", "person", "node", "kind", "label", "note", "how", "guess", "sure", "undone")
