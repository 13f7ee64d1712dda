"""The page and what it asks for, for this machine alone.

Every address begins with a random token. A request without it, for another host or from a page of another origin is
refused. Nothing that a table says is ever markup: the page gets it as JSON and shows it as text.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from g3nn.base.errors import DataError, G3NNError, InputError
from g3nn.labelling.api import Api
from g3nn.labelling.finishing import Finishing
from g3nn.labelling.questions import Desk
from g3nn.pages import assets

HOSTS = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 200_000
"""No request of the page is longer."""

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


def make_app(desk: Desk, finishing: Finishing, token: str, title: str, person: str = "me") -> Starlette:
    """The application of a project; every path begins with the token."""
    page, api = page_of(title, person), Api(desk, finishing)

    def show(_: Request) -> Response:
        return HTMLResponse(page)

    asked: dict[str, Callable[..., Any]] = {
        "state": api.state,
        "node": api.look,
        "why": api.why,
        "answers": api.answers,
        "edges": api.doubts,
    }
    told = {
        "next": api.ask,
        "answer": api.answer,
        "undo": api.undo,
        "classes": api.add_class,
        "edge": api.judge,
        "finish": api.finish,
    }
    routes = [Route(f"/{token}/", show), Route(f"/{token}/picture/{{row:int}}", api.picture)]
    routes += [Route(f"/{token}/api/{name}", _answering(each, read=False)) for name, each in asked.items()]
    routes += [Route(f"/{token}/api/{name}", _answering(each), methods=["POST"]) for name, each in told.items()]
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
