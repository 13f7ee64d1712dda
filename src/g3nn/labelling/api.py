"""What the page asks for and says, one method for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from g3nn.base.errors import Problems
from g3nn.labelling.finishing import Finishing
from g3nn.labelling.project import ADD, KEEP, LABEL, LEAVE, REMOVE, SKIP, UNKNOWN, Verdict
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import PICTURES

Json = dict[str, Any]

LONGEST_NOTE = 10_000
_WAIT = 25.0
"""Seconds for which a request waits for the learner."""


@dataclass(frozen=True, eq=False)
class Api:
    """Those that take `given` are told something, the others are asked."""

    desk: Desk
    finishing: Finishing

    def state(self, request: Request) -> Json:
        """Asking also says that a session is still there."""
        session = request.query_params.get("session", "")
        if session:
            self.desk.renew(session)
        return self._state()

    def ask(self, _: Request, given: Json) -> Json:
        session, person = _who(given)
        return {"question": self.desk.next(session, person), "state": self._state()}

    def answer(self, _: Request, given: Json) -> Json:
        session, person = _who(given)
        kind = _choice(given, "kind", (LABEL, UNKNOWN, SKIP))
        told: Json = {"session": session, "person": person, "kind": kind, "request": _text(given, "request", 100)}
        told |= {"node": _text(given, "node", 10_000), "note": _text(given, "note", LONGEST_NOTE, empty=True)}
        told["label"] = _text(given, "label", 200) if kind == LABEL else None
        saved, asked = self.desk.answer(told)
        guess = {"guess": saved.guess, "sure": saved.sure, "how": saved.how, "asked": asked}
        return {
            "saved": {"seq": saved.seq, "node": saved.node, "label": saved.label, "kind": saved.kind, **guess},
            "question": self.desk.next(session, person),
            "state": self._state(),
        }

    def undo(self, _: Request, given: Json) -> Json:
        session = _who(given)[0]
        return {"question": self.desk.undo(session), "state": self._state()}

    def look(self, request: Request) -> Json:
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

    def add_class(self, _: Request, given: Json) -> Json:
        self.desk.add_class(_text(given, "name", 200).strip())
        return self._state()

    async def doubts(self, _: Request) -> Json:
        found = await _soon(asyncio.shield(asyncio.wrap_future(self.desk.background.doubts())))
        return {"edges": None if found is None else self.desk.unjudged(found)}

    def judge(self, _: Request, given: Json) -> Json:
        person = _who(given)[1]
        ends = {name: _text(given, name, 10_000) for name in ("source", "target")}
        verdict = _choice(given, "verdict", (KEEP, REMOVE, ADD, LEAVE))
        self.desk.judge(Verdict(_text(given, "request", 100), person, ends["source"], ends["target"], verdict))
        return self._state()

    def finish(self, _: Request, given: Json) -> Json:
        _who(given)
        if not self.desk.known().enough:
            problems = Problems()
            problems.add("labels", "too few", "labels of at least two classes", "Label a few nodes more.")
            problems.raise_if_any()
        self.finishing.start()
        return self._state()

    def picture(self, request: Request) -> Response:
        row = int(request.path_params["row"])
        path = self.desk.records.picture(row) if row < self.desk.records.size else None
        if path is None:
            return JSONResponse({"error": "no such picture"}, 404)
        return FileResponse(path, media_type=PICTURES[path.suffix.lower()])

    def _state(self) -> Json:
        return {**self.desk.state(), "result": self.finishing.told()}


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
