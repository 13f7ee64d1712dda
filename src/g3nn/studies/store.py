"""The store: one SQLite file with a row for every training. Rows are only ever added, never changed or removed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from g3nn.base.errors import DataError
from g3nn.base.folders import tidy
from g3nn.studies.records import Environment, Evidence, Point, Record
from g3nn.studies.store_file import PLAIN, RESULT, UNSEALED, create, damage, explained, rows, seal, snapshot, writable

T = TypeVar("T")

_DIGITS = 5
"""Significant digits of the numbers in the evidence of a trial: more than a page can show."""

_POINT = ("dataset", "setting", "model", "objective", "options")
_INSERT = f"""
INSERT INTO trials (point, {", ".join(PLAIN)}, environment, evidence, digest)
VALUES ((SELECT id FROM points WHERE key = ?), {", ".join("?" * len(PLAIN))},
        (SELECT id FROM environments WHERE key = ?), ?, {UNSEALED}) ON CONFLICT DO NOTHING
"""
_POINTS = f"SELECT key, {', '.join(_POINT)} FROM points"
_INSERT_POINT = f"INSERT INTO points (key, {', '.join(_POINT)}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ENVIRONMENTS = "SELECT key, software, hardware FROM environments ORDER BY key"
_INSERT_ENVIRONMENT = "INSERT INTO environments (key, software, hardware) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


@dataclass(frozen=True)
class MergeReport:
    """Rows of the other stores: new ones, those already present, and those present with another result."""

    added: int
    present: int
    conflicts: int


_Contents = tuple[list[tuple[Any, ...]], dict[str, Point], dict[str, Environment]]
"""Rows as `store_file.rows` gives them, and points and environments by key."""


class Store:
    """Records in a file. Use `Store.open` to append and `Store.read` to look at what is committed at that moment."""

    def __init__(self, path: Path, connection: sqlite3.Connection, environment: Environment | None = None) -> None:
        self.path = path
        self._connection = connection
        self._environment = environment

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, environment: Environment | None = None) -> Store:
        """Open a store for appending, and create it if needed. New rows are noted as made in `environment`."""
        file = _file(path)
        if not os.path.exists(file):
            create(file)
        tidy(file)
        return cls(file, writable(file), environment)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Store:
        """What is committed now. The file, its folder and its writers are not disturbed, now or later."""
        file = _file(path)
        return cls(file, snapshot(file))

    def append(self, records: Sequence[Record]) -> None:
        """Add all records or, if that fails, none. A row that exists stays unchanged."""
        if not records:
            return
        environment = self._environment = self._environment or Environment.current()
        made_in = _environment_row(environment)[0]
        with self._transaction():
            self._insert({record.point for record in records}, [environment], [_row(one, made_in) for one in records])

    def merge(self, others: Iterable[str | os.PathLike[str]]) -> MergeReport:
        """Add the rows of other stores: all of them, or none if one of the files cannot be used."""
        added = present = conflicts = 0
        sources = self._contents_of(others)
        with self._transaction():
            for theirs, points, environments in sources:
                # A row begins with what was trained (point, stage, seed), followed by its result.
                held = {row[:3]: row[3 : 3 + len(RESULT)] for row in rows(self._connection)}
                self._insert(points.values(), environments.values(), theirs)
                results = [(held.get(row[:3]), row[3 : 3 + len(RESULT)]) for row in theirs]
                added += sum(old is None for old, _ in results)
                present += sum(old == new for old, new in results)
                conflicts += sum(old not in (None, new) for old, new in results)
        return MergeReport(added, present, conflicts)

    def records(self, evidence: bool = False) -> list[Record]:
        """All records, ordered by point key, stage and seed."""
        with explained(self.path, "read"):
            found, points, _ = self._contents()
            return [
                Record(
                    points[key],
                    **dict(zip(PLAIN, plain, strict=True)),
                    evidence=Evidence.from_json(zlib.decompress(blob)) if evidence and blob else None,
                )
                for key, *plain, _, blob in found
            ]

    def environments(self) -> list[Environment]:
        """All environments that records were made in."""
        with explained(self.path, "read"):
            return list(self._contents()[2].values())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._connection.execute("PRAGMA query_only").fetchone()[0]:
            raise DataError(f"{self.path}: opened for reading only. Use Store.open to append.")
        with explained(self.path), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _insert(self, points: Iterable[Point], environments: Iterable[Environment], new: Iterable[Any]) -> None:
        """new: as `rows` gives them."""
        self._connection.executemany(_INSERT_POINT, map(_point_row, points))
        self._connection.executemany(_INSERT_ENVIRONMENT, map(_environment_row, environments))
        self._connection.executemany(_INSERT, new)
        seal(self._connection)

    def _contents(self) -> _Contents:
        """Everything in the file. Raises unless all of it is sound."""
        # Points after rows: whatever another process appends in between, every row finds its point.
        found = rows(self._connection)
        points = _sound(self._connection.execute(_POINTS), _point, _point_row)
        return found, points, _sound(self._connection.execute(_ENVIRONMENTS), _environment, _environment_row)

    def _contents_of(self, others: Iterable[str | os.PathLike[str]]) -> list[_Contents]:
        """What other stores hold. One error names all that cannot be used."""
        found, problems = [], []
        for file in map(_file, others):
            try:
                if os.path.exists(file) and os.path.samefile(file, self.path):
                    raise DataError(f"{file}: the store itself. Leave it out.")
                with Store.read(file) as other, explained(file, "read"):
                    found.append(other._contents())
            except DataError as error:
                problems.append(f"\n  - {error}")
        if problems:
            raise DataError(f"{self.path}: nothing was merged, because of:{''.join(problems)}")
        return found


def _file(path: str | os.PathLike[str]) -> Path:
    """The file behind a link: SQLite keeps its journal beside that one."""
    return Path(os.path.realpath(os.path.expanduser(path)))


def packed(evidence: Evidence) -> bytes:
    """Compressed JSON with rounded numbers."""
    rounded = json.loads(_compact(asdict(evidence)), parse_float=lambda text: float(f"{float(text):.{_DIGITS}g}"))
    return zlib.compress(_compact(rounded).encode(), 9)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sound(stored: Iterable[Any], made: Callable[..., T], row: Callable[[T], tuple[str, ...]]) -> dict[str, T]:
    """What rows of a key and its fields say, by key. Raises unless each is the key of what was made of the fields."""
    found = {}
    for key, *fields in stored:
        try:
            found[key] = made(*fields)
            sound = row(found[key])[0] == key
        except (ValueError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise DataError(damage(f"what is stored under the key {key!r} does not agree with it"))
    return found


def _row(record: Record, environment: str) -> tuple[Any, ...]:
    blob = None if record.evidence is None else packed(record.evidence)
    return (record.point.key, *(getattr(record, name) for name in PLAIN), environment, blob)


def _point(dataset: str, setting: str, model: str, objective: str, options: str) -> Point:
    return Point(dataset, setting, model, objective, json.loads(options))


def _environment(software: str, hardware: str) -> Environment:
    return Environment(json.loads(software), json.loads(hardware))


def _point_row(point: Point) -> tuple[str, ...]:
    return (point.key, *point.names, _compact(dict(point.options)))


def _environment_row(environment: Environment) -> tuple[str, str, str]:
    parts = (environment.software, environment.hardware)
    software, hardware = (_compact(dict(sorted(facts.items()))) for facts in parts)
    return hashlib.sha256(f"{software}{hardware}".encode()).hexdigest()[:24], software, hardware
