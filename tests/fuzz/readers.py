"""Everything that reads what comes from outside. Each reads an input or raises one of our errors; anything else is a
finding."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import random
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
from label_desk import TOKEN, app_of, desk_of, status_of
from mutations import damaged, damaged_member, packed, unpacked
from old_pickles import framed, pickled_array, pickled_csr
from small_tables import edge_columns, node_columns, write

import g3nn
from g3nn.base.errors import G3NNError
from g3nn.graph.calibrate import Bin
from g3nn.graph.datasets.unpickle import array, neighbour_lists
from g3nn.graph.tables.graph import read_tables
from g3nn.studies.records import Evidence, Point, Record
from g3nn.studies.store import Store
from g3nn.studies.suite_file import load_suite

Damage = Callable[[bytes, Sequence[bytes], random.Random], bytes]


@dataclass(frozen=True)
class Reader:
    """seeds: small inputs that are fine. read: takes an input and an empty folder; a `G3NNError` refuses."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], None]
    damage: Damage = damaged


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _tables(suffix: str) -> list[bytes]:
    found = []
    with _folder() as folder:
        people = range(12)
        for columns in (node_columns(people, labelled=9), edge_columns(people)):
            path = folder / f"table{suffix}"
            _write_book(path, columns) if suffix == ".xlsx" else write(path, columns)
            found.append(path.read_bytes())
    return found


def _write_book(path: Path, columns: dict[str, list[Any]]) -> None:
    book = openpyxl.Workbook()
    for row in [list(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save(path)


def _read_table(content: bytes, folder: Path, suffix: str) -> None:
    """As the nodes of a graph, or as the edges of one that is fine."""
    path, nodes = folder / f"damaged{suffix}", folder / "nodes.csv"
    path.write_bytes(content)
    write(nodes, node_columns(range(12), labelled=9))
    with contextlib.suppress(G3NNError):
        read_tables(path, id="id", label="group", text=["notes"])
        return
    read_tables(nodes, path, id="id", label="group", text=["notes"])


def _table(suffix: str, name: str, damage: Damage = damaged) -> Reader:
    def read(content: bytes, folder: Path) -> None:
        _read_table(content, folder, suffix)

    return Reader(name, lambda: _tables(suffix), read, damage)


def _pickles() -> list[bytes]:
    graph = defaultdict(list, {0: [1, 2], 1: [0], 2: [0]})
    return [framed(pickled_array(np.eye(3, dtype="<f4"))), pickled_csr(), pickle.dumps(graph, protocol=2)]


def _read_pickle(content: bytes, _: Path) -> None:
    with contextlib.suppress(G3NNError):
        array(content, "pickle")
        return
    neighbour_lists(content, "pickle")


@cache
def _model() -> list[bytes]:
    task = g3nn.synthetic(nodes=60, classes=2, degree=4, features=5, labels_per_class=12, val=10, seed=1)
    labels = np.where(np.isin(np.arange(60), task.train), task.labels, -1)
    found = []
    for model in ("sbm-gcn", "lsm-mlp"):
        with warnings.catch_warnings(), _folder() as folder:
            warnings.simplefilter("ignore")
            fitted = g3nn.G3NNClassifier(model=model, ensemble=2, epochs=3, random_state=0)
            fitted.fit(task.features, labels, edges=task.edges).save(folder / "model")
            found.append(packed({path.name: path.read_bytes() for path in sorted((folder / "model").iterdir())}))
    return found


def _damage_model(content: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Mostly with checksums made right again, as somebody hostile would."""
    content = _changed_record(content, chance) if chance.random() < 0.5 else damaged_member(content, others, chance)
    return _signed(content) if chance.random() < 0.9 else content


def _changed_record(content: bytes, chance: random.Random) -> bytes:
    """Some value somewhere in the record is another one."""
    members = unpacked(content)
    record = json.loads(members["model.json"])
    for _ in range(chance.choice((1, 1, 3))):
        _change(record, chance)
    return packed({**members, "model.json": json.dumps(record).encode()})


_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2, 10**7, 10**18, 2**70, -0.5, 1e308, float("nan"), float("inf"), "", "gcn", "\0", "a" * 5000,
    [], {}, [[]], [None], {"a": {}},
)  # fmt: skip


def _change(value: Any, chance: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key = chance.choice(sorted(value)) if isinstance(value, dict) else chance.randrange(len(value))
        if not isinstance(value[key], dict | list) or not value[key] or chance.random() < 0.2:
            if isinstance(value, dict) and chance.random() < 0.2:
                del value[key]
            else:
                value[key] = deepcopy(chance.choice(_VALUES))  # It may be changed itself.
            return
        value = value[key]


def _signed(content: bytes) -> bytes:
    members = unpacked(content)
    try:
        record = json.loads(members["model.json"])
        files = {name: hashlib.sha256(part).hexdigest() for name, part in members.items() if name != "model.json"}
        record = {**record, "files": files}
        record.pop("checksum", None)
        record["checksum"] = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    except (ValueError, TypeError, RecursionError):
        return content
    return packed({**members, "model.json": json.dumps(record).encode()})


def _read_model(content: bytes, folder: Path) -> None:
    for name, part in unpacked(content).items():
        (folder / name).write_bytes(part)
    g3nn.load_model(folder).predict()


def _suites() -> list[bytes]:
    folder = Path(g3nn.__file__).parent / "studies" / "suites"
    suites = [sorted(suite.glob("*.toml")) for suite in sorted(folder.iterdir()) if suite.is_dir()]
    return [packed({path.name: path.read_bytes() for path in paths}) for paths in suites if paths]


def _read_suite(content: bytes, folder: Path) -> None:
    for name, part in unpacked(content).items():
        (folder / name).write_bytes(part)
    load_suite(str(folder))


@cache
def _stores() -> list[bytes]:
    """Three trainings of two models, one with what a page shows of it."""
    point = Point("cora", "standard", "sbm-gcn", "elbo", {"eta": 1.0, "learn_p": True, "hidden": 16})
    training = Record(point, "trial", 0, "ab" * 8, "stopped", 0.3, 0.75, 0.7, 300, 100, 0.125)
    bins = [Bin(0.0, 0.5, 3, 0.4, 0.5), Bin(0.5, 1.0, 7, 0.8, 0.75)]
    seen = Evidence(1000, 0.9, 0.03, 0.4, [1, 11], {"loss": [2.0, 1.5]}, bins, bins, [[3, 1], [0, 4]])
    other = replace(training, point=replace(point, model="gcn"), stage="select", test_accuracy=None)
    with _folder() as folder:
        with contextlib.closing(Store.open(folder / "store.sqlite")) as store:
            store.append([replace(training, evidence=seen), replace(training, seed=1), other])
        return [(folder / "store.sqlite").read_bytes()]


def _read_store(content: bytes, folder: Path) -> None:
    (folder / "store.sqlite").write_bytes(content)
    with contextlib.closing(Store.read(folder / "store.sqlite")) as store:
        store.records(evidence=True)
        store.environments()


def _requests() -> list[bytes]:
    who = {"session": "one", "person": "Ann", "request": "r1"}
    asked = [("GET", name, {}) for name in ("state", "node?node=p3", "why?row=2", "answers?start=0", "edges")]
    told = [
        ("POST", "next", who),
        ("POST", "answer", {**who, "node": "p1", "kind": "label", "label": "art", "note": "sure"}),
        ("POST", "undo", who),
        ("POST", "classes", {"name": "tea"}),
        ("POST", "edge", {**who, "source": "p1", "target": "p4", "verdict": "keep"}),
    ]
    lines = [f"{verb} /{TOKEN}/api/{path}\n{json.dumps(body)}" for verb, path, body in [*asked, *told]]
    return [line.encode() for line in lines]


@cache
def _app() -> Any:
    """One project for all requests: what one of them leaves behind must not harm the next."""
    desk = desk_of(Path(tempfile.mkdtemp()))
    desk.project.add_classes(["art", "law"])
    return app_of(desk)


def _read_request(content: bytes, _: Path) -> None:
    """The first line is the request, the rest its body. An answer with 500 is a finding."""
    first, _, body = content.partition(b"\n")
    verb, _, path = first.partition(b" ")
    if status_of(_app(), path, verb.decode("latin1").upper(), body) == 500:
        raise RuntimeError("the server answers 500")


READERS = {
    reader.name: reader
    for reader in (
        _table(".csv", "csv"),
        _table(".parquet", "parquet"),
        _table(".xlsx", "xlsx", damaged_member),
        Reader("pickle", _pickles, _read_pickle),
        Reader("model", _model, _read_model, _damage_model),
        Reader("suite", _suites, _read_suite, damaged_member),
        Reader("store", _stores, _read_store),
        Reader("requests", _requests, _read_request),
    )
}


def inputs(reader: Reader, seed: int, start: int, count: int) -> Iterator[bytes]:
    """The damaged inputs with these numbers; the same seed and number give the same input."""
    seeds = reader.seeds()
    for number in range(start, start + count):
        chance = random.Random(f"{reader.name} {seed} {number}")
        yield reader.damage(chance.choice(seeds), seeds, chance)
