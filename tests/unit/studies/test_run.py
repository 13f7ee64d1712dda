from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rich.progress

from g3nn.base.errors import DeviceMemoryError
from g3nn.graph.task import NodeTask
from g3nn.studies import executors
from g3nn.studies.comparison import compare
from g3nn.studies.executors import LocalExecutor
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Record
from g3nn.studies.run import run
from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Protocol, Suite

RunFunction = Callable[[Job, str, NodeTask], list[Record]]


@pytest.fixture(autouse=True)
def _no_data_needed(monkeypatch, learnable):
    executors.task_of.cache_clear()
    monkeypatch.setattr(
        executors, "load", lambda dataset, setting, seed: replace(learnable, name=dataset, setting=setting)
    )


@pytest.fixture
def pretend(make_record) -> RunFunction:
    """Does not train. Every training of the gcn on citeseer fails."""

    def run(job: Job, device: str, task: NodeTask) -> list[Record]:
        changes: dict[str, Any] = {"seconds": 2.0}
        if (job.first.model, job.first.dataset) == ("gcn", "citeseer"):
            changes = {"status": "failed", "error": "TypeError: ", "val_loss": None, "seconds": 0.0}
        elif job.stage == "trial":
            changes["test_accuracy"] = 0.5
        return [make_record(*one, **changes) for one in zip(job.points, [job.stage] * job.size, job.seeds, strict=True)]

    return run


def rows(path: Path) -> list[Record]:
    with Store.read(path) as store:
        return [replace(record, seconds=0) for record in store.records(evidence=True)]


def test_everything_is_trained_once(small_suite, tmp_path, pretend):
    file = tmp_path / "runs.sqlite"
    report = run(small_suite, file, LocalExecutor("cpu", run=pretend))
    held = rows(file)
    assert report.trainings == len(held)
    assert (report.suite, report.diverged) == ("small", 0)
    with Store.read(file) as store:
        cells = compare(small_suite, store).cells
        (environment,) = store.environments()
    assert all(cell.trials + cell.failed == 4 for cell in cells)
    assert environment.hardware["device"] == "cpu"
    again = run(small_suite, file, LocalExecutor("cpu", run=pretend))
    assert (again.stacks, again.trainings) == (0, 0)
    assert rows(file) == held


def test_failures_are_told_each_time_and_not_tried_again(small_suite, tmp_path, pretend):
    for _ in range(2):
        report = run(small_suite, tmp_path / "runs.sqlite", LocalExecutor("cpu", run=pretend))
        (failure,) = report.failures
        assert (failure.model, failure.dataset, failure.trainings) == ("gcn", "citeseer", 4)
        assert str(failure) == "trial gcn [released] on citeseer standard: 4 failed: TypeError: "
    assert report.trainings == 0


def test_what_finds_no_memory_is_tried_again_by_the_next_run(small_suite, tmp_path, pretend, capsys):
    def short(job: Job, device: str, task: NodeTask) -> list[Record]:
        if job.first.model == "sbm-gcn" and job.first.dataset == "cora":
            raise DeviceMemoryError("no memory left on cpu (MemoryError: )")
        return pretend(job, device, task)

    file, whole = tmp_path / "runs.sqlite", tmp_path / "whole.sqlite"
    report = run(small_suite, file, LocalExecutor("cpu", run=short))
    assert {(one.model, one.dataset, one.stage) for one in report.postponed} == {("sbm-gcn", "cora", "select")}
    assert sum(one.trainings for one in report.postponed) > 0
    assert report.trainings == len(rows(file)) > 0
    assert not [record for record in rows(file) if record.point.names[:3] == ("cora", "standard", "sbm-gcn")]
    assert "no memory for" in capsys.readouterr().err
    again = run(small_suite, file, LocalExecutor("cpu", run=pretend))
    run(small_suite, whole, LocalExecutor("cpu", run=pretend))
    assert again.postponed == ()
    assert rows(file) == rows(whole)


def test_records_of_other_suites_are_none_of_its_business(small_suite, tmp_path, make_record, pretend):
    file = tmp_path / "runs.sqlite"
    stranger = replace(small_suite.points(small_suite.entries()[0])[0], dataset="pubmed")
    with Store.open(file) as store:
        failed = {"status": "failed", "error": "x", "val_loss": None}
        store.append(
            [make_record(stranger, "trial", 0, **failed), make_record(stranger, "trial", 1, status="diverged")]
        )
    report = run(small_suite, file, LocalExecutor("cpu", run=pretend), {"dataset": "cora"})
    assert (report.failures, report.diverged) == ((), 0)


def test_diverged_trainings_are_counted(small_suite, tmp_path, make_record):
    def diverging(job: Job, device: str, task: NodeTask) -> list[Record]:
        return [
            make_record(point, job.stage, seed, status="diverged", val_loss=None)
            for point, seed in zip(job.points, job.seeds, strict=True)
        ]

    file, only = tmp_path / "runs.sqlite", {"table": "B"}
    report = run(small_suite, file, LocalExecutor("cpu", run=diverging), only)
    assert (report.trainings, report.diverged) == (4, 4)


def test_a_part_and_another_number_of_trials(small_suite, tmp_path, pretend):
    file = tmp_path / "runs.sqlite"
    place = LocalExecutor("cpu", run=pretend)
    report = run(small_suite.with_trials(2), file, place, {"table": "B"})
    assert (report.stacks, report.trainings) == (1, 2)
    report = run(small_suite.with_trials(5), file, place, {"table": "B"})
    assert (report.stacks, report.trainings) == (1, 3)
    assert [record.seed for record in rows(file)] == [0, 1, 2, 3, 4]


def test_an_interrupted_run_goes_on(small_suite, tmp_path, pretend):
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    run(small_suite, whole, LocalExecutor("cpu", run=pretend))
    interrupts = 0
    while True:
        done = []

        def twice(job: Job, device: str, task: NodeTask, done: list[Job] = done) -> list[Record]:
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(job)
            return pretend(job, device, task)

        try:
            run(small_suite, cut, LocalExecutor("cpu", run=twice))
            break
        except KeyboardInterrupt:
            interrupts += 1
            assert len(done) == 2
    assert interrupts > 2
    assert rows(cut) == rows(whole)
    assert not list(tmp_path.glob("*-journal"))


class TestProgress:
    def test_lines_where_nobody_is_watching(self, small_suite, tmp_path, pretend, capsys):
        file, place = tmp_path / "runs.sqlite", LocalExecutor("cpu", run=pretend)
        report = run(small_suite, file, place, {"table": "A", "objective": "released"})
        printed = capsys.readouterr()
        assert printed.out == ""
        jobs = [line for line in printed.err.splitlines() if line.startswith("[")]
        assert len(jobs) == report.stacks
        assert jobs[-1].startswith(f"[{report.stacks}/{report.stacks}] ")
        assert jobs[-1].endswith("0:00:00 left")
        assert any("trial gcn [released] on citeseer standard: 4 trainings, 4 failed, 0.0 s" in line for line in jobs)
        rounds = [line for line in printed.err.splitlines() if not line.startswith("[")]
        assert all(line.startswith("to do: ") for line in rounds)
        assert rounds[0].startswith(f"to do: {report.trainings} trainings in about ")

    def test_time_left_follows_from_the_time_of_trainings(self, small_suite, tmp_path, pretend, capsys):
        only = {"model": "mlp,gcn", "dataset": "cora"}
        run(small_suite, tmp_path / "runs.sqlite", LocalExecutor("cpu", run=pretend), only)
        first, second = (line for line in capsys.readouterr().err.splitlines() if line.startswith("["))
        assert first.endswith("4 trainings, 8.0 s, 0:00:08 left")
        assert second.endswith("4 trainings, 8.0 s, 0:00:00 left")

    def test_a_bar_on_a_terminal(self, small_suite, tmp_path, pretend, monkeypatch, capsys):
        calls: list[dict[str, Any]] = []
        monkeypatch.setattr(rich.progress.Progress, "update", lambda bar, row, **fields: calls.append(fields))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        report = run(small_suite, tmp_path / "runs.sqlite", LocalExecutor("cpu", run=pretend))
        assert (calls[0]["completed"], calls[0]["total"]) == (0, report.trainings)
        assert (calls[-1]["completed"], calls[-1]["total"]) == (report.trainings, report.trainings)
        assert calls[-1]["stacks"] == f"{report.stacks}/{report.stacks}"
        assert calls[-1]["left"] == "0:00:00 left"
        assert capsys.readouterr().out == ""


def test_the_choice_never_sees_a_test_label(tmp_path, learnable):
    """The whole way from suite to choice, with the true test labels and with wrong ones."""
    grid = Grid(("sbm-gcn",), ("elbo",), (), (), {"lr": (0.001, 0.01, 0.1, 0.3)})
    protocol = Protocol(trials=2, selection_seeds=2, finalists=2, finalist_seeds=4)
    cell = Cell("1", "cora", "standard", "sbm-gcn")
    fixed = {"epochs": 6, "patience": 6, "hidden": 4}
    suite = Suite("s", "", "", protocol, ("elbo",), (grid,), (cell,), fixed=fixed)
    labels = learnable.labels.copy()
    labels[learnable.test] = (labels[learnable.test] + 1) % learnable.num_classes
    found = []
    for number, task in enumerate((learnable, replace(learnable, labels=labels))):

        def train(job: Job, device: str, _: NodeTask, task: NodeTask = task) -> list[Record]:
            return run_job(job, device, task)

        file = tmp_path / f"{number}.sqlite"
        run(suite, file, LocalExecutor("cpu", run=train))
        found.append(rows(file))
    told, lied = ([record for record in records if record.stage == "select"] for records in found)
    assert told == lied
    assert len(told) == 4 * 2 + 2 * 2
    chosen = [{record.point for record in records if record.stage == "trial"} for records in found]
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == 1
    assert found[0] != found[1], "the trials do see them"
