"""Stores among kills, other processes, full disks, read-only folders and files of another kind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from g3nn.base.errors import DataError
from g3nn.studies.records import Environment, Point, Record
from g3nn.studies.store import Store

HERE = Environment({"g3nn": "1"}, {"device": "cpu"})
BATCH = 7

PRELUDE = f"""
import os, resource, signal, sys
from g3nn.base.errors import DataError
from g3nn.studies.records import Environment, Point, Record
from g3nn.studies.store import Store

path, *words = sys.argv[1:]

def batch(number):
    point = Point("cora", "standard", "gcn", "elbo", {{"eta": number}})
    return [Record(point, "select", seed, "ab", "stopped", 0.5, 0.5, None, 9, 4, 0.1) for seed in range({BATCH})]

def die_after(store, steps):
    "SQLite calls back after so many steps of its machine, wherever it is then."
    store._connection.set_progress_handler(lambda: os.kill(os.getpid(), signal.SIGKILL), steps)
"""


def start(code: str, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + code, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def record(seed: int) -> Record:
    point = Point("cora", "standard", "gcn", "elbo", {})
    return Record(point, "select", seed, "ab" * 8, "stopped", 0.5, 0.75, None, 300, 100, 0.125)


def write(path: Path, *records: Record) -> Path:
    with Store.open(path, environment=HERE) as store:
        store.append(records)
    return path


def read(path: Path) -> list[Record]:
    with Store.read(path) as store:
        return store.records()


def sql(path: Path, *statements: str) -> list[Any]:
    """What plain SQLite answers to the last statement."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def state(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def whole_batches(path: Path) -> set[float]:
    """The numbers of the batches in the store, each of which must be complete."""
    rows = Counter(float(found.point.options["eta"]) for found in read(path))
    assert set(rows.values()) <= {BATCH}
    return set(rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


APPEND_FOR_EVER = """
number = int(words[0])
while True:
    with Store.open(path) as store:
        for number in range(number, number + 25):
            store.append(batch(number))
            print(number, flush=True)
    number += 1
"""


@pytest.mark.slow
def test_killed_at_any_moment(path):
    rng, promised = random.Random(0), set()
    for attempt in range(10):
        child = start(APPEND_FOR_EVER, path, 100_000 * attempt)
        assert child.stdout is not None
        promised.add(float(child.stdout.readline()))
        time.sleep(rng.uniform(0, 0.15))
        child.kill()
        said, _ = child.communicate()
        # The last line may be cut short.
        promised |= {float(line) for line in said.splitlines(keepends=True) if line.endswith("\n")}
        before = state(path.parent)
        assert promised <= whole_batches(path)
        assert state(path.parent) == before
    write(path, record(0))
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert list(state(path.parent)) == [path.name]
    assert len(promised) >= 10


def test_killed_inside_an_append(path):
    code = "store = Store.open(path); store.append(batch(1)); die_after(store, int(words[0])); store.append(batch(2))"
    for steps in (1, 100, 600):
        path.unlink(missing_ok=True)
        child = start(code, path, steps)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert whole_batches(path) == {1}
        write(path)
        assert list(state(path.parent)) == [path.name]


def test_killed_inside_a_merge(path, tmp_path):
    for number in range(2):
        make = "store = Store.open(path); [store.append(batch(int(words[0]) + k)) for k in range(20)]; store.close()"
        _, said = start(make, tmp_path / str(number), 100 * (number + 1)).communicate()
        assert said == ""
    write(path, record(0))
    before = path.read_bytes()
    for steps in (1, 5000, 20000):
        child = start(
            "store = Store.open(path); die_after(store, int(words[0])); store.merge(words[1:])",
            path,
            steps,
            *(tmp_path / "0", tmp_path / "1"),
        )
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert read(path) == [record(0)]
    write(path)
    assert path.stat().st_size == len(before)
    with Store.open(path) as store:
        assert store.merge([tmp_path / "0", tmp_path / "1"]).added == 40 * BATCH


def test_processes_append_the_same_and_other_rows(path):
    code = """
for number in map(int, words):
    with Store.open(path) as store:
        store.append(batch(number))
        store.append(batch(number + 1))
        Store.read(path).close()
"""
    children = [start(code, path, *numbers) for numbers in (range(0, 10), range(4, 14), range(2, 12))]
    assert [child.communicate()[1] for child in children] == ["", "", ""]
    assert whole_batches(path) == set(range(15))
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert list(state(path.parent)) == [path.name]


def test_opening_waits_for_a_transaction_of_another_program(path):
    write(path, record(0))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
        timer.start()
        write(path, record(1))
        timer.join()
    assert read(path) == [record(0), record(1)]


def test_reading_inside_a_transaction_of_a_writer_gives_what_is_committed(path):
    code = """
store = Store.open(path)
store.append(batch(1))
store._connection.execute("BEGIN IMMEDIATE")
store._connection.execute("DELETE FROM trials")
print('ready', flush=True)
sys.stdin.read()
"""
    child = start(code, path)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    before = state(path.parent)
    assert len(before) == 2
    assert whole_batches(path) == {1}
    assert state(path.parent) == before
    child.kill()
    child.communicate()
    assert whole_batches(path) == {1}


def test_a_limit_on_the_size_of_files(path):
    """As a quota or a full disk would, it stops SQLite in the middle of a write."""
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
store = Store.open(path)
for number in range(1000):
    try:
        store.append(batch(number))
    except DataError as error:
        print(number, error)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append(batch(1000))
store.close()
"""
    said, errors = start(code, path).communicate()
    assert errors == ""
    number, _, message = said.partition(" ")
    assert message.startswith(f"{path}: the disk")
    assert "last complete batch is safe" in message
    assert whole_batches(path) == {*range(int(number)), 1000}
    assert list(state(path.parent)) == [path.name]


def left_at_rest(path: Path) -> None:
    pass


def left_in_wal_mode(path: Path) -> None:
    sql(path, "PRAGMA journal_mode = WAL")


def left_with_a_log(path: Path) -> None:
    """As when a program that uses a write-ahead log is killed."""
    code = """
store = Store.open(path)
store._connection.execute("PRAGMA journal_mode = WAL")
store.append(batch(1))
os._exit(0)
"""
    start(code, path).communicate()
    assert len(state(path.parent)) == 3


def left_without_its_index(path: Path) -> None:
    """As when somebody copies only two of the three files."""
    left_with_a_log(path)
    path.with_name(f"{path.name}-shm").unlink()


def left_with_an_empty_log(path: Path) -> None:
    """As when the program is killed between the head of the log and its first row."""
    left_with_a_log(path)
    log = path.with_name(f"{path.name}-wal")
    log.write_bytes(log.read_bytes()[:32])


def left_with_a_journal(path: Path) -> None:
    """As when a writer is killed in the middle of a large batch."""
    code = """
store = Store.open(path)
store._connection.execute("PRAGMA cache_size = 1")
store._connection.execute("BEGIN")
for k in range(500):
    store._connection.execute("INSERT INTO points VALUES (NULL, ?, '', '', '', '', ?)", (str(k), "x" * 500))
os._exit(0)
"""
    start(code, path).communicate()
    assert state(path.parent)[f"{path.name}-journal"]


LEFT = {
    left_at_rest: 1,
    left_in_wal_mode: 1,
    left_with_a_log: 1 + BATCH,
    left_without_its_index: 1 + BATCH,
    left_with_an_empty_log: 1,
    left_with_a_journal: 1,
}
"""What may have happened to a store of one row, and how many rows it has then."""


@pytest.mark.parametrize(("leave", "rows"), LEFT.items())
def test_reading_leaves_no_trace(path, leave, rows):
    write(path, record(0))
    leave(path)
    before = state(path.parent)
    assert record(0) in read(path)
    assert len(read(path)) == rows
    assert state(path.parent) == before
    write(path, record(1))
    assert list(state(path.parent)) == [path.name]
    assert len(read(path)) == rows + 1


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions do not bind the superuser."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError:
        pytest.skip("cannot give up the rights of the superuser")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Callable[[Callable[[Path], None]], Path]]:
    """Makes a store that may not be written, in such a folder. Not below tmp_path, which others may not enter."""
    folder = Path(tempfile.mkdtemp())

    def make(leave: Callable[[Path], None]) -> Path:
        path = write(folder / "results.sqlite", record(0))
        leave(path)
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        return path

    yield make
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("leave", LEFT)
def test_reading_where_nothing_may_be_written(read_only, leave):
    path = read_only(leave)
    with unprivileged():
        assert record(0) in read(path)


@pytest.mark.slow
@pytest.mark.parametrize("leave", LEFT)
def test_appending_where_nothing_may_be_written(read_only, leave):
    path = read_only(leave)
    before = state(path.parent)
    for target in (path, path.with_name("new.sqlite")):
        with unprivileged(), pytest.raises(DataError, match="cannot be written") as caught:
            Store.open(target)
        for text in (str(target), "is safe", "`store=...` another file"):
            assert text in str(caught.value)
    assert state(path.parent) == before


def not_sqlite(path: Path) -> None:
    path.write_text("seed,accuracy\n0,0.7\n" * 400)


def short_text(path: Path) -> None:
    path.write_text("{}")


def empty(path: Path) -> None:
    path.touch()


def of_something_else(path: Path) -> None:
    sql(path, "CREATE TABLE songs (title)", "PRAGMA user_version = 1")


def newer(path: Path) -> None:
    sql(write(path, record(0)), "PRAGMA user_version = 3")


def older(path: Path) -> None:
    sql(write(path, record(0)), "PRAGMA user_version = 0")


def cut_short(path: Path) -> None:
    content = write(path, *map(record, range(200))).read_bytes()
    path.write_bytes(content[:-5000])


def scribbled_over(path: Path) -> None:
    content = write(path, *map(record, range(200))).read_bytes()
    path.write_bytes(content[:-3000] + b"\x55" * 3000)


def a_folder(path: Path) -> None:
    path.mkdir()


NEXT = "`store=...` a new file"
UNUSABLE = {
    not_sqlite: ["not an SQLite file", NEXT],
    short_text: ["not an SQLite file", NEXT],
    empty: ["an empty file", NEXT],
    of_something_else: ["an SQLite file of something else", NEXT],
    newer: ["a store of the newer version 3", "versions 1 to 2", "the g3nn that made it", NEXT],
    older: ["a store of the older version 0", "versions 1 to 2", "the g3nn that made it", NEXT],
    cut_short: ["damaged", ".recover", NEXT],
    scribbled_over: ["damaged", ".recover", NEXT],
    a_folder: ["a folder", "`store=...` a file"],
}


@pytest.mark.parametrize("use", [Store.open, Store.read])
@pytest.mark.parametrize(("make", "texts"), UNUSABLE.items(), ids=[make.__name__ for make in UNUSABLE])
def test_a_file_that_cannot_be_used(path, use, make, texts):
    make(path)
    before = state(path.parent)
    with pytest.raises(DataError) as caught:
        use(path)
    (line,) = str(caught.value).splitlines()
    for text in (str(path), *texts):
        assert text in line
    assert state(path.parent) == before


def test_a_file_that_is_not_there(path):
    with pytest.raises(DataError, match=r"no such file.*bench run"):
        Store.read(path)
    with pytest.raises(DataError, match=r"there is no folder .*absent\. Create it"):
        Store.open(path.parent / "absent" / "results.sqlite")
    assert list(path.parent.iterdir()) == []


def test_merging_names_every_file_that_cannot_be_used(path, tmp_path):
    write(path, record(0))
    good, link = write(tmp_path / "good", record(1)), tmp_path / "link"
    link.symlink_to(path)
    expected = {tmp_path / make.__name__: texts[0] for make, texts in UNUSABLE.items()}
    for make in UNUSABLE:
        make(tmp_path / make.__name__)
    expected |= {tmp_path / "absent": "no such file", path: "the store itself"}
    with Store.open(path) as store:
        with pytest.raises(DataError) as caught:
            store.merge([*expected, good, link])
        assert store.records() == [record(0)]
    first, *lines, last = str(caught.value).splitlines()
    assert first.startswith(f"{path}: nothing was merged")
    assert "the store itself" in last
    for line, (file, text) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"  - {file}: {text}")
