from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import Tags, data_of
from small_tables import Columns, edge_columns, fit_people, node_columns, write

from g3nn.data.tables.export import export
from g3nn.errors import G3NNWarning
from g3nn.estimator import load_model

pytestmark = pytest.mark.usefixtures("short_audit")

SHORT = ("--model", "gcn", "--ensemble", "1", "--device", "cpu")


RESULTS = ["edges.parquet", "model", "predictions.parquet", "report.html"]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Columns]:
    return {"nodes": node_columns(), "edges": edge_columns()}


@pytest.fixture
def fit(run_command: Any, tables: dict[str, Columns], tmp_path: Path) -> Any:
    """Writes the tables as they are by then and runs the command on them."""

    def run(*words: str, form: str = "csv", out: str = "out", label: str = "group") -> Any:
        files = {name: write(tmp_path / f"{name}.{form}", columns) for name, columns in tables.items()}
        given = ("--nodes", str(files["nodes"]), "--edges", str(files["edges"]), "--id", "id", "--label", label)
        return run_command("fit", *given, "--text", "notes", "--out", str(tmp_path / out), *SHORT, *words)

    return run


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    return fit_people(tmp_path_factory.mktemp("fitted"))


class TestResults:
    def test_everything_is_written(self, fit, tmp_path):
        ran = fit("--json", form="parquet")
        assert (ran.code, ran.err) == (0, "")
        out = tmp_path / "out"
        assert sorted(path.name for path in out.iterdir()) == RESULTS
        told = json.loads(ran.out)
        assert (told["nodes"], told["classes"], told["model"]) == (60, ["art", "law", "tea"], "gcn")
        assert (told["train"] + told["val"], told["test"], told["out"]) == (45, None, str(out))
        assert [entry["chosen"] for entry in told["panel"]] == [True]
        assert load_model(out / "model").classes_.tolist() == ["art", "law", "tea"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "nodes.parquet", "out"]

    def test_predictions(self, fitted):
        table = pq.read_table(fitted / "predictions.parquet")
        columns = ["id", "label", "prob_art", "prob_law", "prob_tea", "entropy", "conformal_set", "has_edges"]
        assert table.column_names == columns
        assert table["id"].to_pylist() == node_columns()["id"]
        assert table.schema.field("conformal_set").type == pa.list_(pa.field("element", pa.string()))
        p = np.stack([table[f"prob_{name}"].to_numpy() for name in ("art", "law", "tea")], axis=1)
        np.testing.assert_allclose(p.sum(1), 1)
        assert table["label"].to_pylist() == np.array(["art", "law", "tea"])[p.argmax(1)].tolist()
        np.testing.assert_allclose(table["entropy"].to_numpy(), -(p * np.log(p)).sum(1), rtol=1e-6)
        classifier = load_model(fitted / "model")
        np.testing.assert_allclose(p, classifier.predict_proba())
        sets = [np.array(["art", "law", "tea"])[row].tolist() for row in classifier.predict_set(0.1)]
        assert table["conformal_set"].to_pylist() == sets
        assert table["has_edges"].to_pylist() == [True] * 59 + [False]
        right = np.array(table["label"].to_pylist())[45:] == np.array(node_columns(labelled=60)["group"])[45:]
        assert right.mean() > 0.8

    def test_edges(self, fitted):
        table = pq.read_table(fitted / "edges.parquet")
        assert table.column_names == ["source", "target", "probability", "rank"]
        given = {frozenset(pair) for pair in zip(*edge_columns().values(), strict=True)}
        found = [frozenset(pair) for pair in zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)]
        assert (set(found), len(found)) == (given, len(given))
        probability = table["probability"].to_numpy()
        assert (np.diff(probability) >= 0).all()
        assert ((probability >= 0) & (probability <= 1)).all()
        assert table["rank"].to_pylist() == list(range(1, len(given) + 1))
        # What was learned about edges is part of the model.
        np.testing.assert_array_equal(load_model(fitted / "model").audit(0).edges["probability"], probability)

    def test_a_page(self, fitted):
        page = (fitted / "report.html").read_text(encoding="utf-8")
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert "<title>Labels for nodes.csv</title>" in page
        text = Tags(page).text
        assert "; label group; seed 0." in text
        assert set(data_of(page)["graph"]["columns"]) >= {"age", "group"}

    def test_the_page_says_what_was_typed(self, fit, tmp_path):
        assert fit("--no-audit", "--json").code == 0
        text = Tags((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
        assert f"Command: g3nn fit --nodes {tmp_path / 'nodes.csv'} " in text
        assert text.endswith("--no-audit --json")

    def test_a_graph_with_too_few_edges_to_audit(self, fit, tables, tmp_path):
        tables["edges"] = {"source": ["p1", "p2"], "target": ["p4", "p5"]}
        with pytest.warns(G3NNWarning, match="the edges could not be audited: .* 2 edges"):
            assert fit("--json").code == 0
        expected = {"source": ["p1", "p2"], "target": ["p4", "p5"], "probability": [None] * 2, "rank": [None] * 2}
        assert pq.read_table(tmp_path / "out" / "edges.parquet").to_pydict() == expected
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == RESULTS

    def test_classes_keep_their_type_and_an_empty_folder_will_do(self, fit, tables, tmp_path):
        (tmp_path / "out").mkdir()
        tables["nodes"]["group"] = [
            None if name is None else len(name) + ord(name[0]) for name in tables["nodes"]["group"]
        ]
        assert fit("--json").code == 0
        table = pq.read_table(tmp_path / "out" / "predictions.parquet")
        assert table["label"].type == pa.int64()
        assert table.column_names[2:5] == ["prob_100", "prob_111", "prob_119"]

    def test_a_split_column_keeps_test_labels_out(self, fit, tables):
        nodes = tables["nodes"] = node_columns(labelled=60)
        nodes["part"] = ["train"] * 24 + ["val"] * 12 + ["test"] * 24
        told = json.loads(fit("--json", "--split", "part").out)
        assert (told["train"], told["val"], told["test"]["nodes"]) == (24, 12, 24)
        assert told["test"]["accuracy"] > 0.8
        nodes["split"] = nodes.pop("part")
        again = json.loads(fit("--json", out="again").out)
        assert (again["val_loss"], again["test"]) == (told["val_loss"], told["test"])

    def test_for_people(self, fit, tables):
        tables["nodes"] = {**node_columns(labelled=60), "split": ["train"] * 24 + ["val"] * 12 + ["test"] * 24}
        ran = fit()
        assert ran.code == 0
        for text in ("60 nodes", "3 classes", "24 labels to train on", "model gcn", "test accuracy", "results in"):
            assert text in ran.out
        assert "24 training nodes and 12 validation nodes" in ran.err

    def test_options_reach_the_classifier(self, fit, tables, tmp_path):
        words = ("--model", "sbm-gcn", "--objective", "released", "--ensemble", "2", "--seed", "7")
        tables["nodes"]["age"][3] = None
        told = json.loads(fit(*words, "--missing", "impute", "--json").out)
        assert (told["model"], told["objective"], told["panel"][0]["replicas"]) == ("sbm-gcn", "released", 2)
        classifier = load_model(tmp_path / "out" / "model")
        assert (classifier.random_state, classifier.missing) == (7, "impute")

    def test_chosen_edge_columns_weights_and_dropped_edges(self, fit, tables):
        edges = tables["edges"]
        for ends in edges.values():
            ends.append("nobody")
        tables["edges"] = {
            "from": edges["target"],
            "b": edges["source"],
            "a": edges["target"],
            "w": [float(place > 4) for place in range(len(edges["source"]))],
        }
        words = ("--source", "a", "--target", "b", "--weight", "w", "--drop-unknown-edges")
        with pytest.warns(G3NNWarning, match="left out 1 of"):
            ran = fit("--json", *words)
        assert ran.code == 0
        assert json.loads(ran.out)["edges"] == len(edges["source"]) - 6

    def test_exported_tables_need_no_more_than_the_names(self, run_command, learnable, tmp_path):
        folder = export(learnable, tmp_path / "tables")
        files = ("--nodes", str(folder / "nodes.parquet"), "--edges", str(folder / "edges.csv"))
        words = ("--id", "id", "--label", "label", "--out", str(tmp_path / "out"), *SHORT, "--json")
        told = json.loads(run_command("fit", *files, *words).out)
        assert (told["train"], told["val"]) == (len(learnable.train), len(learnable.val))
        classifier = load_model(tmp_path / "out" / "model")
        np.testing.assert_array_equal(classifier.task_.edges, learnable.edges)
        np.testing.assert_array_equal(classifier.val_nodes_, learnable.val)


def constant(nodes: Columns) -> None:
    nodes["age"] = [1] * 60


def empty(nodes: Columns) -> None:
    nodes["age"] = [None] * 60


def infinite(nodes: Columns) -> None:
    nodes["age"][7] = float("inf")


def gap(nodes: Columns) -> None:
    nodes["age"][7] = None


def double(nodes: Columns) -> None:
    nodes["id"][59] = "p8"


def mixed(nodes: Columns) -> None:
    nodes["id"] = [*range(59), "p59"]


def one_class(nodes: Columns) -> None:
    nodes["group"] = ["art"] * 45 + [None] * 15


def seen_once(nodes: Columns) -> None:
    nodes["group"][7] = "war"


def no_label(nodes: Columns) -> None:
    nodes["group"] = [None] * 60


def no_column(nodes: Columns) -> None:
    del nodes["id"]


class TestBadTables:
    def test_nodes(self, fit, tables, tmp_path):
        sound = tables["nodes"]
        for change, words in [
            (no_column, ["id column: got 'id'", "'group', 'age'"]),
            (double, ["1 id in more than one row ('p8')"]),
            (mixed, ["whole numbers and 1 other value ('p59')", "ids of one type"]),
            (one_class, ["45 labels of 1 classes", "at least 2 classes"]),
            (seen_once, ["class 'war' with a single labelled node"]),
            (no_label, ["column 'group': got 0 labels"]),
            (constant, ["column 'age': got the same value in every row", "--ignore"]),
            (empty, ["column 'age': got no value at all", "--ignore"]),
            (infinite, ["column 'age': got infinite or huge numbers"]),
            (gap, ["column 'age': got missing values", "--missing impute"]),
        ]:
            tables["nodes"] = deepcopy(sound)
            change(tables["nodes"])
            self.assert_refused(fit(), tmp_path, words)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", ["is empty"]),
            (b"source,target\n", ["no rows"]),
            (b"source,target\np1,p2\np1,\xe9\n", ["not UTF-8 text, first in line 3"]),
            (
                b"source,target\np1,p2\nx1,p3\nx2,p3\n",
                ["2 of 3 edges with ids that no node has ('x1', 'x2')", "--drop"],
            ),
            (b"source\np1\n", ["two columns"]),
            (b"source,target\np1\n", ["1 row with more or fewer values than the header"]),
            (b"PAR1zzzzzzzz", ["damaged or cut short"]),
        ],
    )
    def test_edges(self, run_command, tables, tmp_path, content, words):
        nodes = write(tmp_path / "nodes.csv", tables["nodes"])
        (tmp_path / "edges.csv").write_bytes(content)
        files = ("--nodes", str(nodes), "--edges", str(tmp_path / "edges.csv"))
        given = ("--id", "id", "--label", "group", "--text", "notes", "--out", str(tmp_path / "out"))
        self.assert_refused(run_command("fit", *files, *given, *SHORT), tmp_path, words)

    def test_a_parquet_file_cut_short(self, run_command, tables, tmp_path):
        nodes = write(tmp_path / "nodes.parquet", tables["nodes"])
        edges = write(tmp_path / "edges.csv", tables["edges"])
        nodes.write_bytes(nodes.read_bytes()[:-100])
        given = ("--id", "id", "--label", "group", "--out", str(tmp_path / "out"))
        ran = run_command("fit", "--nodes", str(nodes), "--edges", str(edges), *given, *SHORT)
        assert (ran.code, ran.out) == (2, "")
        assert "nodes.parquet: damaged or cut short" in ran.err
        assert not (tmp_path / "out").exists()

    def assert_refused(self, ran: Any, folder: Path, words: list[str]) -> None:
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        assert line.startswith("error: ")
        for word in words:
            assert word in line
        assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "nodes.csv"]

    def test_labels_under_another_name_are_not_judged_as_features(self, fit, tables, tmp_path):
        tables["nodes"]["grade"] = [k % 3 if k < 45 else None for k in range(60)]
        words = ["nodes.csv, label column: got 'grad'", "Did you mean 'grade'?"]
        self.assert_refused(fit(label="grad"), tmp_path, words)

    def test_everything_at_once_and_nothing_written(self, fit, tables, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")
        tables["nodes"]["born"] = ["1990-01-02"] * 60
        seen_once(tables["nodes"])
        constant(tables["nodes"])
        double(tables["nodes"])
        tables["edges"]["source"][3] = "nobody"
        words = ("--model", "gnc", "--objective", "elbow", "--ensemble", "0", "--missing", "guess", "--device", "cup")
        ran = fit(*words, "--ignore", "cty", "--weight", "w")
        assert (ran.code, ran.out) == (2, "")
        first, *rest = ran.err.splitlines()
        expected = {
            "out": "which is not empty",
            "model": "Did you mean 'gcn'?",
            "objective": "Did you mean 'elbo'?",
            "ensemble": "at least 1",
            "missing": "error or impute",
            "device": "Did you mean 'cpu'?",
            "nodes.csv, ignored column": "Did you mean 'city'?",
            "nodes.csv, column 'id'": "'p8'",
            "nodes.csv, column 'born'": "--ignore",
            "nodes.csv, column 'age'": "the same value",
            "nodes.csv, labels": "'war'",
            "edges.csv, weight column": "got 'w'",
        }
        assert first == f"error: {len(expected)} problems:"
        for name, word in expected.items():
            (line,) = [line for line in rest if f"{name}: " in line]
            assert word in line
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv", "out"]

    def test_problems_of_columns_and_of_edges_together(self, fit, tables, tmp_path):
        constant(tables["nodes"])
        tables["edges"]["source"][3] = "nobody"
        ran = fit()
        assert ran.code == 2
        assert "error: 2 problems" in ran.err
        assert "'age': got the same value" in ran.err
        assert "1 of 71 edges" in ran.err

    def test_no_files(self, run_command, tmp_path):
        words = ("--id", "id", "--label", "y", "--out", str(tmp_path / "deep" / "out"), *SHORT)
        ran = run_command("fit", "--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path), *words)
        assert (ran.code, ran.out) == (2, "")
        assert "3 problems" in ran.err
        for text in ("n.csv: there is no such file", "is a folder", "a new folder inside one that exists"):
            assert text in ran.err
        assert list(tmp_path.iterdir()) == []


class TestCrashes:
    @pytest.mark.parametrize(
        "error", [OSError(28, "No space left on device"), RuntimeError("bug"), KeyboardInterrupt()]
    )
    def test_nothing_is_left_half_written(self, fit, tmp_path, monkeypatch, error):
        def fail(*_: object, **__: object) -> None:
            assert list(tmp_path.glob(".out*/edges.parquet"))
            raise error

        monkeypatch.setattr("g3nn.page.write_model_report", fail)
        if isinstance(error, RuntimeError):
            with pytest.raises(RuntimeError):
                fit("--json")
        else:
            ran = fit("--json")
            assert ran.code == (2 if isinstance(error, OSError) else 130)
            assert ran.out == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


class TestExport:
    """The example tables of `g3nn datasets`."""

    def test_files(self, run_command, tmp_path):
        ran = run_command("datasets", "cora", "--export", str(tmp_path / "cora"))
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.replace("\n", "").endswith(f"nodes.parquet, edges.csv, answers.parquet in {tmp_path / 'cora'}")
        assert pq.read_metadata(tmp_path / "cora" / "nodes.parquet").num_columns == 3 + 1433
        assert len((tmp_path / "cora" / "edges.csv").read_text().splitlines()) == 1 + 5278

    def test_json_is_the_same_as_without(self, run_command, tmp_path):
        plain = run_command("datasets", "cora", "--json")
        assert run_command("datasets", "cora", "--json", "--export", str(tmp_path / "cora")).out == plain.out

    def test_all_problems_at_once(self, run_command, tmp_path):
        (tmp_path / "mine.txt").write_text("mine")
        ran = run_command("datasets", "--export", str(tmp_path))
        assert (ran.code, ran.out) == (2, "")
        assert "2 problems" in ran.err
        assert "the name of one dataset" in ran.err
        assert "not empty" in ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_help(run_command):
    ran = run_command("fit", "--help")
    assert ran.code == 0
    for option in ("--nodes", "--text", "--split", "--drop-unknown-edges", "--missing"):
        assert option in ran.out


def test_bad_usage(run_command):
    for words in [(), ("--nodes", "n.csv"), ("--nodes", "n.csv", "--edgs", "e.csv")]:
        ran = run_command("fit", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "Traceback" not in ran.err
