"""The file of a store: its tables, what marks it, and how it is made, read without a trace, and left to stand alone."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from g3nn.errors import DataError, G3NNWarning
from g3nn.experiments.records import STAGES, STATUSES

APPLICATION_ID = int.from_bytes(b"g3nn")
VERSION = 1

PATIENCE = 60.0
"""Seconds to wait for others that are writing, opening or closing the file."""

# The evidence of a trial takes whole pages, so small ones waste less.
_TABLES = f"""
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
    PRIMARY KEY (point, stage, seed),
    CHECK (stage = 'trial' OR (test_accuracy IS NULL AND evidence IS NULL))
) WITHOUT ROWID;
"""

_SAME_ROW = {
    "points": "key = NEW.key OR id = NEW.id",
    "environments": "key = NEW.key OR id = NEW.id",
    "trials": "point = NEW.point AND stage = NEW.stage AND seed = NEW.seed",
}

# The third trigger leaves a row that exists as it is. Without it INSERT OR REPLACE would go past the other two.
_GUARDS = "".join(
    f"""
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'a store only grows'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'a store only grows'); END;
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})
    BEGIN SELECT RAISE(IGNORE); END;
"""
    for table, same in _SAME_ROW.items()
)


def create(path: Path) -> None:
    """Make an empty store. It appears whole or not at all; if another process is first, its file stays."""
    if not os.path.isdir(path.parent):
        raise DataError(f"{path}: there is no folder {path.parent}. Make it, or give --store a file elsewhere.")
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with explained(path), closing(_connect(part, "mode=rwc")) as connection:
            connection.executescript(f"{_TABLES} {_GUARDS} COMMIT;")
        # Unlike a renamed file, a link never takes the place of one that is there.
        with suppress(FileExistsError):
            os.link(part, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {error.strerror}. Give --store a file on another disk.") from error
    finally:
        part.unlink(missing_ok=True)


def writable(path: Path) -> sqlite3.Connection:
    """A connection that may append. Every commit reaches the disk before it returns."""
    snapshot(path).close()  # finds whatever is wrong before anything is touched
    connection = _connect(path, "mode=rw", PATIENCE)
    try:
        with explained(path):
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"), PATIENCE)
            # SQLite opens a file that it may not write without a word. Any change tells, even one that changes nothing.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("ROLLBACK")
    except BaseException:
        connection.close()
        raise
    return connection


def settle(path: Path) -> None:
    """Put all rows into the one file and remove what SQLite keeps beside it.

    While another process is connected, this is left to that one. Two that leave at the same moment would each wait for
    the other, so nobody stays connected between two attempts.
    """

    def leave() -> None:
        with closing(_connect(path, "mode=rw")) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")

    try:
        _patiently(leave, seconds=0.25)
    except sqlite3.DatabaseError as error:
        if _code(error) != sqlite3.SQLITE_BUSY:
            keep = f"Keep {path.name}-wal beside it: it holds the last rows, and the next run puts them in."
            warnings.warn(f"{path}: could not be left as one file ({error}). {keep}", G3NNWarning, stacklevel=3)


def _patiently(action: Callable[[], object], seconds: float) -> None:
    """SQLite waits for its turn to read and to write, but not to change the way it writes."""
    for last in _attempts(seconds):
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or last:
                raise


def _attempts(seconds: float) -> Iterator[bool]:
    """Again and again, and whether it is the last time. Pauses of random length part those that collide."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield False
        time.sleep(random.uniform(0, 0.04))
    yield True


def snapshot(path: Path) -> sqlite3.Connection:
    """A checked copy in memory of what is committed at this moment, also by a running writer.

    Neither the file nor its folder is written to, and no lock outlasts the call.
    """
    if os.path.isdir(path):
        raise DataError(f"{path}: a folder. Give --store a file, such as {path / 'results.sqlite'}.")
    for _ in _attempts(PATIENCE):
        with ExitStack() as stack:
            copy = stack.enter_context(closing(sqlite3.connect(":memory:", isolation_level=None)))
            before = _companions(path)
            if "" not in before:
                raise DataError(f"{path}: no such file. Check the name; `g3nn bench run SUITE --store FILE` makes one.")
            try:
                locked = _copy(path, before, copy)
            except (DataError, sqlite3.DatabaseError, OSError) as error:
                # Files that come or go between two looks make a sound store seem damaged.
                if _companions(path) == before:
                    raise DataError(f"{path}: {_reason(error)}") from error
            else:
                if locked or _companions(path) == before:
                    copy.execute("PRAGMA query_only = ON")
                    stack.pop_all()
                    return copy
    raise DataError(f"{path}: changed all the time while it was read. Try again.")


def _companions(path: Path) -> dict[str, tuple[int, int, int]]:
    """What tells two states of the file and of those that SQLite keeps beside it apart, by ending."""
    found = {}
    for ending in ("", "-shm", "-wal", "-journal"):
        with suppress(OSError):
            status = os.stat(f"{path}{ending}")
            found[ending] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def _copy(path: Path, companions: Mapping[str, tuple[int, int, int]], target: sqlite3.Connection) -> bool:
    """Copy and check the database; true if locks have kept writers away meanwhile.

    The file itself is never opened by other means than SQLite while this process may be writing it: closing such a
    file drops the locks that the process holds on it.
    """
    unfinished = {ending for ending, head in _HEADS.items() if ending in companions and companions[ending][1] > head}
    if not unfinished:
        _backup(path, "mode=ro&immutable=1", target)
        return False
    if unfinished == {"-wal"} and "-shm" in companions:
        # A writer is connected, or was killed. SQLite looks at its files without touching them.
        try:
            _backup(path, "mode=ro&readonly_shm=1", target)
            return True
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_PROTOCOL:
                raise
    # A writer was killed, or the file copied under one. SQLite has work to finish, and may finish it elsewhere.
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = Path(folder) / "store"
        for ending in ("", *unfinished):
            shutil.copyfile(f"{path}{ending}", f"{elsewhere}{ending}")
        _backup(elsewhere, "mode=rw", target)
    return False


_HEADS = {"-wal": 32, "-journal": 0}
"""Files of up to so many bytes hold no rows. In a log that is all head SQLite looks for them until it gives up."""


def _backup(path: Path, how: str, target: sqlite3.Connection) -> None:
    with closing(_connect(path, how)) as source:
        # Inside a transaction the copy is of one moment and meets no lock.
        source.execute("BEGIN")
        tables, application, version = source.execute(
            "SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application != APPLICATION_ID:
            what = "an SQLite file of something else" if tables else "an empty file"
            raise DataError(f"{what}, not a store of results. {_OTHER_FILE}")
        if version != VERSION:
            age = "newer" if version > VERSION else "older"
            found = f"a store of the {age} version {version}, and this g3nn reads version {VERSION}"
            raise DataError(f"{found}. Read it with the g3nn that made it, or give --store a new file.")
        source.backup(target)
    if (verdict := target.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise DataError(damage(verdict))


def _connect(path: Path, how: str, patience: float = 1.0) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=patience, isolation_level=None)


_OTHER_FILE = "Check the name, or give --store a new file."
_REFUSED = ("cannot be written", "Make the file and its folder writable, or give --store another file, and run again.")
_TROUBLE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space and run again."),
    sqlite3.SQLITE_IOERR: ("the disk fails", "Look at its free space, your quota and its health, and run again."),
    sqlite3.SQLITE_BUSY: ("another process keeps it locked", "Wait for that process or end it, and run again."),
    sqlite3.SQLITE_READONLY: _REFUSED,
    sqlite3.SQLITE_CANTOPEN: _REFUSED,
    sqlite3.SQLITE_PERM: _REFUSED,
    sqlite3.SQLITE_PROTOCOL: _REFUSED,
}
"""What is wrong and what to do, for failures that leave the store sound."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say what a failure of SQLite means for the store and what to do. Faults of the caller pass."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        if _code(error) not in _TROUBLE:
            raise DataError(f"{path}: {damage(str(error))}") from error
        what, advice = _TROUBLE[_code(error)]
        safe = "Everything up to the last complete batch is safe."
        raise DataError(f"{path}: {what} ({error}). {safe} {advice}") from error


def damage(found: str) -> str:
    told = " ".join(found.split())  # SQLite may give several lines
    return f"damaged ({told}). Take a sound copy, or save what `sqlite3 FILE .recover` can read. {_OTHER_FILE}"


def _reason(error: Exception) -> str:
    """Why a file cannot be read."""
    if isinstance(error, DataError):
        return str(error)
    if isinstance(error, sqlite3.DatabaseError) and _code(error) == sqlite3.SQLITE_NOTADB:
        return f"not an SQLite file, so not a store of results. {_OTHER_FILE}"
    if isinstance(error, sqlite3.DatabaseError) and _code(error) not in _TROUBLE:
        return damage(str(error))
    return f"cannot be read ({error}). Look at the permissions of the file and of its folder."


def _code(error: sqlite3.Error) -> int:
    """The plain result code, without the details that SQLite adds in the higher bits."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
