"""`g3nn label` from the command line: beginning, going on, and taking answers away."""

from __future__ import annotations

import builtins
import csv

import pyarrow.parquet as pq
import pytest
from label_desk import people
from small_tables import node_columns, write

from g3nn.base.folders import mend, swapped
from g3nn.cli import label as module
from g3nn.labelling.project import Answer, Project


@pytest.fixture
def served(monkeypatch):
    """What would be served, instead of a server."""
    calls = []
    monkeypatch.setattr(module, "_serve", lambda *given, **options: calls.append((given, options)))
    return calls


def begin(run_command, folder, *more, **tables):
    people(folder, labelled=45, **tables)
    words = ("--nodes", f"{folder}/nodes.csv", "--edges", f"{folder}/edges.csv", "--id", "id", "--label", "group")
    return run_command("label", *words, "--out", f"{folder}/project", *more)


def answer(folder, node, label="tea"):
    with Project.open(folder / "project") as project:
        project.add(Answer(node, "Ann", "s", node, "label", label, note="a, b"))


def test_a_project_remembers_its_tables(run_command, served, tmp_path):
    assert begin(run_command, tmp_path, "--text", "notes").code == 0
    answer(tmp_path, "p50")
    ran = run_command("label", "--out", f"{tmp_path}/project")
    assert (ran.code, ran.err) == (0, "")
    first, again = (given for given, _ in served)
    assert first[1].graph.features.names == again[1].graph.features.names
    assert again[1].shown.text == ("notes",)


def test_tables_that_changed(run_command, served, tmp_path):
    begin(run_command, tmp_path)
    answer(tmp_path, "p59")
    ran = begin(run_command, tmp_path, city=["Rome", "Oslo", "Bonn"] * 20)
    assert ran.code == 0
    assert "other values in 'city'. All answers are kept" in ran.err
    write(tmp_path / "nodes.csv", node_columns(range(59)))
    ran = run_command("label", "--out", f"{tmp_path}/project")
    assert ran.code == 2
    assert "60 rows became 59; other values in" in ran.err
    assert "1 answered id no longer there ('p59')" in ran.err
    assert len(served) == 2
    with Project.open(tmp_path / "project") as project:
        assert len(project.current()) == 1


def test_answers_to_take_away(run_command, served, tmp_path):
    begin(run_command, tmp_path)
    answer(tmp_path, "p50")
    answer(tmp_path, "p51", "new")
    out = tmp_path / "answers.csv"
    assert run_command("label", "--out", f"{tmp_path}/project", "--export", str(out)).out == f"2 nodes in {out}\n"
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["id"], row["group"], row["note"]) for row in rows] == [("p50", "tea", "a, b"), ("p51", "new", "a, b")]
    out = tmp_path / "history.parquet"
    assert run_command("label", "--out", f"{tmp_path}/project", "--export", str(out), "--history").code == 0
    assert pq.read_table(out)["node"].to_pylist() == ["p50", "p51"]


def test_what_is_wrong_is_said_at_once(run_command, tmp_path):
    (tmp_path / "file").write_text("x")
    ran = run_command("label", "--out", str(tmp_path), "--effort", "quik", "--port", "-1", "--nodes", "n.csv")
    assert ran.code == 2
    for words in ("effort", "Did you mean 'quick'", "port", "no --edges, --id, --label", "holds something else"):
        assert words in ran.err
    ran = run_command("label", "--out", f"{tmp_path}/none", "--export", f"{tmp_path}/a.csv")
    assert (ran.code, "no labelling project" in ran.err) == (2, True)
    assert not (tmp_path / "none").exists()


def test_without_the_packages_that_serve_it(run_command, served, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *given, **more):
        if name in ("starlette", "uvicorn"):
            raise ImportError(name=name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    ran = begin(run_command, tmp_path)
    assert (ran.code, served) == (2, [])
    assert "pip install 'g3nn[label]'" in ran.err


def test_results_take_the_place_of_former_ones(tmp_path):
    out = tmp_path / "result"
    for text in ("one", "two"):
        with swapped(out) as draft:
            draft.mkdir()
            (draft / "file").write_text(text)
        assert (out / "file").read_text() == text
    with pytest.raises(FileNotFoundError), swapped(out) as draft:
        (draft / "nowhere").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
    # As if killed between the two renames.
    out.rename(tmp_path / ".result.former")
    mend(out)
    assert (out / "file").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
