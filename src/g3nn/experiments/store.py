"""The store: one SQLite file with a row for every training. It only grows, and survives being killed at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from g3nn.errors import DataError, check_name
from g3nn.experiments.records import STAGES, Environment, Evidence, Point, Record
from g3nn.experiments.store_schema import create, damage, explained, settle, snapshot, writable

_DIGITS = 5
"""Significant digits of the numbers in the evidence of a trial: more than a page can show."""

_KEY = ("stage", "seed")
_RESULT = ("split", "status", "val_loss", "val_accuracy", "test_accuracy", "epochs", "best_epoch", "error")
"""What a training must give again wherever it runs. Time, machine and evidence may differ."""

_PLAIN = (*_KEY, *_RESULT, "seconds")
_WHICH = slice(0, 1 + len(_KEY))
_OUTCOME = slice(_WHICH.stop, _WHICH.stop + len(_RESULT))
"""Where a row says which training it is, and what that gave."""

_JOINED = (
    "FROM trials JOIN points ON points.id = trials.point JOIN environments ON environments.id = trials.environment"
)
_ROWS = f"SELECT points.key, {', '.join(_PLAIN)}, environments.key, evidence {_JOINED}"
_INSERT = f"""
INSERT INTO trials (point, {", ".join(_PLAIN)}, environment, evidence)
VALUES ((SELECT id FROM points WHERE key = ?), {", ".join("?" * len(_PLAIN))},
        (SELECT id FROM environments WHERE key = ?), ?)
"""
_POINTS = "SELECT key, dataset, setting, model, objective, options FROM points"
_INSERT_POINT = "INSERT INTO points (key, dataset, setting, model, objective, options) VALUES (?, ?, ?, ?, ?, ?)"
_ENVIRONMENTS = "SELECT key, software, hardware FROM environments"
_INSERT_ENVIRONMENT = "INSERT INTO environments (key, software, hardware) VALUES (?, ?, ?)"


@dataclass(frozen=True)
class MergeReport:
    """Rows of the other stores: new ones, those that were there, and those whose result differs from the one there."""

    added: int
    present: int
    conflicts: int


class Store:
    """Records in a file. Made by `Store.open` to append, or by `Store.read` to look at what is there at that moment."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, appends: bool, environment: Environment | None
    ) -> None:
        self.path = path
        self._connection = connection
        self._appends = appends
        self._environment = environment

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, environment: Environment | None = None) -> Store:
        """Open a store for appending, and make it if it is not there. New rows are noted as made in `environment`."""
        file = _file(path)
        if not os.path.exists(file):
            create(file)
        return cls(file, writable(file), True, environment)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Store:
        """What is committed now. The file, its folder and its writers are left alone, then and afterwards."""
        file = _file(path)
        return cls(file, snapshot(file), False, None)

    def append(self, records: Sequence[Record]) -> None:
        """Add all records or, if that fails, none. A row that is there stays as it is."""
        if not records:
            return
        environment = self._environment = self._environment or Environment.current()
        made_in = _environment_row(environment)
        points = [_point_row(point) for point in {record.point for record in records}]
        rows = [_row(record, made_in[0]) for record in records]
        with self._transaction():
            self._connection.execute(_INSERT_ENVIRONMENT, made_in)
            self._connection.executemany(_INSERT_POINT, points)
            self._connection.executemany(_INSERT, rows)

    def merge(self, others: Iterable[str | os.PathLike[str]]) -> MergeReport:
        """Add the rows of other stores: all, or none if one of the files cannot be used."""
        added = present = conflicts = 0
        with ExitStack() as stack:
            sources = [stack.enter_context(closing(source)) for source in self._snapshots(others)]
            stack.enter_context(self._transaction())
            for source in sources:
                known = {row[_WHICH]: row[_OUTCOME] for row in self._connection.execute(_ROWS)}
                rows = source.execute(_ROWS).fetchall()
                new = [row for row in rows if row[_WHICH] not in known]
                same = sum(known.get(row[_WHICH]) == row[_OUTCOME] for row in rows)
                self._connection.executemany(_INSERT_POINT, source.execute(_POINTS))
                self._connection.executemany(_INSERT_ENVIRONMENT, source.execute(_ENVIRONMENTS))
                self._connection.executemany(_INSERT, new)
                added, present, conflicts = added + len(new), present + same, conflicts + len(rows) - len(new) - same
        return MergeReport(added, present, conflicts)

    def records(
        self, stage: str | None = None, point_keys: Collection[str] | None = None, evidence: bool = False
    ) -> list[Record]:
        """The records of a stage and of some points, or of all, by point key, stage and seed."""
        conditions: dict[str, str] = {}
        if stage is not None:
            check_name("stage", stage, STAGES)
            conditions["stage = ?"] = stage
        if point_keys is not None:
            conditions["points.key IN (SELECT value FROM json_each(?))"] = json.dumps(sorted(point_keys))
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        columns = f"points.key, {', '.join(_PLAIN)}, {'evidence' if evidence else 'NULL'}"
        query = f"SELECT {columns} {_JOINED} {where} ORDER BY points.key, stage, seed"
        with self._reading():
            # Points after rows: whatever another process appends meanwhile, every row then finds its point.
            rows = self._connection.execute(query, tuple(conditions.values())).fetchall()
            points = {key: _point(row) for key, *row in self._connection.execute(_POINTS)}
            return [
                Record(points[key], **dict(zip(_PLAIN, plain, strict=True)), evidence=unpacked(blob) if blob else None)
                for key, *plain, blob in rows
            ]

    def have(self, stage: str) -> set[tuple[str, int]]:
        """The point key and seed of every record of a stage."""
        check_name("stage", stage, STAGES)
        query = "SELECT key, seed FROM trials JOIN points ON points.id = trials.point WHERE stage = ?"
        with self._reading():
            return set(self._connection.execute(query, (stage,)))

    def environment_of(self, record: Record) -> Environment:
        """Where a record of this store was made."""
        query = f"SELECT software, hardware {_JOINED} WHERE points.key = ? AND stage = ? AND seed = ?"
        with self._reading():
            rows = self._connection.execute(query, (record.point.key, record.stage, record.seed))
            found = [_environment(row) for row in rows]
        if not found:
            raise KeyError(f"no record of {record.point.canonical()}, stage {record.stage}, seed {record.seed}")
        return found[0]

    def environments(self) -> list[Environment]:
        """All that records were made in."""
        with self._reading():
            return [_environment(row) for _, *row in self._connection.execute(f"{_ENVIRONMENTS} ORDER BY key")]

    def close(self) -> None:
        """Done with it. The last writer that closes a store leaves one file that can be copied and read anywhere."""
        self._connection.close()
        if self._appends:
            self._appends = False
            settle(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._appends:
            raise DataError(f"{self.path}: opened for reading alone. Use Store.open to append.")
        with explained(self.path):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            finally:
                # SQLite has rolled back some failures itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with explained(self.path):
                yield
        except (zlib.error, ValueError, LookupError, TypeError) as error:
            raise DataError(f"{self.path}: {damage(str(error))}") from error

    def _snapshots(self, others: Iterable[str | os.PathLike[str]]) -> list[sqlite3.Connection]:
        """The other stores in memory. One error names all that cannot be used."""
        found, problems = [], []
        for file in map(_file, others):
            try:
                if os.path.exists(file) and os.path.samefile(file, self.path):
                    raise DataError(f"{file}: the store itself. Leave it out.")
                found.append(snapshot(file))
            except DataError as error:
                problems.append(str(error))
        if problems:
            for connection in found:
                connection.close()
            lines = "".join(f"\n  - {problem}" for problem in problems)
            raise DataError(f"{self.path}: nothing was merged, because of:{lines}")
        return found


def _file(path: str | os.PathLike[str]) -> Path:
    """The file behind a link, for SQLite keeps its other files beside that one."""
    return Path(os.path.realpath(os.path.expanduser(path)))


def packed(evidence: Evidence) -> bytes:
    """Compressed JSON with rounded numbers."""
    return zlib.compress(_compact(_rounded(evidence.to_json())).encode(), 9)


def unpacked(blob: bytes) -> Evidence:
    return Evidence.from_json(json.loads(zlib.decompress(blob)))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _row(record: Record, environment: str) -> tuple[Any, ...]:
    blob = None if record.evidence is None else packed(record.evidence)
    return (record.point.key, *(getattr(record, name) for name in _PLAIN), environment, blob)


def _point_row(point: Point) -> tuple[str, ...]:
    return (point.key, point.dataset, point.setting, point.model, point.objective, _compact(dict(point.options)))


def _point(row: Sequence[str]) -> Point:
    dataset, setting, model, objective, options = row
    return Point(dataset, setting, model, objective, json.loads(options))


def _environment_row(environment: Environment) -> tuple[str, str, str]:
    software, hardware = (_compact(dict(sorted(part.items()))) for part in (environment.software, environment.hardware))
    return hashlib.sha256(f"{software}{hardware}".encode()).hexdigest()[:24], software, hardware


def _environment(row: Sequence[str]) -> Environment:
    software, hardware = row
    return Environment(json.loads(software), json.loads(hardware))
