"""What is killed, and how to see that nothing is lost: one class for each kind of process that writes."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import shutil
import signal
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from small_suite import SUITE
from small_tables import edge_columns, node_columns, write

import g3nn
from g3nn import cli
from g3nn.base.errors import DataError, G3NNWarning, Problems
from g3nn.base.folders import mend, swapped
from g3nn.cli.results import check_out
from g3nn.estimator import saving
from g3nn.studies.records import Environment, Point, Record
from g3nn.studies.store import Store
from g3nn.training.checkpoint import check_folder

Begun = Callable[[], None]
Looked = tuple[str, list[str]]
BEFORE, WHILE, AFTER = "before", "while", "after"


class Case:
    """One kind of process. places: how many places it writes to in turn."""

    name, places = "", 1

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log.txt"

    def prepare(self) -> None:
        """Once, in the process from which all others are forked: what should come out, and what they need."""

    def begin(self, number: int) -> None:
        """Before each life."""

    def live(self, begun: Begun) -> None:
        """What the process does. begun: called when that begins which is to be killed."""

    def drive(self, life: Any, kind: str | None, share: float, until: float) -> None:
        """What others do meanwhile."""

    def writing(self) -> bool:
        """Whether results are being written, as seen from outside."""
        return False

    def look(self, ended: bool) -> Looked:
        """Where the kill has hit, and what is wrong with what it left. ended: nobody killed it."""
        raise NotImplementedError


def command(*words: object) -> None:
    """`g3nn` with these words, in this process."""
    sys.argv = ["g3nn", *map(str, words)]
    cli.main()


def quietly(*words: object) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            command(*words)
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{words} ended with {end.code}") from end


def rooms(*folders: Path) -> list[Path]:
    """Drafts that a killed process left."""
    return [entry for folder in folders if folder.is_dir() for entry in folder.iterdir() if is_room(entry)]


def is_room(entry: Path) -> bool:
    return entry.name.startswith(".") and entry.suffix in (".part", ".whole")


def age(found: list[Path]) -> None:
    """As if the kill was an hour ago: what is quite new may still be in use."""
    for room in found:
        os.utime(room, (time.time() - 3600,) * 2)


def content(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if not is_room(entry)) if folder.is_dir() else []


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_next(out: Path, faults: list[str]) -> None:
    """What the next command for the same place does first. It deletes what was left, and nothing else."""
    before = content(out)
    age(rooms(out.parent, out))
    problems = Problems()
    check_out(out, [], False, problems)
    faults += [str(problem) for problem in problems.found if not before]
    if left := rooms(out.parent, out):
        faults.append(f"left behind for ever: {[str(room.relative_to(out.parent)) for room in left]}")
        for room in left:
            shutil.rmtree(room)
    if content(out) != before:
        faults.append(f"{before} became {content(out)} by looking whether anything can be written there")


class Fit(Case):
    """`g3nn fit` into a new folder, an empty one, and a file that holds an earlier result."""

    name, places = "fit", 3
    NAMES = ("edges.parquet", "labels.parquet", "model", "predictions.parquet", "report.html")
    PEOPLE = range(24)
    EARLIER = b"id,label\n"

    def prepare(self) -> None:
        self.nodes = write(self.folder / "nodes.csv", node_columns(self.PEOPLE, labelled=18))
        self.edges = write(self.folder / "edges.csv", edge_columns(self.PEOPLE))
        for name in ("alone", "alone.csv"):
            quietly(*self._words(self.folder / name))
        self.expected = files_of(self.folder / "alone")
        self.answers = (self.folder / "alone.csv").read_bytes()

    def _words(self, out: Path) -> list[object]:
        tables = ["--nodes", self.nodes, "--edges", self.edges, "--id", "id", "--label", "group", "--text", "notes"]
        return [
            "fit",
            *tables,
            "--model",
            "gcn",
            "--ensemble",
            1,
            "--device",
            "cpu",
            "--no-audit",
            "--quiet",
            "--out",
            out,
        ]

    def begin(self, number: int) -> None:
        kind = ("new", "empty", "answers.csv")[number % 3]
        (self.folder / kind).mkdir(exist_ok=True)
        self.out = self.folder / kind / kind
        if kind == "empty":
            self.out.mkdir(exist_ok=True)
        if kind == "answers.csv":
            self.out.write_bytes(self.EARLIER)

    def live(self, begun: Begun) -> None:
        begun()
        command(*self._words(self.out))

    def writing(self) -> bool:
        name = self.out.name
        drafts = [*self.out.parent.glob(f".{name}.*.part/{name}"), *self.out.glob(".g3nn.*.part")]
        with contextlib.suppress(FileNotFoundError):  # One may be moved to its place meanwhile.
            return any(
                (draft / "model").exists() or (draft.is_file() and draft.stat().st_size > 10) for draft in drafts
            )
        return True

    def look(self, ended: bool) -> Looked:
        faults: list[str] = []
        left = rooms(self.out.parent, self.out)
        whole = self._file(faults) if self.out.suffix else self._folder(faults)
        check_next(self.out, faults)
        if ended and not whole:
            faults.append(f"no result: {self.log.read_text()[-500:]}")
        if whole and not self.out.suffix:
            shutil.rmtree(self.out)
        return AFTER if whole else WHILE if left else BEFORE, faults

    def _file(self, faults: list[str]) -> bool:
        found = self.out.read_bytes() if self.out.exists() else b""
        if found not in (self.EARLIER, self.answers):
            faults.append(f"half a file: {found[:100]!r}")
        return found == self.answers

    def _folder(self, faults: list[str]) -> bool:
        if self.out.parent.name == "empty" and not self.out.is_dir():
            faults.append("the folder is gone")
        try:
            probabilities = g3nn.load_model(self.out).predict_proba()
        except DataError as error:
            if content(self.out):
                faults.append(f"half a result, {content(self.out)}: {error}")
                shutil.rmtree(self.out)
            return False
        found = files_of(self.out)
        if content(self.out) != list(self.NAMES) or not found["report.html"].rstrip().endswith(b"</html>"):
            faults.append(f"half a result: {content(self.out)}")
        for name in ("predictions.parquet", "edges.parquet", "model/model.safetensors"):
            if found.get(name) != self.expected[name]:
                faults.append(f"{name} is not as it should be")
        if not np.isfinite(probabilities).all() or pq.read_table(self.out / "predictions.parquet").num_rows != len(
            self.PEOPLE
        ):
            faults.append("answers are missing")
        return True


class Save(Case):
    """Two models saved in turn, into a new folder, an empty one, and in the place of the other as `g3nn label` does."""

    name, places, rounds, had = "save", 3, 12, False

    def prepare(self) -> None:
        task = g3nn.synthetic(nodes=60, classes=2, degree=4, features=5, labels_per_class=12, val=10, seed=1)
        labels = np.where(np.isin(np.arange(60), task.train), task.labels, -1)
        self.models, self.records = [], []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", G3NNWarning)
            for model in ("gcn", "sbm-gcn"):
                fitted = g3nn.G3NNClassifier(model=model, ensemble=1, epochs=3, random_state=0)
                self.models.append(fitted.fit(task.features, labels, edges=task.edges))
                self.models[-1].save(self.folder / model)
                self.records.append(saving.read_archive(self.folder / model)[0])

    def begin(self, number: int) -> None:
        self.kind = ("new", "empty", "swapped")[number % 3]
        (self.folder / self.kind).mkdir(exist_ok=True)
        self.out = self.folder / self.kind / self.kind

    def live(self, begun: Begun) -> None:
        begun()
        for number, model in enumerate(islice(cycle(self.models), self.rounds)):
            if self.kind == "swapped":
                with swapped(self.out) as draft:
                    model.save(draft)
                continue
            if self.kind == "empty":
                self.out.mkdir(exist_ok=True)
            model.save(self.out)
            if number < self.rounds - 1:
                os.rename(self.out, self.out.with_name(f"done-{number}"))

    def writing(self) -> bool:
        return bool(rooms(self.out.parent, self.out))

    def look(self, ended: bool) -> Looked:
        faults: list[str] = []
        left = rooms(self.out.parent, self.out)
        if self.kind == "swapped":
            mend(self.out)
        found = [self._loaded(folder, faults) for folder in [self.out, *self.out.parent.glob("done-*")]]
        check_next(self.out, faults)
        if ended and not found[0]:
            faults.append("no model")
        if self.kind == "swapped":
            if self.had and not found[0]:
                faults.append("neither the former nor the new model is there")
            self.had = found[0]
            if ended and (former := [*self.out.parent.glob(".*.former")]):
                faults.append(f"left behind: {former[0].name}")
        else:
            shutil.rmtree(self.out.parent)
        return WHILE if left else AFTER if any(found) else BEFORE, faults

    def _loaded(self, folder: Path, faults: list[str]) -> bool:
        try:
            record = saving.read_archive(folder)[0]
            g3nn.load_model(folder).predict()
        except DataError as error:
            if content(folder):
                faults.append(f"half a model, {content(folder)}: {error}")
            return False
        if record not in self.records:
            faults.append("neither of the two models")
        return True


def rows_of(store: Path) -> dict[tuple[str, str, int], Record]:
    """Everything but the time it took."""
    if not store.exists():
        return {}
    with Store.read(store) as held:
        found = held.records(evidence=True)
    return {(one.point.key, one.stage, one.seed): replace(one, seconds=0) for one in found}


class Bench(Case):
    """`g3nn bench run`, which goes on where it was."""

    name = "bench"

    def prepare(self) -> None:
        self.suite = self.folder / "small.toml"
        self.suite.write_text(SUITE, encoding="utf-8")
        quietly(*self._words("alone.sqlite"))
        self.expected, self.had = rows_of(self.folder / "alone.sqlite"), dict[Any, Record]()
        (self.folder / "here").mkdir()
        self.store = self.folder / "here" / "killed.sqlite"

    def _words(self, store: str) -> list[object]:
        return ["bench", "run", self.suite, "--device", "cpu", "--store", self.folder / store]

    def live(self, begun: Begun) -> None:
        begun()
        command(*self._words("here/killed.sqlite"))

    def writing(self) -> bool:
        return self.store.with_name("killed.sqlite-journal").exists()

    def look(self, ended: bool) -> Looked:
        return self._seen(ended, self.expected)

    def _seen(self, ended: bool, expected: dict[Any, Record]) -> Looked:
        beside = {path.name for path in self.store.parent.iterdir()} - {self.store.name}
        faults: list[str] = []
        try:
            rows = rows_of(self.store)
        except DataError as error:
            return WHILE, [str(error)]
        if lost := self.had.keys() - rows.keys():
            faults.append(f"{len(lost)} rows are lost")
        if wrong := [key for key, row in rows.items() if expected.get(key) != row]:
            faults.append(f"{len(wrong)} rows are wrong, such as {rows[wrong[0]]}")
        age(rooms(self.store.parent))
        grown = len(rows) > len(self.had)
        self.had = rows
        if ended:
            if rows.keys() != expected.keys():
                faults.append(f"{len(rows)} of {len(expected)} rows")
            if left := sorted({path.name for path in self.store.parent.iterdir()} - {self.store.name}):
                faults.append(f"left behind: {left}")
            self._again()
        return (WHILE if beside else AFTER if grown else BEFORE), faults

    def _again(self) -> None:
        shutil.rmtree(self.store.parent)
        self.store.parent.mkdir()
        self.had = {}


class Merge(Bench):
    """`g3nn bench merge` of three stores into a new one, or into one that holds rows."""

    name, places, each = "merge", 2, 400

    def prepare(self) -> None:
        (self.folder / "here").mkdir()
        self.store = self.folder / "here" / "killed.sqlite"
        self.parts = [self.folder / f"{part}.sqlite" for part in range(3)]
        for part, path in enumerate(self.parts):
            # Some rows are in two stores.
            write_rows(path, range(part * self.each - 50, (part + 1) * self.each))
        quietly(*self._merge(self.folder / "alone.sqlite"))
        self.expected, self.own, self.had = rows_of(self.folder / "alone.sqlite"), dict[Any, Record](), {}

    def _merge(self, into: Path) -> list[object]:
        return ["bench", "merge", *self.parts, "--into", into]

    def begin(self, number: int) -> None:
        if number % 2 and not self.store.exists():
            write_rows(self.store, range(5000, 5100))
            self.own = self.had = rows_of(self.store)

    def live(self, begun: Begun) -> None:
        begun()
        command(*self._merge(self.store))

    def look(self, ended: bool) -> Looked:
        had = self.had
        phase, faults = self._seen(ended, {**self.expected, **self.own})
        if self.had not in (had, {}) and len(self.had) != len(self.expected) + len(self.own):
            faults.append(f"some rows, {len(self.had)}, not all {len(self.expected)}")
        if phase == AFTER or len(self.had) > len(self.own):
            self._again()
        return phase, faults

    def _again(self) -> None:
        super()._again()
        self.own = {}


def write_rows(path: Path, seeds: range) -> None:
    rows = []
    for seed in seeds:
        point = Point("cora", "standard", "gcn", "elbo", {"eta": seed % 40, "text": "x" * 200})
        rows.append(Record(point, "trial", seed, "ab" * 8, "stopped", 0.5, 0.75, seed / 1e4, 300, 100, 0.0))
    with Store.open(path, environment=Environment({"g3nn": "1"}, {"device": "cpu"})) as store:
        store.append(rows)


class Label(Case):
    """The page of `g3nn label` while people answer: what was confirmed is there, and once."""

    name, rounds = "label", 40

    def prepare(self) -> None:
        self.sent: dict[str, dict[str, Any]] = {}
        self.sure: set[str] = set()
        self.open: dict[str, Any] | None = None

    def live(self, begun: Begun) -> None:
        from label_desk import app_of, desk_of

        from g3nn.labelling.server import listening, serve

        begun()
        desk = desk_of(self.folder)
        desk.project.add_classes(["art", "law", "tea"])
        listener = listening(0)

        def ready() -> None:
            draft = self.folder / "port.new"
            draft.write_text(str(listener.getsockname()[1]))
            draft.rename(self.folder / "port")

        serve(app_of(desk), listener, ready)

    def begin(self, number: int) -> None:
        (self.folder / "port").unlink(missing_ok=True)

    def writing(self) -> bool:
        return True

    def drive(self, life: Any, kind: str | None, share: float, until: float) -> None:
        """Send answers one by one, first that which was not confirmed, until somebody dies."""
        self.answered, self.pending = 0, False
        if not life.until((self.folder / "port").exists):
            return
        port = int((self.folder / "port").read_text())

        def kill(*_: Any) -> None:
            os.kill(life.pid, signal.SIGKILL)

        former = signal.signal(signal.SIGALRM, kill)
        at = int(share * self.rounds)
        try:
            if kind == "moment":
                signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 1e-4))
            for number, told in enumerate(islice(self._answers(), self.rounds)):
                if kind == "writing" and number == at:
                    signal.setitimer(signal.ITIMER_REAL, 1e-4 + (share * self.rounds % 1) * 0.01)
                if not self._post(port, told):
                    break
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        if kind is None and not life.over():
            os.kill(life.pid, signal.SIGINT)
        elif kind == "step" and not life.over():
            life.kill()

    def _answers(self) -> Iterator[dict[str, Any]]:
        if self.open is not None:
            yield self.open
        while True:
            place = len(self.sent)
            who = {"session": f"s{place % 2}", "person": ("Ann", "Bob")[place % 2], "request": uuid.uuid4().hex}
            if place % 9 == 8:
                yield {**who, "path": "edge", "source": f"p{place % 60}", "target": "p3", "verdict": "keep"}
            kind = ("label", "label", "skip", "unknown")[place % 4]
            label = {"label": ("art", "law", "tea")[place % 3]} if kind == "label" else {}
            node, note = f"p{place * 7 % 60}", f"note {place}"
            yield {
                **who,
                "request": uuid.uuid4().hex,
                "path": "answer",
                "node": node,
                "kind": kind,
                "note": note,
                **label,
            }

    def _post(self, port: int, told: dict[str, Any]) -> bool:
        """Whether it was confirmed; False if the server died."""
        self.sent[told["request"]] = self.open = told
        self.pending = True
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            body = json.dumps({name: value for name, value in told.items() if name != "path"})
            connection.request("POST", f"/token/api/{told['path']}", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        assert answer.status == 200, answer.status
        self.sure.add(told["request"])
        self.open, self.pending = None, False
        self.answered += 1
        return True

    def look(self, ended: bool) -> Looked:
        from g3nn.labelling.project import Project

        faults: list[str] = []
        if not (self.folder / "project" / "project.sqlite").exists():
            return BEFORE, [f"{len(self.sure)} answers are lost"] if self.sure else []
        with Project.open(self.folder / "project") as project:
            rows, verdicts = project.history(), project.verdicts()
        given = [row["request"] for row in rows]
        answers = {one for one in self.sure if self.sent[one]["path"] == "answer"}
        if lost := answers - set(given):
            faults.append(f"{len(lost)} confirmed answers are lost")
        if len(given) != len(set(given)) or not set(given) <= set(self.sent):
            faults.append("answers are there twice, or nobody gave them")
        for row in rows:
            told = self.sent[row["request"]]
            if any(row[name] != told.get(name) for name in ("node", "kind", "label", "note", "person", "session")):
                faults.append(f"{told} became {row}")
        judged = {(one["source"], one["target"]) for key in self.sure if (one := self.sent[key])["path"] == "edge"}
        if not judged <= set(verdicts):
            faults.append("confirmed verdicts are lost")
        return WHILE if self.pending else AFTER if self.answered else BEFORE, faults


class Checkpoint(Case):
    """A training that keeps checkpoints, in batches and not: it ends with the same bits."""

    name, places = "checkpoint", 2

    def prepare(self) -> None:
        self.task = g3nn.synthetic(nodes=120, classes=3, degree=6, features=8, labels_per_class=8, val=20, seed=1)
        self.expected = [self._bits(place, None) for place in range(2)]
        self.epochs = dict[str, int]()

    def _bits(self, place: int, kept: Path | None) -> bytes:
        how: dict[str, Any] = {"batch": 8, "fan_out": "4/3", "trials": 2} if place == 0 else {"trials": 1}
        options: dict[str, Any] = {"epochs": 30, "hidden": 6, "device": "cpu", "checkpoint_every": 0}
        result = g3nn.fit(self.task, "sbm-gcn", **how, **options, checkpoint=kept)
        return b"".join(np.asarray(part).tobytes() for part in (result.answers, result.history, result.val_loss))

    def begin(self, number: int) -> None:
        self.place = number % 2
        self.kept, self.bits = self.folder / f"kept-{self.place}", self.folder / "bits"
        self.bits.unlink(missing_ok=True)

    def live(self, begun: Begun) -> None:
        begun()
        self.bits.write_bytes(self._bits(self.place, self.kept))

    def writing(self) -> bool:
        return bool(rooms(self.kept))

    def look(self, ended: bool) -> Looked:
        from safetensors.torch import load_file

        faults: list[str] = []
        left, grown = rooms(self.kept), False
        for name in content(self.kept):
            epoch = len(load_file(self.kept / name)["history"])
            key = f"{self.kept.name}/{name}"
            if epoch < self.epochs.get(key, 0):
                faults.append(f"{key} fell back from epoch {self.epochs[key]} to {epoch}")
            grown, self.epochs[key] = grown or epoch > self.epochs.get(key, 0), epoch
        if ended:
            if not self.bits.exists() or self.bits.read_bytes() != self.expected[self.place]:
                faults.append("not the same bits")
            if left:
                faults.append(f"left behind: {[room.name for room in left]}")
            shutil.rmtree(self.kept)
            self.epochs = {key: epoch for key, epoch in self.epochs.items() if not key.startswith(self.kept.name)}
        elif self.kept.exists():
            age(left)
            check_folder(self.kept, 0)
        return WHILE if left else AFTER if grown else BEFORE, faults


CASES: dict[str, type[Case]] = {case.name: case for case in (Fit, Save, Bench, Merge, Label, Checkpoint)}
