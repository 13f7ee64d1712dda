"""The page and what it asks for, for this machine alone, until somebody ends it.

Every address begins with a random token. A request without it, for another host or from a page of another origin is
refused. Nothing that a table says is ever markup: the page gets it as JSON and shows it as text.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import inspect
import json
import re
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from g3nn.base.errors import DataError, G3NNError, InputError, Problem, Problems, check_name
from g3nn.labelling.project import ADD, KEEP, LABEL, LEAVE, REMOVE, SKIP, UNKNOWN, Answer, Verdict
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import PICTURES
from g3nn.pages import assets

HOST, PORTS = "127.0.0.1", 50
"""The first port that is free of so many is taken."""

HOSTS = (HOST, "localhost", "::1")
MOST_BYTES = 200_000
"""No request of the page is longer."""

LONGEST_NOTE = 10_000
_WAIT = 25.0
"""Seconds for which a request waits for the learner."""

STYLES, SCRIPTS = ("label.css",), ("label_drawing.js", "label_lists.js", "label.js")

Json = dict[str, Any]


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


class Guard:
    """Lets through what comes from the page itself, and adds what keeps its answers to it."""

    def __init__(self, app: ASGIApp, token: str, policy: str) -> None:
        self.app, self.token, self.policy = app, token, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not self.allows(scope["path"], Headers(scope=scope)):
            await JSONResponse({"error": "refused"}, 403)(scope, receive, send)
            return
        if not scope["query_string"].isascii():
            await JSONResponse({"error": "not understood: an address is made of ASCII"}, 400)(scope, receive, send)
            return
        headers = [
            (b"cache-control", b"no-store"),
            (b"content-security-policy", self.policy.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        await self.app(scope, receive, guarded)

    def allows(self, path: str, headers: Headers) -> bool:
        token, _, rest = path.removeprefix("/").partition("/")
        host, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")
        try:
            here = urlsplit(f"//{host}").hostname in HOSTS
        except ValueError:
            here = False
        # The page itself may be opened from anywhere; what it asks for must come from it.
        own = site in (None, "same-origin", "none") or not rest
        return (
            here
            and own
            and origin in (None, f"http://{host}")
            and secrets.compare_digest(token.encode(), self.token.encode())
        )


@dataclass(frozen=True, eq=False)
class Api:
    """What the page asks for and says: a method for each address. Those that take `given` are sent something."""

    desk: Desk

    def state(self, request: Request) -> Json:
        """Asking also says that a session is still there."""
        session = request.query_params.get("session", "")
        if session:
            self.desk.renew(session)
        return self.desk.state()

    def node(self, request: Request) -> Json:
        return {"question": self.desk.look(request.query_params.get("node", ""))}

    async def why(self, request: Request) -> Json:
        row = int(request.query_params.get("row", "-1"))
        if not 0 <= row < self.desk.records.size:
            return {"why": None}
        found = await _soon(asyncio.wrap_future(self.desk.background.why(row)))
        return {"why": None if found is None else self.desk.reasons(found)}

    def answers(self, request: Request) -> Json:
        start = max(0, int(request.query_params.get("start", "0")))
        return self.desk.answers(start, request.query_params.get("only", ""))

    async def edges(self, _: Request) -> Json:
        found = await _soon(asyncio.shield(asyncio.wrap_future(self.desk.background.doubts())))
        return {"edges": None if found is None else self.desk.unjudged(found)}

    def next(self, _: Request, given: Json) -> Json:
        return {"question": self.desk.next(*_who(given)), "state": self.desk.state()}

    def answer(self, _: Request, given: Json) -> Json:
        session, person = _who(given)
        kind, request = _choice(given, "kind", (LABEL, UNKNOWN, SKIP)), _text(given, "request", 100)
        node, note = _text(given, "node", 10_000), _text(given, "note", LONGEST_NOTE, empty=True)
        label = _text(given, "label", 200) if kind == LABEL else None
        saved, asked = self.desk.answer(Answer(request, person, session, node, kind, label, note))
        names = ("seq", "node", "label", "kind", "guess", "sure", "how")
        return {
            "saved": {**{name: getattr(saved, name) for name in names}, "asked": asked},
            "question": self.desk.next(session, person),
            "state": self.desk.state(),
        }

    def undo(self, _: Request, given: Json) -> Json:
        return {"question": self.desk.undo(_who(given)[0]), "state": self.desk.state()}

    def classes(self, _: Request, given: Json) -> Json:
        self.desk.add_class(_text(given, "name", 200).strip())
        return self.desk.state()

    def edge(self, _: Request, given: Json) -> Json:
        person = _who(given)[1]
        source, target = (_text(given, name, 10_000) for name in ("source", "target"))
        verdict = _choice(given, "verdict", (KEEP, REMOVE, ADD, LEAVE))
        self.desk.judge(Verdict(_text(given, "request", 100), person, source, target, verdict))
        return self.desk.state()

    def finish(self, _: Request, given: Json) -> Json:
        _who(given)
        known, problems = self.desk.known(), Problems()
        if not known.enough:
            problems.add("labels", "too few", "labels of at least two classes", "Label a few nodes more.")
        problems.raise_if_any()
        self.desk.background.write(known)
        return self.desk.state()

    def picture(self, request: Request) -> Response:
        row = int(request.path_params["row"])
        path = self.desk.records.picture(row) if row < self.desk.records.size else None
        if path is None:
            return JSONResponse({"error": "no such picture"}, 404)
        return FileResponse(path, media_type=PICTURES[path.suffix.lower()])


async def _soon(waiting: Awaitable[Any]) -> Any:
    """None if it takes too long. Nobody else waits meanwhile, and what has not begun is given up."""
    try:
        return await asyncio.wait_for(waiting, _WAIT)
    except TimeoutError:
        return None


def _who(given: Json) -> tuple[str, str]:
    return _text(given, "session", 100), _text(given, "person", 100)


def _text(given: Json, name: str, longest: int, empty: bool = False) -> str:
    value = given.get(name, "" if empty else None)
    if isinstance(value, str) and len(value) <= longest and (value or empty):
        # Half a surrogate pair cannot be stored.
        return value.encode("utf-8", "replace").decode("utf-8")
    raise InputError([Problem(name, repr(value)[:60], f"a text of at most {longest:,} letters")])


def _choice(given: Json, name: str, allowed: tuple[str, ...]) -> str:
    check_name(name, given.get(name), allowed)
    return str(given[name])


def make_app(desk: Desk, token: str, title: str, person: str = "me") -> Starlette:
    """The application of a project; every path begins with the token."""
    page, api = page_of(title, person), Api(desk)

    def show(_: Request) -> Response:
        return HTMLResponse(page)

    asked = (api.state, api.node, api.why, api.answers, api.edges)
    sent = (api.next, api.answer, api.undo, api.classes, api.edge, api.finish)
    routes = [Route(f"/{token}/", show), Route(f"/{token}/picture/{{row:int}}", api.picture)]
    routes += [Route(f"/{token}/api/{call.__name__}", _answering(call, read=False)) for call in asked]
    routes += [Route(f"/{token}/api/{call.__name__}", _answering(call), methods=["POST"]) for call in sent]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, token=token, policy=policy_of(page))
    return app


def _answering(call: Callable[..., Any], read: bool = True) -> Callable[[Request], Awaitable[Response]]:
    """A request as a call with what it says, in a thread, and problems as what the page can show."""

    async def respond(request: Request) -> Response:
        try:
            given = [await _body(request)] if read else []
            waits = inspect.iscoroutinefunction(call)
            found = await (call(request) if waits else run_in_threadpool(call, request, *given))
            return JSONResponse(assets.plain(found))
        except InputError as error:
            return JSONResponse({"error": str(error)}, 422)
        except (ValueError, json.JSONDecodeError) as error:
            return JSONResponse({"error": f"not understood: {error}"}, 400)
        except DataError as error:
            return JSONResponse({"error": str(error)}, 507)
        except (G3NNError, RuntimeError) as error:
            return JSONResponse({"error": str(error)}, 500)

    return respond


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
    raise DataError(f"no free port among {port} to {port + PORTS - 1}. Name another one with --port.")


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
