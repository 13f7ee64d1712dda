"""The store of a labelling project: one SQLite file with every answer ever given. Nothing in it is overwritten.

An answer is on disk when `add` returns: the file has a write-ahead log and every commit is flushed. Several processes
may use it at once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

from g3nn.base.errors import DataError

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


@dataclass(frozen=True)
class Verdict:
    request: str
    person: str
    source: str
    target: str
    verdict: str


_ANSWER = ", ".join(field.name for field in fields(Answer))
_GIVEN = [field.name for field in fields(Answer) if field.name != "seq"]
_LEASE = ", ".join(field.name for field in fields(Lease))
_OPEN = f"undone IS NULL AND kind != '{SKIP}'"


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
        with self._explained():
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        with self._writing() as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
            elif application != APPLICATION_ID or not 1 <= version <= VERSION:
                newer = f"written by a newer g3nn (version {version}, this one reads {VERSION}). Upgrade g3nn"
                what = newer if application == APPLICATION_ID else "a file of something else"
                raise DataError(f"{self.path}: {what}, or name another folder.")
            else:
                for older in range(version, VERSION):
                    for statement in MIGRATIONS[older].split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {older + 1}")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Facts: what the project is about

    def facts(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in self._rows("SELECT name, value FROM facts")}

    def remember(self, facts: Mapping[str, Any]) -> None:
        with self._writing() as connection:
            rows = [(name, json.dumps(value)) for name, value in facts.items()]
            connection.executemany(
                "INSERT INTO facts VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", rows
            )

    def classes(self) -> list[str]:
        return [name for (name,) in self._rows("SELECT name FROM classes ORDER BY position")]

    def add_classes(self, names: list[str]) -> None:
        """Those that are new come last."""
        with self._writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO classes (name) VALUES (?)", [(name,) for name in names])

    # Answers

    def add(self, answer: Answer) -> Answer:
        """Onto the disk, and give the node free. One that was sent before stays as it was."""
        given = {**asdict(answer), "at": _now()}
        with self._writing() as connection:
            columns, marks = ", ".join(_GIVEN), ", ".join(f":{name}" for name in _GIVEN)
            connection.execute(f"INSERT OR IGNORE INTO answers ({columns}) VALUES ({marks})", given)
            connection.execute("DELETE FROM leases WHERE node = ? AND session = ?", (answer.node, answer.session))
            row = connection.execute(f"SELECT {_ANSWER} FROM answers WHERE request = ?", (answer.request,)).fetchone()
        return Answer(*row)

    def undo(self, session: str) -> Answer | None:
        """Take back the last answer of a session; None if there is none. It stays in the history."""
        with self._writing() as connection:
            row = connection.execute(
                f"SELECT {_ANSWER} FROM answers WHERE session = ? AND undone IS NULL ORDER BY seq DESC LIMIT 1",
                (session,),
            ).fetchone()
            if row is None:
                return None
            last = Answer(*row)
            connection.execute("UPDATE answers SET undone = ? WHERE seq = ?", (_now(), last.seq))
        return last

    def current(self) -> tuple[Answer, ...]:
        """The last answer of each person on each node that is not taken back, the oldest first. To skip a node after an
        answer leaves that answer as it is."""
        with self._lock:
            (version,) = self._rows("PRAGMA data_version")[0]
            if self._seen != (version, self._changes):
                said = f"max(CASE WHEN kind != '{SKIP}' THEN seq END)"
                last = f"SELECT coalesce({said}, max(seq)) FROM answers WHERE undone IS NULL GROUP BY node, person"
                rows = self._rows(f"SELECT {_ANSWER} FROM answers WHERE seq IN ({last}) ORDER BY seq")
                self._current, self._seen = tuple(Answer(*row) for row in rows), (version, self._changes)
            return self._current

    def votes(self) -> dict[tuple[str, str], int]:
        """How often each node was given each label, by several people or by one who looked again."""
        query = (
            f"SELECT node, label, count(*) FROM answers WHERE undone IS NULL AND kind = '{LABEL}' GROUP BY node, label"
        )
        return {(node, label): count for node, label, count in self._rows(query)}

    def history(self, node: str | None = None) -> list[dict[str, Any]]:
        """Every answer, also corrected and undone ones, of one node or of all."""
        where, given = ("", ()) if node is None else (" WHERE node = ?", (node,))
        rows = self._rows(f"SELECT {_ANSWER}, undone FROM answers{where} ORDER BY seq", given)
        return [{**asdict(Answer(*row[:-1])), "undone": row[-1]} for row in rows]

    # Leases: who is being asked what

    def lease(self, lease: Lease) -> bool:
        """Whether the session may be asked about this node: nobody else is, and nobody has answered."""
        with self._writing() as connection:
            self._drop_old(connection)
            taken = connection.execute(
                f"SELECT 1 FROM leases WHERE node = :node AND session != :session "
                f"UNION ALL SELECT 1 FROM answers WHERE node = :node AND {_OPEN}",
                {"node": lease.node, "session": lease.session},
            ).fetchone()
            if taken is None:
                connection.execute("DELETE FROM leases WHERE session = ?", (lease.session,))
                marks = ", ".join(f":{field.name}" for field in fields(Lease))
                connection.execute(f"INSERT INTO leases ({_LEASE}) VALUES ({marks})", asdict(lease))
        return taken is None

    def renew(self, session: str, until: float) -> Lease | None:
        """What the session is being asked, for longer; None if nothing, or if its time is over."""
        with self._writing() as connection:
            self._drop_old(connection)
            connection.execute("UPDATE leases SET until = ? WHERE session = ?", (until, session))
            row = connection.execute(f"SELECT {_LEASE} FROM leases WHERE session = ?", (session,)).fetchone()
        return None if row is None else Lease(*row)

    def leased(self) -> list[Lease]:
        return [Lease(*row) for row in self._rows(f"SELECT {_LEASE} FROM leases WHERE until > ?", (time.time(),))]

    def _drop_old(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM leases WHERE until <= ?", (time.time(),))

    # Edges

    def judge(self, verdict: Verdict) -> None:
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO verdicts (at, request, person, source, target, verdict) "
                "VALUES (:at, :request, :person, :source, :target, :verdict)",
                {**asdict(verdict), "at": _now()},
            )

    def verdicts(self) -> dict[tuple[str, str], str]:
        """The last one on each pair of ids, as it was given."""
        rows = self._rows("SELECT source, target, verdict FROM verdicts ORDER BY seq")
        return {(source, target): verdict for source, target, verdict in rows}

    # SQLite

    def _rows(self, query: str, given: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock, self._explained():
            return self._connection.execute(query, given).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction. It is on disk when this ends, or not at all."""
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._changes += 1

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: not saved ({error}). What was saved before is safe.") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
