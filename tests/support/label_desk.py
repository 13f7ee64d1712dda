"""A labelling project on small tables, with a learner that takes no time: it counts the labels of neighbours."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from label_stub import Counting
from small_tables import edge_columns, node_columns, write

from g3nn.base.errors import G3NNWarning, Problems
from g3nn.labelling.background import Background
from g3nn.labelling.project import Project
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import Records, ShownColumns
from g3nn.labelling.server import listening, make_app, serve
from g3nn.labelling.tables import Known, read_unlabelled

TOKEN = "token"
SHOWN = ShownColumns("group", text=("notes",))


class AtOnce(Background):
    """In this process and without waiting."""

    def __init__(self, learner: Counting, out: Path = Path("result")) -> None:
        super().__init__(lambda: learner, out, "quick")
        super().close()
        self.learner, self.taught = learner, None

    def teach(self, known: Known) -> None:
        self.taught = known
        self.beliefs = self.learner.learn(known) if known.enough else None

    def _ask(self, name: str, *given: Any) -> Any:
        future: Future[Any] = Future()
        future.set_result(getattr(self.learner, name)(*given))
        return future


def people(folder: Path, labelled: int = 0, **columns: list[Any]) -> tuple[Path, Path]:
    """The two tables of sixty people; further columns replace or join theirs."""
    nodes = write(folder / "nodes.csv", {**node_columns(labelled=labelled), **columns})
    return nodes, write(folder / "edges.csv", edge_columns())


def desk_of(folder: Path, background: Any = None, shown: ShownColumns = SHOWN, **tables: Any) -> Desk:
    """The project in folder / "project". tables: as `people` takes them."""
    nodes, edges = people(folder, **tables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        graph = read_unlabelled(nodes, edges, shown, (), Problems(), id="id")
    records = Records(graph, shown, folder)
    project = Project.open(folder / "project")
    return Desk(project, records, background or AtOnce(Counting(records.size), project.folder / "result"))


def app_of(desk: Desk) -> Any:
    return make_app(desk, TOKEN, "nodes.csv", "Ann")


def status_of(app: Any, address: bytes, verb: str = "GET", body: bytes = b"") -> int:
    """What the server answers to a request as it comes, whatever bytes are in its address."""
    path, _, query = address.partition(b"?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": verb,
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": [(b"host", b"127.0.0.1:8765"), (b"content-type", b"application/json")],
    }
    found: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    # In a thread of its own: a browser that tests drive has a loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(app(scope, receive, send))).result()
    return found[0]


def serving(folder: Path, classes: Sequence[str], apart: bool, ready: Callable[[str], None]) -> None:
    """Serve the project until this process is killed, on a real socket. apart: the learner has a process of its own.
    ready: gets the address."""
    learner: Any = partial(Counting, 60)
    out = folder / "project" / "result"
    names = [f"<b>Person</b> {i}" for i in range(60)]
    desk = desk_of(folder, Background(learner, out, "quick") if apart else AtOnce(learner(), out), name=names)
    desk.project.add_classes(classes)
    listener = listening(0)
    serve(app_of(desk), listener, lambda: ready(f"http://127.0.0.1:{listener.getsockname()[1]}/{TOKEN}/"))
