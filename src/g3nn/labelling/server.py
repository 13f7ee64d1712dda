"""The page and what it asks for, for this machine alone.

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
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from g3nn.errors import DataError, G3NNError, InputError, Problems
from g3nn.labelling.project import ADD, KEEP, LABEL, LEAVE, REMOVE, SKIP, UNKNOWN, Verdict
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import PICTURES
from g3nn.page import assets

HOSTS = ("127.0.0.1", "localhost", "::1")
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


class Finishing:
    """Writes the results of a project, one time after the other. out: the folder. effort: of the fit."""

    def __init__(self, desk: Desk, out: Path, effort: str) -> None:
        self.desk, self.out, self.effort = desk, out, effort
        self._future: Future[Json] | None = None
        self._written: Any = None

    @property
    def needed(self) -> bool:
        """Whether people have said anything since the last results were written, and enough for a model."""
        known = self.desk.known()
        return known.enough and self._written != (known.labels, known.removed, known.added)

    def start(self) -> Future[Json]:
        if self._future is None or self._future.done():
            known = self.desk.known()
            self._future = self.desk.background.write(known, self.out, self.effort)

            def keep(done: Future[Json]) -> None:
                if not done.cancelled() and done.exception() is None:
                    self._written = known.labels, known.removed, known.added

            self._future.add_done_callback(keep)
        return self._future

    def told(self) -> Json:
        future = self._future
        if future is None:
            return {"status": "none"}
        if not future.done():
            return {"status": "writing"}
        error = None if future.cancelled() else future.exception()
        if error is not None:
            return {"status": "failed", "error": str(error)}
        return {"status": "written", "changed": self.needed, **future.result()}


def make_app(desk: Desk, finishing: Finishing, token: str, title: str, person: str = "me") -> Starlette:
    """The application of a project; every path begins with the token."""
    page = page_of(title, person)

    def show(_: Request) -> Response:
        return HTMLResponse(page)

    def state(request: Request) -> Json:
        """Asking also says that a session is still there."""
        session = request.query_params.get("session", "")
        if session:
            desk.renew(session)
        return _state(desk, finishing)

    def ask(_: Request, given: Json) -> Json:
        session, person = _who(given)
        return {"question": desk.next(session, person), "state": _state(desk, finishing)}

    def answer(_: Request, given: Json) -> Json:
        session, person = _who(given)
        kind = _choice(given, "kind", (LABEL, UNKNOWN, SKIP))
        told: Json = {"session": session, "person": person, "kind": kind, "request": _text(given, "request", 100)}
        told |= {"node": _text(given, "node", 10_000), "note": _text(given, "note", LONGEST_NOTE, empty=True)}
        told["label"] = _text(given, "label", 200) if kind == LABEL else None
        saved, asked = desk.answer(told)
        guess = {"guess": saved.guess, "sure": saved.sure, "how": saved.how, "asked": asked}
        return {
            "saved": {"seq": saved.seq, "node": saved.node, "label": saved.label, "kind": saved.kind, **guess},
            "question": desk.next(session, person),
            "state": _state(desk, finishing),
        }

    def undo(_: Request, given: Json) -> Json:
        session = _who(given)[0]
        return {"question": desk.undo(session), "state": _state(desk, finishing)}

    def look(request: Request) -> Json:
        return {"question": desk.look(request.query_params.get("node", ""))}

    async def why(request: Request) -> Json:
        row = int(request.query_params.get("row", "-1"))
        if not 0 <= row < desk.records.size:
            return {"why": None}
        found = await _soon(asyncio.wrap_future(desk.background.why(row)))
        return {"why": None if found is None else desk.reasons(found)}

    def answers(request: Request) -> Json:
        start = max(0, int(request.query_params.get("start", "0")))
        return desk.answers(start, request.query_params.get("only") == "disputed")

    def add_class(_: Request, given: Json) -> Json:
        desk.add_class(_text(given, "name", 200).strip())
        return _state(desk, finishing)

    async def doubts(_: Request) -> Json:
        found = await _soon(asyncio.shield(asyncio.wrap_future(desk.background.doubts())))
        return {"edges": None if found is None else desk.unjudged(found)}

    def judge(_: Request, given: Json) -> Json:
        person = _who(given)[1]
        ends = {name: _text(given, name, 10_000) for name in ("source", "target")}
        verdict = _choice(given, "verdict", (KEEP, REMOVE, ADD, LEAVE))
        desk.judge(Verdict(_text(given, "request", 100), person, ends["source"], ends["target"], verdict))
        return _state(desk, finishing)

    def finish(_: Request, given: Json) -> Json:
        _who(given)
        if not desk.known().enough:
            problems = Problems()
            problems.add("labels", "too few", "labels of at least two classes", "Label a few nodes more.")
            problems.raise_if_any()
        finishing.start()
        return _state(desk, finishing)

    def picture(request: Request) -> Response:
        row = int(request.path_params["row"])
        path = desk.records.picture(row) if row < desk.records.size else None
        if path is None:
            return JSONResponse({"error": "no such picture"}, 404)
        return FileResponse(path, media_type=PICTURES[path.suffix.lower()])

    asked: dict[str, Callable[..., Any]] = {
        "state": state,
        "node": look,
        "why": why,
        "answers": answers,
        "edges": doubts,
    }
    told = {"next": ask, "answer": answer, "undo": undo, "classes": add_class, "edge": judge, "finish": finish}
    routes = [Route(f"/{token}/", show), Route(f"/{token}/picture/{{row:int}}", picture)]
    routes += [Route(f"/{token}/api/{name}", _answering(each, read=False)) for name, each in asked.items()]
    routes += [Route(f"/{token}/api/{name}", _answering(each), methods=["POST"]) for name, each in told.items()]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, token=token, policy=policy_of(page))
    return app


def _state(desk: Desk, finishing: Finishing) -> Json:
    return {**desk.state(), "result": finishing.told()}


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


async def _soon(waiting: Awaitable[Any]) -> Any:
    """None if it takes too long. Nobody else waits meanwhile, and what has not begun is given up."""
    try:
        return await asyncio.wait_for(waiting, _WAIT)
    except TimeoutError:
        return None


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


def _who(given: Json) -> tuple[str, str]:
    return _text(given, "session", 100), _text(given, "person", 100)


def _text(given: Json, name: str, longest: int, empty: bool = False) -> str:
    value = given.get(name, "" if empty else None)
    problems = Problems()
    if not isinstance(value, str) or len(value) > longest or not (value or empty):
        problems.add(name, repr(value)[:60], f"a text of at most {longest:,} letters")
        problems.raise_if_any()
    assert isinstance(value, str)
    # Half a surrogate pair cannot be stored.
    return value.encode("utf-8", "replace").decode("utf-8")


def _choice(given: Json, name: str, allowed: tuple[str, ...]) -> str:
    problems = Problems()
    problems.name(name, given.get(name), allowed)
    problems.raise_if_any()
    return str(given[name])
