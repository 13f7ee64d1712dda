"""The page and what it asks for, for this machine alone, until somebody ends it.

Every address begins with a random token. A request without it, for another host or from a page of another origin is
refused. Nothing that a table says is ever markup: the page gets it as JSON and shows it as text.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from g3nn.base.errors import DataError, G3NNError, InputError, check_name, refuse
from g3nn.labelling.project import ADD, KEEP, LABEL, LEAVE, REMOVE, SKIP, UNKNOWN, Answer, Json
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import PICTURES
from g3nn.pages import assets
from g3nn.pages.described import clean

HOST, PORTS = "127.0.0.1", 50
"""The first free port among this many is used."""

HOSTS = (HOST, "localhost", "::1")
MOST_BYTES = 200_000
"""No request of the page is longer."""

LONGEST = {"session": 100, "person": 100, "request": 100, "label": 200, "name": 200}
LONGEST |= {"node": 10_000, "source": 10_000, "target": 10_000, "note": 10_000}
CHOICES = {"kind": (LABEL, UNKNOWN, SKIP), "verdict": (KEEP, REMOVE, ADD, LEAVE)}
"""What a page may send: the most letters of each text, and words of which it is one."""

_WAIT = 25.0
"""Seconds for which a request waits for the learner."""

STYLES, SCRIPTS = ("label.css",), ("palette.js", "label_drawing.js", "label_lists.js", "label.js")

T = TypeVar("T")


def page_of(title: str, person: str) -> str:
    """The page. It holds no data of the tables; it asks for them."""
    data = {"title": title, "person": person}
    return assets.render("label.html.j2", styles=STYLES, scripts=SCRIPTS, data=data, charts=False, title=title)


def policy_of(page: str) -> str:
    """What the page may do: run the scripts that are in it, and talk to where it came from."""
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


Next = Callable[[Request], Awaitable[Response]]


def _guard(token: str, policy: str) -> Callable[[Request, Next], Awaitable[Response]]:
    """Lets through what comes from the page itself, and adds what keeps its answers to it."""
    kept = {
        "cache-control": "no-store",
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
    }

    async def guarded(request: Request, answer: Next) -> Response:
        if not _is_own(request, token):
            return JSONResponse({"error": "refused"}, 403)
        if not request.scope["query_string"].isascii():
            return JSONResponse({"error": "not understood: an address is made of ASCII"}, 400)
        response = await answer(request)
        response.headers.update(kept)
        return response

    return guarded


def _is_own(request: Request, token: str) -> bool:
    given, _, rest = request.scope["path"].removeprefix("/").partition("/")
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    try:
        here = urlsplit(f"//{host}").hostname in HOSTS
    except ValueError:
        here = False
    # The page itself may be opened from anywhere; what it asks for must come from it.
    from_page = not rest or request.headers.get("sec-fetch-site") in (None, "same-origin", "none")
    secret = secrets.compare_digest(given.encode(), token.encode())
    return here and from_page and origin in (None, f"http://{host}") and secret


class Plain(JSONResponse):
    def render(self, content: object) -> bytes:
        return super().render(assets.plain(content))


@dataclass(frozen=True, eq=False)
class Api:
    """What the page asks for, by requests, and what it sends: a method for each address."""

    desk: Desk

    def state(self, request: Request) -> Response:
        """Asking also says that a session is still there."""
        session = request.query_params.get("session", "")
        if session:
            self.desk.renew(session)
        return Plain(self.desk.state())

    def node(self, request: Request) -> Response:
        return Plain({"question": self.desk.look(request.query_params.get("node", ""))})

    async def why(self, request: Request) -> Response:
        row, found = int(request.query_params.get("row", "-1")), None
        if 0 <= row < self.desk.records.size:
            found = await _soon(asyncio.wrap_future(self.desk.background.why(row)))
        return Plain({"why": None if found is None else self.desk.reasons(found)})

    def answers(self, request: Request) -> Response:
        start = max(0, int(request.query_params.get("start", "0")))
        return Plain(self.desk.answers(start, request.query_params.get("only", "")))

    async def edges(self, _: Request) -> Response:
        found = await _soon(asyncio.shield(asyncio.wrap_future(self.desk.background.doubts())))
        return Plain({"edges": None if found is None else self.desk.unjudged(found)})

    def picture(self, request: Request) -> Response:
        row = int(request.path_params["row"])
        path = self.desk.records.picture(row) if row < self.desk.records.size else None
        if path is None:
            return JSONResponse({"error": "no such picture"}, 404)
        return FileResponse(path, media_type=PICTURES[path.suffix.lower()])

    def next(self, given: Json) -> Json:
        return {"question": self.desk.next(*_read(given, "session", "person")), "state": self.desk.state()}

    def answer(self, given: Json) -> Json:
        request, person, session, node, kind = _read(given, "request", "person", "session", "node", "kind")
        label = _read(given, "label")[0] if kind == LABEL else None
        (note,) = _read({"note": "", **given}, "note")
        saved, asked = self.desk.answer(Answer(request, person, session, node, kind, label, note))
        names = ("seq", "node", "label", "kind", "guess", "sure", "how")
        return {"saved": {**{name: getattr(saved, name) for name in names}, "asked": asked}, **self.next(given)}

    def undo(self, given: Json) -> Json:
        session, _ = _read(given, "session", "person")
        return {"question": self.desk.undo(session), "state": self.desk.state()}

    def classes(self, given: Json) -> Json:
        (name,) = _read(given, "name")
        self.desk.add_class(name.strip())
        return self.desk.state()

    def edge(self, given: Json) -> Json:
        self.desk.judge(*_read(given, "request", "person", "source", "target", "verdict"))
        return self.desk.state()

    def finish(self, given: Json) -> Json:
        _read(given, "session", "person")
        known = self.desk.known()
        if not known.enough:
            refuse("labels", "too few", "labels of at least two classes", "Label a few nodes more.")
        self.desk.background.write(known)
        return self.desk.state()


async def _soon(waiting: Awaitable[T]) -> T | None:
    """None if it takes too long. Nobody else waits meanwhile, and what has not begun is given up."""
    try:
        return await asyncio.wait_for(waiting, _WAIT)
    except TimeoutError:
        return None


def _read(given: Json, *names: str) -> list[str]:
    """What the page sent under these names."""
    for name in names:
        value = given.get(name)
        if name in CHOICES:
            check_name(name, value, CHOICES[name])
        elif not isinstance(value, str) or len(value) > LONGEST[name] or not (value or name == "note"):
            refuse(name, repr(value)[:60], f"a text of at most {LONGEST[name]:,} letters")
    # Half a surrogate pair cannot be stored.
    return [clean(given[name]) for name in names]


def make_app(desk: Desk, token: str, title: str, person: str = "me") -> Starlette:
    """The application of a project; every path begins with the token."""
    page, api = page_of(title, person), Api(desk)

    def show(_: Request) -> Response:
        return HTMLResponse(page)

    asked = (api.state, api.node, api.why, api.answers, api.edges)
    sent = (api.next, api.answer, api.undo, api.classes, api.edge, api.finish)
    routes = [Route(f"/{token}/", show), Route(f"/{token}/picture/{{row:int}}", api.picture)]
    routes += [Route(f"/{token}/api/{call.__name__}", call) for call in asked]
    routes += [Route(f"/{token}/api/{call.__name__}", _reading(call), methods=["POST"]) for call in sent]
    guard = Middleware(BaseHTTPMiddleware, dispatch=_guard(token, policy_of(page)))
    return Starlette(routes=routes, middleware=[guard], exception_handlers={kind: _explain for kind in STATUS})


def _reading(call: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return Plain(await run_in_threadpool(call, await _body(request)))

    return respond


STATUS = {InputError: 422, ValueError: 400, DataError: 507, G3NNError: 500, RuntimeError: 500}


async def _explain(_: Request, error: Exception) -> Response:
    """A problem as the page can show it."""
    code = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return JSONResponse({"error": f"not understood: {error}" if code == 400 else str(error)}, code)


async def _body(request: Request) -> Json:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("expected JSON")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise ValueError("too long")
    given = json.loads(content)
    if not isinstance(given, dict):
        raise ValueError("expected a mapping")
    return given


def listening(port: int) -> socket.socket:
    """A socket on the first free port from this one on; 0: any. Nobody but this machine can reach it."""
    for one in range(port, min(port + PORTS, 65_536)) if port else [0]:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Right after an end the port counts as in use for a while; a server that still listens keeps it.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, one))
            made.listen(128)
        except OSError:
            made.close()
        else:
            return made
    raise DataError(f"no free port among {port} to {port + PORTS - 1}. Name another one with `port=...`.")


def serve(app: Starlette, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Until control-C or a request to end. ready: called once the page can be opened."""
    # The address holds the token, so no request is logged.
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
    server = uvicorn.Server(config)
    ended = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    former = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    try:
        thread.start()
        ready()
        while thread.is_alive() and not ended.wait(0.2):
            pass
    finally:
        server.should_exit = True
        thread.join(5)
        for one, handler in former.items():
            signal.signal(one, handler)
