from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from g3nn.base.errors import DataError
from g3nn.graph.calibrate import Bin
from g3nn.studies import store_file
from g3nn.studies.records import Environment, Evidence, Point, Record
from g3nn.studies.store import MergeReport, Store

HERE = Environment({"g3nn": "1"}, {"device": "cpu"})
THERE = Environment({"g3nn": "2"}, {"device": "cuda"})


def point(eta: float = 1.0) -> Point:
    return Point("cora", "standard", "sbm-gcn", "elbo", {"eta": eta, "learn_p": True, "hidden": 16})


def select(seed: int = 0, eta: float = 1.0, **changes: Any) -> Record:
    plain = Record(point(eta), "select", seed, "ab" * 8, "stopped", 0.1 + 0.2, 0.75, None, 300, 100, 0.125)
    return replace(plain, **changes)


def trial(seed: int = 0, eta: float = 1.0, **changes: Any) -> Record:
    return select(seed, eta, **{"stage": "trial", "test_accuracy": 2 / 3} | changes)


def evidence(seed: int = 0) -> Evidence:
    """Of the size that a trial leaves."""
    rng = random.Random(seed)

    def bins(count: int) -> list[Bin]:
        return [Bin(k / count, (k + 1) / count, rng.randint(0, 99), rng.random(), 0.5) for k in range(count)]

    return Evidence(
        test_nodes=1000,
        nll=rng.random(),
        ece=rng.random() / 30,
        brier=rng.random(),
        epochs=list(range(1, 600, 10)),
        curves={f"term {k}": [rng.expovariate(0.3) for _ in range(60)] for k in range(8)},
        reliability=bins(15),
        degrees=bins(6),
        confusion=[[rng.randint(0, 200) for _ in range(7)] for _ in range(7)],
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


def write(path: Path, *records: Record, environment: Environment = HERE) -> Path:
    with Store.open(path, environment=environment) as store:
        store.append(records)
    return path


def read(path: Path) -> list[Record]:
    with Store.read(path) as store:
        return store.records(evidence=True)


def sql(path: Path, *statements: str) -> list[Any]:
    """What plain SQLite answers to the last statement."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_records_come_back_as_they_were(path):
    shown = Evidence(
        test_nodes=3,
        nll=0.5,
        ece=1e-7,
        brier=0.125,
        epochs=[1, 2],
        curves={"loss": [3.0, None]},
        reliability=[Bin(0.0, 1.0, 3, 0.5, 0.75)],
        degrees=[],
        confusion=[[1, 0], [1, 1]],
    )
    given = [
        select(-3),
        select(4, status="failed", error="RuntimeError: 'no' η\nsecond line"),
        select(2**63 - 1, status="diverged", val_loss=None, val_accuracy=None),
        trial(5, status="limit"),
        trial(6, evidence=shown),
    ]
    assert read(write(path, *given)) == given


def test_a_draft_that_was_left_is_deleted(path):
    write(path, select(0))
    left = path.with_name(f".{path.name}.{'0' * 32}.part")
    left.mkdir()
    os.utime(left, (0, 0))
    write(path, select(1))
    assert names(path.parent) == [path.name]


def test_numbers_that_sqlite_does_not_have(path):
    """The loss of a network that is right and sure everywhere is minus nought."""
    found = read(write(path, select(0, val_loss=-0.0), select(1, val_loss=float("nan"))))
    assert found == [select(0, val_loss=0.0), select(1, val_loss=None)]


def test_evidence_keeps_five_digits(path):
    shown = replace(evidence(), nll=0.123456789, curves={"loss": [1234567.0, -1.0000499e-9, None]})
    (found,) = read(write(path, trial(evidence=shown)))
    assert found.evidence is not None
    assert (found.evidence.nll, found.evidence.curves) == (0.12346, {"loss": [1234600.0, -1e-9, None]})


def test_the_order_is_the_same_however_rows_came(tmp_path):
    records = [maker(seed, eta) for maker in (select, trial) for seed in (10, 9, 0) for eta in (1.0, 0.5, 2.0)]
    found = []
    for k in range(2):
        random.Random(k).shuffle(records)
        found.append(read(write(tmp_path / str(k), *records)))
    assert found[0] == found[1]
    assert found[0] == sorted(found[0], key=lambda record: (record.point.key, record.stage, record.seed))


def test_evidence_is_read_where_it_is_asked_for(path):
    write(path, trial(0, evidence=evidence()))
    with Store.read(path) as store:
        assert [record.evidence for record in store.records()] == [None]


def made_in(path: Path) -> dict[int, str]:
    """The device of every trial by its seed, as plain SQLite gives it."""
    query = "SELECT seed, hardware FROM trials JOIN environments ON environments.id = trials.environment"
    return {seed: json.loads(hardware)["device"] for seed, hardware in sql(path, query)}


def test_every_row_knows_where_it_was_made(path):
    write(path, trial(0), environment=HERE)
    write(path, trial(1), environment=THERE)
    write(path, trial(2), environment=Environment(dict(HERE.software), dict(HERE.hardware)))
    assert made_in(path) == {0: "cpu", 1: "cuda", 2: "cpu"}
    with Store.read(path) as store:
        assert sorted(store.environments(), key=str) == sorted([HERE, THERE], key=str)


def test_without_an_environment_it_is_the_current_one(path):
    with Store.open(path) as store:
        store.append([trial()])
        assert store.environments() == [Environment.current()]


def test_a_row_that_exists_stays(path):
    write(path, trial(0), trial(1))
    write(path, trial(0, test_accuracy=0.1, seconds=9.0), trial(2), trial(2, test_accuracy=0.1), environment=THERE)
    assert read(path) == [trial(0), trial(1), trial(2)]
    assert made_in(path) == {0: "cpu", 1: "cpu", 2: "cuda"}


def test_the_file_itself_refuses_what_cannot_be(path):
    for column, value in [
        ("stage", "'test'"),
        ("stage", "'select'"),  # with a test accuracy: choosing would have seen test labels
        ("status", "'done'"),
        ("split", "NULL"),
        ("point", "77"),
        ("environment", "77"),
    ]:
        write(path, trial())
        columns = [row[1] for row in sql(path, "PRAGMA table_info(trials)")]
        chosen = ", ".join({"seed": "1", column: value}.get(name, name) for name in columns)
        with pytest.raises(sqlite3.IntegrityError):
            sql(path, "PRAGMA foreign_keys = ON", f"INSERT INTO trials SELECT {chosen} FROM trials")
        assert read(path) == [trial()]


def test_a_batch_goes_in_whole_or_not_at_all(path):
    with Store.open(path) as store:
        store.append([trial(0)])
        with pytest.raises(sqlite3.IntegrityError):
            store.append([trial(1), trial(2, 5.0), trial(3, epochs=None)])
        assert store.records() == [trial(0)]
        store.append([])
        store.append([trial(4)])
    assert read(path) == [trial(0), trial(4)]
    assert sql(path, "SELECT count(*) FROM points") == [(1,)]


def test_a_store_without_rows_is_one(path):
    Store.open(path).close()
    assert read(path) == []
    assert names(path.parent) == [path.name]


def test_there_is_one_file_that_can_be_copied_between_any_two_batches(path, tmp_path):
    with Store.open(path, environment=HERE) as one, Store.open(path, environment=HERE) as other:
        one.append([trial(0)])
        other.append([trial(1)])
        assert names(tmp_path) == [path.name]
        assert read(Path(shutil.copy(path, tmp_path / "copy"))) == [trial(0), trial(1)]


def test_a_reader_sees_one_moment_and_blocks_nobody(path):
    with Store.open(path, environment=HERE) as store:
        store.append([trial(0)])
        reader = Store.read(path)
        store.append([trial(1)])
        assert read(path) == [trial(0), trial(1)]
    assert names(path.parent) == [path.name]
    assert reader.records() == [trial(0)]
    for change in (lambda: reader.append([trial(1)]), lambda: reader.merge([])):
        with pytest.raises(DataError, match=r"for reading only. Use Store\.open"):
            change()
    reader.close()


@pytest.mark.parametrize("name", ["a b?c#d%20.sqlite", "η.sqlite", "no-ending"])
def test_any_name_will_do(tmp_path, name):
    assert read(write(tmp_path / name, trial())) == [trial()]
    assert names(tmp_path) == [name]


def test_a_link_to_a_store(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    with Store.open(link, environment=HERE) as store:
        store.append([trial()])
        assert read(link) == read(path) == [trial()]
    assert names(tmp_path) == ["link", path.name]


DAMAGE = {
    "UPDATE trials SET val_loss = 0.25 WHERE seed = 1": "'trial' of point '{key}' with seed 1",
    "UPDATE trials SET evidence = x'00' WHERE seed = 1": "'trial' of point '{key}' with seed 1",
    "UPDATE trials SET seed = 7 WHERE seed = 1": "'trial' of point '{key}' with seed 7",
    "UPDATE trials SET error = CAST(x'ff' AS TEXT) WHERE seed = 1": "'trial' of point '{key}' with seed 1",
    "UPDATE trials SET point = 77 WHERE seed = 1": "'trial' of point None with seed 1",
    "UPDATE trials SET digest = 5 WHERE seed = 1": "'trial' of point '{key}' with seed 1",
    "UPDATE points SET dataset = 'pubmed'": "'{key}'",
    "UPDATE points SET options = '[3]'": "'{key}'",
    "UPDATE points SET options = '{{'": "'{key}'",
    "UPDATE environments SET hardware = '{{}}'": "does not agree",
}
"""What happens to a file without SQLite noticing, and what the error says."""


@pytest.mark.parametrize(("damage", "told"), DAMAGE.items())
def test_damage_that_sqlite_does_not_see_is_named(path, tmp_path, damage, told):
    sql(write(path, trial(0), trial(1)), damage.format())
    for use in (Store.records, Store.environments, lambda store: Store.open(tmp_path / "new").merge([path])):
        with Store.read(path) as store, pytest.raises(DataError, match="damaged") as caught:
            use(store)
        assert f"{path}: " in str(caught.value)
        assert told.format(key=point().key) in str(caught.value)
        assert "Take a sound copy" in str(caught.value)
    assert read(tmp_path / "new") == []
    if damage.startswith("UPDATE trials"):
        sql(path, str(caught.value).split('"')[1])
        assert read(path) == [trial(0)]


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_never_change_what_is_read(path, seed):
    """With 25 damaged copies each: an error of one line, or the same records."""
    rng = random.Random(seed)
    failed = select(3, 2.0, status="failed", error="η")
    sound = write(path, *(trial(k, evidence=evidence(k)) for k in range(2)), failed, select(4)).read_bytes()
    expected, errors = read(path), []
    for _ in range(25):
        content = bytearray(sound)
        for place in rng.choices(range(len(content)), k=3):
            content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            with Store.read(path) as store:
                assert (store.records(evidence=True), store.environments()) == (expected, [HERE])
        except DataError as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert all(error.startswith(f"{path}: ") and "\n" not in error for error in errors)


def without_digests(path: Path) -> Path:
    """As the first version wrote it, with the triggers that its oldest files have."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'a store only grows'); END"
    sql(path, "ALTER TABLE trials DROP COLUMN digest", "PRAGMA user_version = 1")
    sql(path, f"CREATE TRIGGER trials_no_update BEFORE UPDATE ON trials {refuse}")
    return path


def test_a_store_of_the_first_version(path, tmp_path):
    expected = read(write(path, trial(0, evidence=evidence()), trial(1, 2.0), select(4)))
    before = without_digests(path).read_bytes()
    assert read(path) == expected
    with Store.open(tmp_path / "new") as store:
        assert store.merge([path]).added == 3
    assert path.read_bytes() == before
    write(path, trial(2))
    assert sql(path, "PRAGMA user_version") == [(store_file.VERSION,)]
    assert len(read(path)) == 4
    sql(path, "UPDATE trials SET val_loss = 0.25 WHERE seed = 0")
    with pytest.raises(DataError, match=r"1 of 4 rows are damaged.* with seed 0\."):
        read(path)


def test_numbers_of_another_type_come_back_too(path):
    given = trial(seconds=1, val_loss=True, epochs=3.0)
    assert read(write(path, given)) == [given]


def fill_the_disk(store: Store) -> None:
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 8}")


def test_a_full_disk(path):
    write(path, trial(0))
    with Store.open(path, environment=HERE) as store:
        fill_the_disk(store)
        store.append([trial(1)])
        with pytest.raises(DataError, match="disk is full") as caught:
            store.append([trial(seed, evidence=evidence(seed)) for seed in range(2, 20)])
        for text in (str(path), "last complete batch is safe", "Free some space"):
            assert text in str(caught.value)
        assert store.records() == [trial(0), trial(1)]
    write(path, trial(2))
    assert read(path) == [trial(0), trial(1), trial(2)]


def test_a_full_disk_where_temporary_files_go(path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sql(write(path, trial(0)), "PRAGMA journal_mode = WAL")
    monkeypatch.setattr(store_file.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(DataError, match=r"the disk is full .*Free some space"):
        read(path)


def test_another_process_keeps_it_locked(path, monkeypatch):
    monkeypatch.setattr(store_file, "PATIENCE", 0.05)
    with Store.open(path, environment=HERE) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError, match=r"another process.*is safe.*Wait"):
            store.append([trial(0)])
        other.execute("ROLLBACK")
        store.append([trial(0)])
        assert store.records() == [trial(0)]


def test_a_disk_without_links(path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(DataError, match=r"Operation not permitted.*give `store=...` another file"):
        Store.open(path)
    assert names(path.parent) == []


def test_merging(path, tmp_path):
    write(path, trial(0), trial(1))
    one = write(tmp_path / "one", trial(1), trial(2, 5.0), select(3), environment=THERE)
    two = write(tmp_path / "two", trial(2, 5.0), trial(4, evidence=evidence()), environment=HERE)
    before = one.read_bytes(), two.read_bytes()
    with Store.open(path, environment=HERE) as store:
        assert store.merge([one, str(two)]) == MergeReport(added=3, present=2, conflicts=0)
        assert store.merge([one, two]) == MergeReport(added=0, present=5, conflicts=0)
        assert store.merge([]) == MergeReport(added=0, present=0, conflicts=0)
        assert len(store.environments()) == 2
    assert made_in(path) == {0: "cpu", 1: "cpu", 2: "cuda", 3: "cuda", 4: "cpu"}
    digests = "SELECT seed, digest FROM trials WHERE seed IN (3, 4)"
    assert sql(path, digests) == [*sql(one, digests), *sql(two, digests)]
    merged = read(path)
    assert len(merged) == 5
    for record in (trial(0), *read(one), *read(two)):
        assert record in merged
    assert (one.read_bytes(), two.read_bytes()) == before


@pytest.mark.parametrize(
    "changes",
    [{"test_accuracy": 0.1}, {"val_loss": None}, {"split": "other"}, {"status": "limit"}, {"error": "text"}],
)
def test_merging_another_result_keeps_the_first(path, tmp_path, changes):
    write(path, trial(0), trial(1))
    other = write(tmp_path / "other", trial(0, **changes), trial(1, seconds=7.0), trial(2), environment=THERE)
    with Store.open(path) as store:
        assert store.merge([other]) == MergeReport(added=1, present=1, conflicts=1)
    assert read(path) == [trial(0), trial(1), trial(2)]


def test_merging_a_store_that_is_being_written(path, tmp_path):
    with Store.open(tmp_path / "other", environment=THERE) as other, Store.open(path, environment=HERE) as store:
        other.append([trial(0)])
        assert store.merge([tmp_path / "other"]).added == 1
        other.append([trial(1)])
        assert store.merge([tmp_path / "other"]) == MergeReport(added=1, present=1, conflicts=0)
    assert read(path) == [trial(0), trial(1)]


def test_merging_onto_a_full_disk_adds_nothing(path, tmp_path):
    write(path, trial(0))
    small = write(tmp_path / "small", trial(1))
    large = write(tmp_path / "large", *(trial(seed, evidence=evidence(seed)) for seed in range(2, 30)))
    with Store.open(path) as store:
        fill_the_disk(store)
        with pytest.raises(DataError, match="disk is full"):
            store.merge([small, large])
    assert read(path) == [trial(0)]
    with Store.open(path) as store:
        assert store.merge([small, large]).added == 29


def test_a_large_run_stays_small(path):
    """A tenth of the paper's, in a tenth of 10 MB: 2,500 rows, and evidence for 100 of them."""
    chosen = [select(seed, eta / 7) for eta in range(480) for seed in range(1000, 1005)]
    write(path, *chosen, *(trial(seed, evidence=evidence(seed)) for seed in range(100)))
    assert len(read(path)) == 2500
    assert path.stat().st_size < 1_000_000
