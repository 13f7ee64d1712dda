from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from g3nn.studies.records import Record
from g3nn.studies.store import Store
from g3nn.studies.suite_file import load_suite

SUITE = """
title = "Tiny"
source = "nowhere"
objectives = ["elbo"]

[protocol]
trials = 2
selection_seeds = 1
finalists = 1
finalist_seeds = 1

[fixed]
epochs = 2
patience = 2
hidden = 4

[axes]
lr = [0.01, 0.1]

[[grids]]
models = ["gcn", "mlp"]
axes = ["lr"]

[[tables]]
name = "1"
setting = "standard"
cells = [
    { model = "mlp", dataset = "cora", published = 0.5, published_std = 0.01 },
    { model = "gcn", dataset = "cora", published = 0.8 },
]
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("suite") / "tiny.toml"
    file.write_text(SUITE, encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def filled(suite, tmp_path_factory) -> Path:
    """A store with everything the suite asks for."""
    from g3nn.studies.executors import LocalExecutor
    from g3nn.studies.run import run

    file = tmp_path_factory.mktemp("store") / "runs.sqlite"
    run(load_suite(suite), file, LocalExecutor("cpu"))
    return file


def rows(path: Path) -> list[Record]:
    with Store.read(path) as store:
        return [replace(record, seconds=0) for record in store.records(evidence=True)]


class TestRun:
    def test_json(self, run_command, suite, tmp_path, filled):
        file = tmp_path / "runs.sqlite"
        ran = run_command("bench", "run", suite, "--store", str(file), "--device", "cpu", "--json")
        assert ran.code == 0
        told = json.loads(ran.out)
        assert (told["suite"], told["stacks"], told["trainings"]) == ("tiny", 4, 8)
        assert (told["failures"], told["diverged"], told["store"]) == ([], 0, str(file))
        assert len([line for line in ran.err.splitlines() if line.startswith("[")]) == 4
        assert rows(file) == rows(filled)

    def test_a_part_with_more_trials(self, run_command, suite, tmp_path):
        file = tmp_path / "runs.sqlite"
        words = ("--only", "model=gcn", "--only", "dataset=cora", "--trials", "3", "--device", "cpu")
        ran = run_command("bench", "run", suite, "--store", str(file), *words)
        assert ran.code == 0
        assert "2 stacks, 5 trainings" in ran.out
        assert {record.point.model for record in rows(file)} == {"gcn"}

    def test_nothing_to_do(self, run_command, suite, filled):
        before = rows(filled)
        ran = run_command("bench", "run", suite, "--store", str(filled), "--json")
        assert (ran.code, ran.err) == (0, "")
        assert json.loads(ran.out)["trainings"] == 0
        assert rows(filled) == before

    def test_an_interrupt_is_a_word_on_how_to_go_on(self, run_command, suite, tmp_path, monkeypatch):
        def run(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(import_module("g3nn.studies.run"), "run", run)
        ran = run_command("bench", "run", suite, "--store", str(tmp_path / "runs.sqlite"))
        assert (ran.code, ran.out) == (130, "")
        assert ran.err == "Finished trainings are stored: the same command goes on from there.\ninterrupted\n"

    def test_a_lack_of_memory_is_noted_and_over_by_the_next_run(self, run_command, suite, tmp_path, monkeypatch):
        file = tmp_path / "runs.sqlite"
        words = ("bench", "run", suite, "--store", str(file), "--only", "model=mlp", "--device", "cpu")

        def fit(*_: object, **__: object) -> None:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000 bytes.")

        with monkeypatch.context() as short:
            short.setattr(import_module("g3nn.studies.job"), "fit", fit)
            ran = run_command(*words)
        assert ran.code == 1
        assert "note: select mlp [elbo] on cora standard: 2 failed: no memory left on cpu (RuntimeError: " in ran.err
        assert "run the same command again" in ran.err
        assert rows(file) == []
        ran = run_command(*words)
        assert (ran.code, "note" in ran.err) == (0, False)
        assert {record.status for record in rows(file)} == {"limit"}

    def test_failures_are_noted(self, run_command, suite, tmp_path):
        file = tmp_path / "runs.sqlite"
        loaded = load_suite(suite)
        (entry,) = loaded.entries({"model": "mlp"})
        first, second = loaded.points(entry)
        ended: dict[str, Any] = {"val_loss": None, "val_accuracy": None, "test_accuracy": None}
        failed = Record(
            first, "select", 1000, "s", "failed", **ended, epochs=0, best_epoch=0, seconds=0, error="Bad: x"
        )
        with Store.open(file) as store:
            store.append([failed, replace(failed, point=second, status="diverged", error="")])
        words = ("--only", "model=mlp", "--device", "cpu", "--json")
        ran = run_command("bench", "run", suite, "--store", str(file), *words)
        assert ran.code == 1
        notes = [line for line in ran.err.splitlines() if line.startswith("note: ")]
        assert notes == [
            "note: select mlp [elbo] on cora standard: 1 failed: Bad: x",
            "note: 1 trainings diverged",
        ]
        assert json.loads(ran.out)["failures"][0]["error"] == "Bad: x"


class TestTable:
    def test_a_link_stays_one(self, run_command, suite, filled, tmp_path):
        link, file = tmp_path / "link", tmp_path / "table.txt"
        link.symlink_to(file)
        assert run_command("bench", "table", suite, "--store", str(filled), "--out", str(link)).code == 0
        assert link.is_symlink()
        assert "cora" in file.read_text(encoding="utf-8")

    def test_json(self, run_command, suite, filled):
        ran = run_command("bench", "table", suite, "--store", str(filled), "--format", "json")
        assert (ran.code, ran.err) == (0, "")
        table = json.loads(ran.out)
        assert table["suite"] == "tiny"
        assert [(cell["model"], cell["published"], cell["trials"]) for cell in table["cells"]] == [
            ("mlp", 0.5, 2),
            ("gcn", 0.8, 2),
        ]
        promised = {"table", "dataset", "setting", "objective", "published_std", "mean", "std", "difference"}
        assert all(promised | {"significant"} <= set(cell) for cell in table["cells"])

    def test_a_file_holds_what_would_be_printed(self, run_command, suite, filled, tmp_path):
        for form in ["text", "markdown", "latex", "json"]:
            file = tmp_path / "table.txt"
            words = ("bench", "table", suite, "--store", str(filled), "--format", form)
            printed = run_command(*words)
            written = run_command(*words, "--out", str(file))
            assert (written.code, written.out, written.err) == (0, "", "")
            assert "cora" in printed.out
            assert file.read_text(encoding="utf-8") == printed.out
            assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]

    def test_a_part(self, run_command, suite, filled):
        words = ("--only", "model=mlp", "--format", "json")
        table = json.loads(run_command("bench", "table", suite, "--store", str(filled), *words).out)
        assert [cell["model"] for cell in table["cells"]] == ["mlp"]


class TestReport:
    def test_a_page(self, run_command, suite, filled, tmp_path):
        file = tmp_path / "page.html"
        ran = run_command("bench", "report", suite, "--store", str(filled), "--out", str(file))
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == f"report in {file}\n"
        page = file.read_text(encoding="utf-8")
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert "Tiny" in page
        assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


class TestMerge:
    def test_records_are_gathered(self, run_command, suite, filled, tmp_path):
        parts = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
        for part, model in zip(parts, ("mlp", "gcn"), strict=True):
            words = ("--only", f"model={model}", "--device", "cpu", "--json")
            assert run_command("bench", "run", suite, "--store", str(part), *words).code == 0
        whole = tmp_path / "whole.sqlite"
        words = ("bench", "merge", "--into", str(whole), *map(str, parts))
        assert json.loads(run_command(*words, "--json").out) == {"added": 8, "present": 0, "conflicts": 0}
        assert run_command(*words).out == "0 records added, 8 already present\n"
        assert rows(whole) == rows(filled)

    def test_other_results_are_noted(self, run_command, filled, tmp_path):
        other = tmp_path / "other.sqlite"
        with Store.open(other) as store:
            store.append([replace(record, split="another") for record in rows(filled)])
        ran = run_command("bench", "merge", "--into", str(other), str(filled))
        assert ran.out == "0 records added, 0 already present\n"
        assert ran.err == "note: 8 already present with another result, which stays\n"


class TestSuites:
    def test_json(self, run_command):
        ran = run_command("bench", "suites", "--json")
        assert (ran.code, ran.err) == (0, "")
        paper = next(row for row in json.loads(ran.out) if row["name"] == "paper")
        assert "NeurIPS 2019" in paper["source"]

    def test_for_people(self, run_command):
        assert any(line.startswith("paper: ") for line in run_command("bench", "suites").out.splitlines())


FULL = "/dev/full"
full_device = pytest.mark.skipif(not Path(FULL).is_char_device(), reason="only Linux has a device that is always full")

RUN, TABLE, REPORT = ("bench", "run"), ("bench", "table"), ("bench", "report")


class TestBadInput:
    def test_one_clear_line_and_code_2(self, run_command, suite, filled):
        for command, words, texts in [
            (RUN, ("--only", "datset=cora"), ["datset", "'dataset'"]),
            (RUN, ("--only", "dataset=coraa"), ["coraa", "'cora'"]),
            (RUN, ("--only", "dataset"), ["KEY=VALUE"]),
            (RUN, ("--trials", "0"), ["trials", "at least 1"]),
            (RUN, ("--device", "cup"), ["device", "'cpu'"]),
            (RUN, ("--executor", "rai"), ["executor", "'ray'"]),
            (RUN, ("--workers", "0"), ["workers", "at least 1"]),
            (TABLE, ("--format", "latx"), ["format", "'latex'"]),
            (TABLE, ("--only", "model=gnc"), ["model", "'gcn'"]),
            (TABLE, ("--out", "nowhere/table.txt"), ["out", "folder"]),
            (REPORT, ("--out", "nowhere/page.html"), ["out", "folder"]),
            (REPORT, ("--out", "."), ["out", "folder"]),
        ]:
            ran = run_command(*command, suite, "--store", str(filled), *words)
            assert (ran.code, ran.out) == (2, "")
            (line,) = ran.err.splitlines()
            assert line.startswith("error: ")
            for text in texts:
                assert text in line

    def test_the_page_may_not_replace_the_store(self, run_command, suite, filled):
        before = filled.read_bytes()
        ran = run_command("bench", "report", suite, "--store", str(filled), "--out", str(filled))
        assert (ran.code, ran.out) == (2, "")
        assert "another file than the store" in ran.err
        assert filled.read_bytes() == before

    def test_all_problems_at_once_and_nothing_written(self, run_command, tmp_path):
        file = tmp_path / "notes.txt"
        file.write_text("not a store", encoding="utf-8")
        words = ("--only", "dataset", "--device", "cup", "--executor", "rai", "--workers", "0")
        ran = run_command("bench", "run", "papr", "--store", str(file), *words)
        assert (ran.code, ran.out) == (2, "")
        first, *rest = ran.err.splitlines()
        assert first.startswith("error: 6 problems")
        for name in ("--only", "suite", "device", "executor", "workers", "store"):
            assert sum(f"- {name}: " in line for line in rest) == 1, name
        assert "Did you mean 'paper'?" in ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
        assert file.read_text(encoding="utf-8") == "not a store"

    def test_a_store_that_is_not_there_is_not_made(self, run_command, suite, tmp_path):
        for command in [TABLE, REPORT]:
            words = ("--out", str(tmp_path / "out")) if command == REPORT else ()
            ran = run_command(*command, suite, "--store", str(tmp_path / "runs.sqlite"), *words)
            assert (ran.code, ran.out) == (2, "")
            assert "store" in ran.err
            assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_is_not_made(self, run_command, suite, tmp_path):
        ran = run_command("bench", "run", suite, "--store", str(tmp_path / "deep" / "runs.sqlite"))
        assert (ran.code, ran.out) == (2, "")
        assert "folder" in ran.err
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_may_not_be_looked_into(self, run_command, suite, filled, tmp_path, monkeypatch):
        closed = tmp_path / "closed"
        closed.mkdir()
        inside = str(closed / "file")

        def refusing(call: Any) -> Any:
            def refuse(path: Any, *words: Any, **options: Any) -> Any:
                if str(path).startswith(f"{closed}/"):
                    raise PermissionError(errno.EACCES, "Permission denied", str(path))
                return call(path, *words, **options)

            return refuse

        for name in ("stat", "mkdir", "open"):
            monkeypatch.setattr(os, name, refusing(getattr(os, name)))
        for words in [("run", suite, "--store", inside), ("table", suite, "--store", str(filled), "--out", inside)]:
            ran = run_command("bench", *words)
            assert (ran.code, ran.out) == (2, "")
            (line,) = ran.err.splitlines()
            assert line.startswith("error: ")
            assert inside in line

    @full_device
    def test_a_full_disk(self, run_command, suite, filled, tmp_path):
        device = tmp_path / "device"
        device.symlink_to(FULL)
        ran = run_command("bench", "table", suite, "--store", str(filled), "--out", str(device))
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        assert line.startswith(f"error: {device}: cannot be written: ")
        assert "No space left" in line
        assert device.is_char_device(), "the device was replaced by a file"

    @full_device
    def test_a_full_disk_behind_standard_output(self):
        with open(FULL, "w") as out:
            command = [sys.executable, "-m", "g3nn", "bench", "suites"]
            ran = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
        assert ran.returncode == 2
        (line,) = ran.stderr.splitlines()
        assert line.startswith("error: standard output: No space left")

    def test_merging_what_is_no_store(self, run_command, filled, tmp_path):
        missing, into = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
        ran = run_command("bench", "merge", "--into", str(into), str(filled), str(missing))
        assert (ran.code, ran.out) == (2, "")
        assert str(missing) in ran.err
        assert not into.exists()

    def test_bad_usage(self, run_command):
        for words in [("bench", "run", "paper"), ("bench", "rnu")]:
            ran = run_command(*words)
            assert (ran.code, ran.out) == (2, "")
            assert "Traceback" not in ran.err

    def test_help(self, run_command):
        for command in ["", "run"]:
            ran = run_command("bench", *filter(None, [command]), "--help")
            assert ran.code == 0
            assert "Usage" in ran.out
