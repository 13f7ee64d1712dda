"""The store of answers: on disk at once, whatever happens to who writes them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from g3nn.base.errors import DataError
from g3nn.labelling.opinions import answers_table, opinions
from g3nn.labelling.project import FILE, LABEL, SKIP, UNKNOWN, Answer, Lease, Project


def said(request, node="a", label="x", person="Ann", kind=LABEL, **more):
    return Answer(request, person, f"of {person}", node, kind, label if kind == LABEL else None, **more)


@pytest.fixture
def project(tmp_path):
    with Project.open(tmp_path / "project") as opened:
        yield opened


WRITER = """
import sys
from pathlib import Path
from g3nn.labelling.project import Answer, Project

project = Project.open(Path(sys.argv[1]))
for number in range(10_000):
    project.add(Answer(f"r{number}", "Ann", "s", f"n{number}", "label", "x"))
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing(tmp_path):
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            confirmed = [writer.stdout.readline() for _ in range(7)]
            os.kill(writer.pid, signal.SIGKILL)
            # What it printed before it died was confirmed too.
            confirmed += writer.stdout.read().split("\n")[:-1]
        with Project.open(tmp_path) as project:
            kept = {answer.request for answer in project.current()}
        assert {f"r{int(number)}" for number in confirmed} <= kept
        assert len(confirmed) >= 7


def test_every_commit_is_flushed(project):
    assert project._run("PRAGMA synchronous") == [(2,)]
    assert project._run("PRAGMA journal_mode") == [("wal",)]


def test_a_correction_counts_and_the_history_stays(project):
    project.add(said("1", label="x"))
    project.add(said("2", label="y", note="wrong before"))
    assert [(one.label, one.note) for one in project.current()] == [("y", "wrong before")]
    assert [row["label"] for row in project.history()] == ["x", "y"]
    assert project.undo("of Ann").label == "y"
    assert [one.label for one in project.current()] == ["x"]
    assert [row["undone"] is None for row in project.history()] == [True, False]
    assert project.undo("of Bo") is None


def test_what_is_sent_twice_counts_once(project):
    first = project.add(said("1", label="x"))
    assert project.add(said("1", label="y")) == first
    assert len(project.history()) == 1


def test_leases_keep_people_apart(project):
    until = time.time() + 60
    mine = Lease("a", "mine", until, "chosen", "x", 0.5)
    assert project.lease(mine)
    assert not project.lease(Lease("a", "yours", until, "chosen"))
    assert project.lease(Lease("b", "yours", until, "chosen"))
    assert project.renew("mine", until + 1) == replace(mine, until=until + 1)
    # A session is asked one thing at a time.
    assert project.lease(Lease("c", "mine", until, "chosen"))
    assert project.lease(Lease("a", "third", time.time() - 1, "chosen"))
    assert project.renew("third", until) is None
    project.add(said("1", "b"))
    assert not project.lease(Lease("b", "fourth", until, "chosen"))
    assert {one.node for one in project.leased()} == {"b", "c"}


def test_who_skips_a_node_that_they_answered_leaves_the_answer(project):
    first = project.add(said("1"))
    project.add(said("2", kind=SKIP))
    assert project.current() == (first,)
    assert len(project.history()) == 2


def test_a_skipped_node_is_asked_again(project):
    project.add(said("1", kind=SKIP))
    assert project.lease(Lease("a", "other", time.time() + 60, "chosen"))
    assert opinions(project.current()) == {}


def test_two_processes_see_each_other(project):
    with Project.open(project.folder) as other:
        assert other.current() == ()
        project.add(said("1"))
        project.add_classes(["x", "y", "x"])
        assert [one.request for one in other.current()] == ["1"]
        assert other.classes() == ["x", "y"]


def test_people_disagree(project):
    for request, person, label in (("1", "Ann", "x"), ("2", "Bo", "y"), ("3", "Cem", "y"), ("4", "Ann", "x")):
        project.add(said(request, label=label, person=person, guess="x", sure=0.6))
    project.add(said("5", "b", kind=UNKNOWN, note="?"))
    told = opinions(project.current())
    assert (told["a"].label, told["a"].disagree) == ("y", True)
    assert (told["b"].label, told["b"].disagree) == (None, False)
    table = answers_table(project.current(), "id", "note").to_pydict()
    assert table["id"] == ["a", "b"]
    assert table["note"] == ["y", None]
    assert table["answer_note"] == ["", "?"]
    assert table["votes"] == [3, 0]
    assert table["disagreement"] == [True, False]


def test_of_equals_the_later_counts(project):
    project.add(said("1", label="x"))
    project.add(said("2", label="y", person="Bo"))
    assert opinions(project.current())["a"].label == "y"


def test_the_last_verdict_on_an_edge_counts(project):
    for request, verdict in (("1", "keep"), ("2", "remove"), ("2", "keep")):
        project.judge(request, "Ann", "a", "b", verdict)
    assert project.verdicts() == {("a", "b"): "remove"}


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="no labelling project"):
        Project.open(tmp_path, create=False)
    sqlite3.connect(tmp_path / FILE).executescript("CREATE TABLE t (x); PRAGMA user_version = 1;")
    with pytest.raises(DataError, match="something else"):
        Project.open(tmp_path)
    (tmp_path / FILE).write_bytes(b"no database" * 200)
    with pytest.raises(DataError, match="not a database"):
        Project.open(tmp_path)


def test_facts_are_remembered(project):
    project.remember({"rows": 3})
    project.remember({"rows": 4, "names": ["ä"]})
    assert project.facts() == {"rows": 4, "names": ["ä"]}
