"""The store of a labelling project: one SQLite file with every answer ever given. Nothing in it is overwritten.

An answer is on disk when `add` returns: the file has a write-ahead log and every commit is flushed. Several processes
may use it at once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

from g3nn.base.errors import DataError

Json = dict[str, object]
Facts = dict[str, Any]
"""What a file says, as JSON has it."""

FILE = "project.sqlite"
APPLICATION_ID = int.from_bytes(b"g3nl")
VERSION = 1
MIGRATIONS: dict[int, str] = {}
"""For each version but the current one: the SQL that turns a file into one of the next version."""

PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""

LABEL, UNKNOWN, SKIP = "label", "unknown", "skip"
"""What a person may say of a node: its class, that they do not know, or that they want another node for now."""

CHOSEN, RANDOM, CORRECTION = "chosen", "random", "correction"
"""How a person came to a node: the model asked, chance asked, or they went back to it."""

KEEP, REMOVE, ADD, LEAVE = "keep", "remove", "add", "leave"
"""What a person may say of an edge, and of a pair without one."""

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE classes (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE answers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    person TEXT NOT NULL,
    session TEXT NOT NULL,
    node TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('{LABEL}', '{UNKNOWN}', '{SKIP}')),
    label TEXT CHECK ((label IS NOT NULL) = (kind = '{LABEL}')),
    note TEXT NOT NULL,
    how TEXT NOT NULL CHECK (how IN ('{CHOSEN}', '{RANDOM}', '{CORRECTION}')),
    guess TEXT,
    sure REAL,
    undone TEXT
);
CREATE INDEX answers_of_nodes ON answers (node);
CREATE TABLE leases (
    node TEXT PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    until REAL NOT NULL,
    how TEXT NOT NULL,
    guess TEXT,
    sure REAL
) WITHOUT ROWID;
CREATE TABLE verdicts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    request TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    person TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('{KEEP}', '{REMOVE}', '{ADD}', '{LEAVE}'))
);
"""


@dataclass(frozen=True)
class Answer:
    """What one person said of one node. request: names the click, so that one sent twice counts once. guess, sure: what
    the model guessed before it knew, and with which probability. seq, at: given by the store."""

    request: str
    person: str
    session: str
    node: str
    kind: str
    label: str | None = None
    note: str = ""
    how: str = CHOSEN
    guess: str | None = None
    sure: float | None = None
    seq: int = 0
    at: str = ""


@dataclass(frozen=True)
class Lease:
    """A node that nobody but one session is asked about until a time (seconds since 1970)."""

    node: str
    session: str
    until: float
    how: str
    guess: str | None = None
    sure: float | None = None


_ANSWER = ", ".join(field.name for field in fields(Answer))
_LEASE = ", ".join(field.name for field in fields(Lease))


class Project:
    """One connection, which threads share. `current` and `classes` see what other processes write."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder, self.path = folder, folder / FILE
        self._connection, self._lock = connection, RLock()
        self._seen: tuple[int, int] | None = None
        self._current: tuple[Answer, ...] = ()
        self._changes = 0

    @classmethod
    def open(cls, folder: Path, create: bool = True) -> Self:
        path = folder / FILE
        if not path.is_file() and not create:
            raise DataError(
                f"{folder}: holds no labelling project. `g3nn label --out {folder}` with tables begins one."
            )
        try:
            folder.mkdir(exist_ok=True)
            connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{path}: cannot be opened ({error}). Name a folder that can be written.") from error
        project = cls(folder, connection)
        try:
            project._prepare()
        except BaseException:
            connection.close()
            raise
        return project

    def _prepare(self) -> None:
        self._run("PRAGMA journal_mode = WAL")
        self._run("PRAGMA synchronous = FULL")
        with self._writing():
            ((application,),) = self._run("PRAGMA application_id")
            ((version,),) = self._run("PRAGMA user_version")
            ours = application == APPLICATION_ID
            if not self._run("SELECT 1 FROM sqlite_master LIMIT 1"):
                self._run_all(_SCHEMA)
            elif not ours or not 1 <= version <= VERSION:
                newer = f"written by a newer g3nn (version {version}, this one reads {VERSION}). Upgrade g3nn"
                raise DataError(
                    f"{self.path}: {newer if ours else 'a file of something else'}, or name another folder."
                )
            else:
                for older in range(version, VERSION):
                    self._run_all(f"{MIGRATIONS[older]}; PRAGMA user_version = {older + 1}")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Facts: what the project is about

    def facts(self) -> Facts:
        return {name: json.loads(value) for name, value in self._run("SELECT name, value FROM facts")}

    def remember(self, facts: Mapping[str, object]) -> None:
        with self._writing():
            for name, value in facts.items():
                self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def classes(self) -> list[str]:
        return [name for (name,) in self._run("SELECT name FROM classes ORDER BY position")]

    def add_classes(self, names: Iterable[str]) -> None:
        """Those that are new come last."""
        with self._writing():
            for name in names:
                self._run("INSERT OR IGNORE INTO classes (name) VALUES (?)", (name,))

    # Answers

    def add(self, answer: Answer) -> Answer:
        """Write an answer to the disk and end the lease of its node. An answer that was sent before is not changed."""
        with self._writing():
            self._insert("answers", {**asdict(answer), "seq": None, "at": _now()})
            self._run("DELETE FROM leases WHERE node = ? AND session = ?", (answer.node, answer.session))
            return self._answers("WHERE request = ?", answer.request)[0]

    def undo(self, session: str) -> Answer | None:
        """Take back the last answer of a session; None if there is none. It stays in the history."""
        with self._writing():
            last = self._answers("WHERE session = ? AND undone IS NULL ORDER BY seq DESC LIMIT 1", session)
            for answer in last:
                self._run("UPDATE answers SET undone = ? WHERE seq = ?", (_now(), answer.seq))
        return last[0] if last else None

    def current(self) -> tuple[Answer, ...]:
        """The last answer of each person on each node that is not taken back, the oldest first. To skip a node after an
        answer leaves that answer as it is."""
        with self._lock:
            ((version,),) = self._run("PRAGMA data_version")
            if self._seen != (version, self._changes):
                said = f"max(CASE WHEN kind != '{SKIP}' THEN seq END)"
                last = f"SELECT coalesce({said}, max(seq)) FROM answers WHERE undone IS NULL GROUP BY node, person"
                self._current = tuple(self._answers(f"WHERE seq IN ({last}) ORDER BY seq"))
                self._seen = version, self._changes
            return self._current

    def votes(self) -> dict[tuple[str, str], int]:
        """How often each node was given each label, by several people or by one who looked again."""
        query = "SELECT node, label, count(*) FROM answers WHERE undone IS NULL AND kind = ? GROUP BY node, label"
        return {(node, label): count for node, label, count in self._run(query, (LABEL,))}

    def history(self) -> list[Json]:
        """Every answer, also corrected and undone ones."""
        rows = self._run(f"SELECT {_ANSWER}, undone FROM answers ORDER BY seq")
        return [{**asdict(Answer(*row[:-1])), "undone": row[-1]} for row in rows]

    # Leases: which node each session is asked about

    def lease(self, lease: Lease) -> bool:
        """Whether the session may be asked about this node: no other session is, and nobody has answered."""
        with self._writing():
            self._drop_old()
            taken = self._run(
                "SELECT 1 FROM leases WHERE node = :node AND session != :session UNION ALL "
                f"SELECT 1 FROM answers WHERE node = :node AND undone IS NULL AND kind != '{SKIP}'",
                {"node": lease.node, "session": lease.session},
            )
            if not taken:
                self._run("DELETE FROM leases WHERE session = ?", (lease.session,))
                self._insert("leases", asdict(lease))
        return not taken

    def renew(self, session: str, until: float) -> Lease | None:
        """The lease of the session, for longer; None if it has none, or if its time is over."""
        with self._writing():
            self._drop_old()
            self._run("UPDATE leases SET until = ? WHERE session = ?", (until, session))
            return next((lease for lease in self.leased() if lease.session == session), None)

    def leased(self) -> list[Lease]:
        return [Lease(*row) for row in self._run(f"SELECT {_LEASE} FROM leases WHERE until > ?", (time.time(),))]

    def _drop_old(self) -> None:
        self._run("DELETE FROM leases WHERE until <= ?", (time.time(),))

    # Edges

    def judge(self, request: str, person: str, source: str, target: str, verdict: str) -> None:
        """What a person says of the pair of these ids. A request that was sent before changes nothing."""
        row = {"request": request, "person": person, "source": source, "target": target, "verdict": verdict}
        with self._writing():
            self._insert("verdicts", {**row, "at": _now()})

    def verdicts(self) -> dict[tuple[str, str], str]:
        """The last one on each pair of ids, as it was given."""
        rows = self._run("SELECT source, target, verdict FROM verdicts ORDER BY seq")
        return {(source, target): verdict for source, target, verdict in rows}

    # SQLite

    def _run(self, query: str, given: tuple[object, ...] | dict[str, object] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, given).fetchall()
            except sqlite3.Error as error:
                raise DataError(f"{self.path}: not saved ({error}). What was saved before is safe.") from error

    def _run_all(self, statements: str) -> None:
        for statement in statements.split(";"):
            self._run(statement)

    def _insert(self, table: str, row: dict[str, object]) -> None:
        """Unless a row with the same key is there."""
        self._run(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES (:{', :'.join(row)})", row)

    def _answers(self, where: str, *given: object) -> list[Answer]:
        return [Answer(*row) for row in self._run(f"SELECT {_ANSWER} FROM answers {where}", given)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction. It is on disk when this ends, or not at all."""
        with self._lock:
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise
            self._changes += 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
