"""The SQLite file of a store: its tables, how it is created and opened, and how it is read without leaving a trace.

The row of a training has a digest of all that it says, and the keys of points and environments are digests themselves:
damage that SQLite does not notice is never taken for a result.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from g3nn.base.errors import DataError
from g3nn.base.folders import creating
from g3nn.studies.records import STAGES, STATUSES

APPLICATION_ID = int.from_bytes(b"g3nn")
VERSION = 2
"""1 had no digests; such a file gets them when it is opened for writing, and in memory when it is read."""

PATIENCE = 60.0
"""Seconds to wait for other processes that are using the file."""

RESULT = ("split", "status", "val_loss", "val_accuracy", "test_accuracy", "epochs", "best_epoch", "error")
"""What a training must give again wherever it runs. Time, machine and evidence may differ."""
PLAIN = ("stage", "seed", *RESULT, "seconds")
"""What a row says in plain columns."""

Cell = str | int | float | bytes | None
Row = tuple[Cell, ...]
"""What SQLite stores of one training."""

# A row whose point or environment is gone must not vanish without a word.
_ROWS = f"""
SELECT points.key, {", ".join(PLAIN)}, environments.key, evidence, digest, point FROM trials
LEFT JOIN points ON points.id = trials.point LEFT JOIN environments ON environments.id = trials.environment
%s ORDER BY points.key, stage, seed
"""

UNSEALED = f"x'{'00' * 12}'"
"""In the place of a digest until `seal`."""

# Evidence takes whole pages, so small pages waste less space.
_SCHEMA = f"""
PRAGMA page_size = 1024;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    dataset TEXT NOT NULL,
    setting TEXT NOT NULL,
    model TEXT NOT NULL,
    objective TEXT NOT NULL,
    options TEXT NOT NULL
);
CREATE TABLE environments (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    software TEXT NOT NULL,
    hardware TEXT NOT NULL
);
CREATE TABLE trials (
    point INTEGER NOT NULL REFERENCES points,
    stage TEXT NOT NULL CHECK (stage IN {STAGES}),
    seed INTEGER NOT NULL,
    split TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN {STATUSES}),
    val_loss REAL,
    val_accuracy REAL,
    test_accuracy REAL,
    epochs INTEGER NOT NULL,
    best_epoch INTEGER NOT NULL,
    error TEXT NOT NULL,
    seconds REAL NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments,
    evidence BLOB,
    digest BLOB NOT NULL,
    PRIMARY KEY (point, stage, seed),
    CHECK (stage = 'trial' OR (test_accuracy IS NULL AND evidence IS NULL))
) WITHOUT ROWID;
COMMIT;
"""


def digest(row: Row) -> bytes:
    """Of the key of a point, the values of `PLAIN`, the key of an environment, and evidence."""
    *values, evidence = row
    known = evidence and hashlib.sha256(evidence).hexdigest()  # type: ignore[arg-type]  # raises if it is text
    text = json.dumps([*values, known], default=str)
    return hashlib.sha256(text.encode()).digest()[:12]


def seal(connection: sqlite3.Connection) -> None:
    """Give new rows their digests: of the values as SQLite has stored them, for it has no NaN and no negative zero."""
    new = connection.execute(_ROWS % f"WHERE digest = {UNSEALED}").fetchall()
    connection.executemany(
        "UPDATE trials SET digest = ? WHERE (point, stage, seed) = (?, ?, ?)",
        [(digest(row[:-2]), row[-1], *row[1:3]) for row in new],
    )


def rows(connection: sqlite3.Connection) -> list[Row]:
    """What `digest` takes, for all rows by point, stage and seed. Raises unless every row agrees with its digest."""
    found = connection.execute(_ROWS % "").fetchall()
    if damaged := [row for row in found if digest(row[:-2]) != row[-2]]:
        key, stage, seed, *_, written, _ = damaged[0]
        place = f"digest = x'{written.hex()}'" if isinstance(written, bytes) else "typeof(digest) <> 'blob'"
        raise DataError(
            f"{len(damaged)} of {len(found)} rows are damaged: they do not agree with their digests. The first is "
            f"{stage!r} of point {key!r} with seed {seed!r}. Take a sound copy, or remove such a row, and the next run "
            f'trains it again: sqlite3 FILE "DELETE FROM trials WHERE {place}"'
        )
    return [row[:-2] for row in found]


def create(path: Path) -> None:
    """Create an empty store. It appears complete or not at all; if another process is faster, its file stays."""
    if not os.path.isdir(path.parent):
        raise DataError(f"{path}: there is no folder {path.parent}. Create it, or give `store=...` a file elsewhere.")
    with explained(path), creating(path) as draft, closing(_connect(draft, "mode=rwc")) as connection:
        connection.executescript(_SCHEMA)


def writable(path: Path) -> sqlite3.Connection:
    """A connection that may append.

    SQLite keeps a rollback journal beside the file during a transaction and nothing between transactions, so that the
    file can be copied and read anywhere at any other time.
    """
    snapshot(path).close()  # finds anything wrong with the file before it is touched
    connection = _connect(path, "mode=rw")
    try:
        with explained(path):
            connection.execute("PRAGMA foreign_keys = ON")
            # SQLite notices that it may not write only when it first changes something.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT" if _upgraded(connection) else "ROLLBACK")
            connection.execute("PRAGMA journal_mode = DELETE")  # another program may have left a write-ahead log
    except BaseException:
        connection.close()
        raise
    return connection


def snapshot(path: Path) -> sqlite3.Connection:
    """A checked copy in memory of everything committed so far. The file and its folder are not written to."""
    if os.path.isdir(path):
        raise DataError(f"{path}: a folder. Give `store=...` a file, such as {path / 'results.sqlite'}.")
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file. Check the name; `g3nn bench run SUITE --store FILE` creates one.")
    copy = _tolerant(sqlite3.connect(":memory:", isolation_level=None))
    try:
        with explained(path, "read"):
            _copy(path, copy)
    except BaseException:
        copy.close()
        raise
    copy.execute("PRAGMA query_only = ON")
    return copy


def _copy(path: Path, target: sqlite3.Connection) -> None:
    # No transaction of this process is open now, so closing the file here releases no lock that SQLite needs.
    with open(path, "rb") as file:
        has_log = file.read(20)[18:] == b"\x02\x02"
    if not has_log:
        try:
            return _back_up(path, "mode=ro", target)
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_READONLY:
                raise
    # A writer was killed, or another program uses a log: SQLite has work to finish and does so on a copy.
    for _ in range(10):
        before = _stamps(path)
        with tempfile.TemporaryDirectory() as folder:
            draft = os.path.join(folder, "store")
            for ending in before:
                shutil.copyfile(f"{path}{ending}", f"{draft}{ending}")
            if _stamps(path) == before:
                return _back_up(Path(draft), "mode=rw", target)
    raise DataError("kept changing while it was read. Try again.")


def _stamps(path: Path) -> dict[str, tuple[int, int, int]]:
    """The identity, size and time of the file and of those that SQLite keeps beside it, by ending."""
    stamps = {}
    for ending in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            status = os.stat(f"{path}{ending}")
            stamps[ending] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return stamps


def _back_up(path: Path, mode: str, target: sqlite3.Connection) -> None:
    with closing(_connect(path, mode)) as source:
        source.execute("BEGIN")
        tables, application, version = source.execute(
            "SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application != APPLICATION_ID:
            kind = "an SQLite file of something else" if tables else "an empty file"
            raise DataError(f"{kind}, not a store of results. {_OTHER_FILE}")
        if not 1 <= version <= VERSION:
            age = "newer" if version > VERSION else "older"
            mismatch = f"a store of the {age} version {version}; this g3nn reads versions 1 to {VERSION}"
            raise DataError(f"{mismatch}. Read it with the g3nn that made it, or give `store=...` a new file.")
        source.backup(target)
    if (verdict := target.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(verdict)
    _upgraded(target)


def _upgraded(connection: sqlite3.Connection) -> bool:
    """Bring a file to the current version; whether there was anything to do."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for older in range(version, VERSION):
        MIGRATIONS[older](connection)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    return bool(version < VERSION)


def _add_digests(connection: sqlite3.Connection) -> None:
    """From version 1 to 2. A file of version 2 that says it is of version 1 has the column already, which raises."""
    # The oldest files refuse every change of a row.
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{trigger}"')
    connection.execute(f"ALTER TABLE trials ADD COLUMN digest BLOB NOT NULL DEFAULT {UNSEALED}")
    seal(connection)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_digests}
"""For each version but the current one: what turns a file into one of the next version."""


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{mode}"
    return _tolerant(sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None))


def _tolerant(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Damaged text can be read: the digest of its row will not match."""
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    return connection


_UNREADABLE = (zlib.error, ValueError, LookupError, TypeError)
_REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL)
_OTHER_FILE = "Check the name, or give `store=...` a new file."
_TROUBLE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space and run again."),
    sqlite3.SQLITE_IOERR: ("the disk fails", "Check its free space, your quota and its health, and run again."),
    sqlite3.SQLITE_BUSY: ("another process keeps it locked", "Wait for that process or end it, and run again."),
    **dict.fromkeys(
        _REFUSED, ("cannot be written", "Make the file and its folder writable, or give `store=...` another file.")
    ),
}
"""What is wrong and what to do, for failures that leave the store sound."""


@contextmanager
def explained(path: Path, access: str = "written") -> Iterator[None]:
    """Say what a failure means for the store and what to do. Errors of the caller during a write pass through."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError, *_UNREADABLE) as error:
        if access != "read":
            raise
        raise DataError(f"{path}: {damage(str(error))}") from error
    except (sqlite3.DatabaseError, DataError, OSError) as error:
        raise DataError(f"{path}: {_reason(error, access)}") from error


def _reason(error: Exception, access: str) -> str:
    if isinstance(error, DataError):
        return str(error)
    code = _code(error)
    if isinstance(error, OSError):
        code = sqlite3.SQLITE_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else sqlite3.SQLITE_PERM
    if code in _REFUSED and access == "read":
        return f"cannot be read ({error}). Check the permissions of the file and of its folder."
    if code in _TROUBLE:
        what, advice = _TROUBLE[code]
        return f"{what} ({error}). Everything up to the last complete batch is safe. {advice}"
    if code == sqlite3.SQLITE_NOTADB:
        return f"not an SQLite file, so not a store of results. {_OTHER_FILE}"
    return damage(str(error))


def damage(details: str) -> str:
    line = " ".join(details.split())  # SQLite may give several lines
    return f"damaged ({line}). Take a sound copy, or save what `sqlite3 FILE .recover` can read. {_OTHER_FILE}"


def _code(error: Exception) -> int:
    """The plain result code, without the details that SQLite adds in the higher bits."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
