"""Stores in any order of appending, merging, reading, damage and upgrades hold what a dictionary would."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from machines import SETTINGS

from g3nn.base.errors import DataError
from g3nn.graph.calibrate import Bin
from g3nn.studies.records import STATUSES, Environment, Evidence, Point, Record
from g3nn.studies.store import MergeReport, Store

NUMBERS = st.none() | st.floats() | st.sampled_from([0.0, -0.0, 1.0, 5e-324])
OPTIONS = st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3)
POINTS = st.builds(
    Point,
    st.just("cora"),
    st.sampled_from(["standard", "missing-edge"]),
    st.sampled_from(["gcn", "sbm-gcn"]),
    st.just("elbo"),
    st.dictionaries(st.sampled_from(["eta", "hidden"]), OPTIONS),
)
SEEDS = st.integers(0, 3) | st.sampled_from([-1, 2**63 - 1, -(2**63)])
EVIDENCE = st.builds(
    lambda nll, bins: Evidence(3, nll, 0.5, 0.25, [1], {"loss": [nll, None]}, bins, [], [[1, 2]]),
    st.sampled_from([0.5, 0.0, 12345.0]),
    st.lists(st.just(Bin(0.0, 0.5, 3, 0.25, 0.5)), max_size=2),
)
SELECTED = st.builds(
    Record,
    point=POINTS,
    stage=st.just("select"),
    seed=SEEDS,
    split=st.just("ab"),
    status=st.sampled_from(STATUSES),
    val_loss=NUMBERS,
    val_accuracy=NUMBERS,
    test_accuracy=st.none(),
    epochs=st.integers(0, 3),
    best_epoch=st.integers(0, 3),
    seconds=st.floats(0, 1e9),
    error=st.text(max_size=5),
)
TRIALS = st.builds(
    lambda one, accuracy, seen: replace(one, stage="trial", test_accuracy=accuracy, evidence=seen),
    SELECTED,
    NUMBERS,
    st.none() | EVIDENCE,
)
RECORDS = st.lists(SELECTED | TRIALS, max_size=4)
NAMES = st.sampled_from(["one", "two", "three"])

Rows = dict[tuple[str, str, int], Record]


def key(record: Record) -> tuple[str, str, int]:
    return record.point.key, record.stage, record.seed


def kept(record: Record) -> Record:
    """What is no number is none, as everywhere in a store."""
    numbers = {name: getattr(record, name) for name in ("val_loss", "val_accuracy", "test_accuracy")}
    return replace(record, **{name: None for name, value in numbers.items() if value != value})


def result(record: Record) -> tuple[Any, ...]:
    names = ("split", "status", "val_loss", "val_accuracy", "test_accuracy", "epochs", "best_epoch", "error")
    return tuple(getattr(record, name) for name in names)


def read(path: Path) -> list[Record]:
    with Store.read(path) as store:
        return store.records(evidence=True)


def in_order(rows: Rows) -> list[Record]:
    return [rows[place] for place in sorted(rows)]


class Stores(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.rows: dict[str, Rows] = {}
        self.open: dict[str, Store] = {}
        self.seen: list[tuple[Store, list[Record]]] = []

    def teardown(self) -> None:
        for store in [*self.open.values(), *(store for store, _ in self.seen)]:
            store.close()
        shutil.rmtree(self.folder)

    def path(self, name: str) -> Path:
        return self.folder / name

    def store(self, name: str) -> Store:
        if name not in self.open:
            self.open[name] = Store.open(self.path(name), environment=Environment({"g3nn": name}))
            self.rows.setdefault(name, {})
        return self.open[name]

    @rule(name=NAMES, records=RECORDS)
    def append(self, name: str, records: list[Record]) -> None:
        self.store(name).append(records)
        for record in records:
            self.rows[name].setdefault(key(record), kept(record))

    @rule(name=NAMES)
    def reopen(self, name: str) -> None:
        if name in self.open:
            self.open.pop(name).close()
        assert self.store(name).records(evidence=True) == in_order(self.rows[name])

    @rule(into=NAMES, others=st.lists(NAMES, max_size=3))
    def merge(self, into: str, others: list[str]) -> None:
        store, before = self.store(into), dict(self.rows[into])
        for name in others:
            self.store(name)
        if into in others:
            with pytest.raises(DataError, match="the store itself"):
                store.merge(map(self.path, others))
            return
        found = store.merge(map(self.path, others))
        counts = {"added": 0, "present": 0, "conflicts": 0}
        for name in others:
            for place, record in self.rows[name].items():
                old = before.get(place)
                same = old is not None and result(old) == result(record)
                counts["added" if old is None else "present" if same else "conflicts"] += 1
                before.setdefault(place, record)
        self.rows[into] = before
        assert found == MergeReport(**counts)

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        """What is read stays as it was at that moment."""
        if name in self.rows and len(self.seen) < 3:
            self.seen.append((Store.read(self.path(name)), in_order(self.rows[name])))

    @rule(name=NAMES, column=st.sampled_from(["val_loss", "epochs", "error", "seed", "evidence"]), place=st.integers(0))
    def damage(self, name: str, column: str, place: int) -> None:
        """A copy of which one row says something else is refused, and without that row it is fine."""
        rows = self.rows.get(name, {})
        if not rows:
            return
        damaged = sorted(rows)[place % len(rows)]
        if column == "evidence" and damaged[1] == "select":
            return  # SQLite itself knows that there can be none.
        copy = self._copied(name)
        change = {
            "val_loss": "123.25",
            "epochs": "epochs + 1",
            "error": "error || 'x'",
            "seed": "77",
            "evidence": "x'00'",
        }
        where = "point = (SELECT id FROM points WHERE key = ?) AND stage = ? AND seed = ?"
        with closing(sqlite3.connect(copy)) as plain, plain:
            plain.execute("PRAGMA ignore_check_constraints = ON")
            plain.execute(f"UPDATE trials SET {column} = {change[column]} WHERE {where}", damaged)
        with pytest.raises(DataError, match=f"1 of {len(rows)} rows are damaged") as caught:
            read(copy)
        into = next(iter(self.open))
        with pytest.raises(DataError, match="nothing was merged"):
            self.open[into].merge([copy])
        advice = str(caught.value).rpartition('sqlite3 FILE "')[2].rstrip('"')
        with closing(sqlite3.connect(copy)) as plain, plain:
            plain.execute(advice)
        assert read(copy) == in_order({place: row for place, row in rows.items() if place != damaged})
        copy.unlink()

    @rule(name=NAMES, records=RECORDS)
    def upgrade(self, name: str, records: list[Record]) -> None:
        """A copy as the first version wrote it is read as it is, and gets digests when it grows."""
        if name not in self.rows:
            return
        copy, rows = self._copied(name), dict(self.rows[name])
        with closing(sqlite3.connect(copy)) as plain, plain:
            plain.execute("ALTER TABLE trials DROP COLUMN digest")
            plain.execute("PRAGMA user_version = 1")
        before = copy.read_bytes()
        assert read(copy) == in_order(rows)
        assert copy.read_bytes() == before
        with Store.open(copy) as store:
            store.append(records)
        for record in records:
            rows.setdefault(key(record), kept(record))
        assert read(copy) == in_order(rows)
        copy.unlink()

    def _copied(self, name: str) -> Path:
        return Path(shutil.copyfile(self.path(name), self.folder / "copy"))

    @invariant()
    def all_is_there(self) -> None:
        if hasattr(self, "rows"):
            for name, rows in self.rows.items():
                assert read(self.path(name)) == in_order(rows)
            for store, records in self.seen:
                assert store.records(evidence=True) == records


def test_stores_hold_what_a_dictionary_would():
    run_state_machine_as_test(Stores, settings=SETTINGS)
