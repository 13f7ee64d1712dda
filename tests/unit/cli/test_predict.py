from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from small_tables import Columns, edge_columns, fit_people, node_columns, write

from g3nn.estimator import G3NNClassifier

NEW = range(60, 70)
GIVEN = ("given", "role")
LONELY = "10 of 10 new nodes have no edge: only their features predict them"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    """What `g3nn fit` wrote for the sixty."""
    return fit_people(tmp_path_factory.mktemp("fitted"))


@pytest.fixture
def new_nodes() -> Columns:
    columns = node_columns(NEW, labelled=0)
    del columns["group"]
    return columns


@pytest.fixture
def predict(run_command: Any, fitted: Path, new_nodes: Columns, tmp_path: Path) -> Any:
    """Writes the tables as they are by then and runs the command on them."""

    def run(*words: str, edges: Columns | None = None, form: str = "csv", folder: Path | None = None) -> Any:
        files = ["--nodes", str(write(tmp_path / f"nodes.{form}", new_nodes))]
        if edges is not None:
            files += ["--edges", str(write(tmp_path / f"edges.{form}", edges))]
        return run_command("predict", str(folder or fitted), *files, "--out", str(tmp_path / "new.parquet"), *words)

    return run


def answers(folder: Path) -> dict[str, list[Any]]:
    return pq.read_table(folder / "new.parquet").to_pydict()


class TestAnswers:
    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_new_nodes_with_edges(self, predict, fitted, new_nodes, tmp_path, form):
        edges = {"source": ["p60", "p61", "p60"], "target": ["p0", "p1", "p63"]}
        ran = predict("--json", edges=edges, form=form)
        told, (note,) = json.loads(ran.out), ran.err.splitlines()
        assert ran.code == 0
        assert told == {
            "out": str(tmp_path / "new.parquet"),
            "nodes": 10,
            "new": 10,
            "thresholds": [],
            "notes": [note[6:]],
        }
        assert note == "note: 7 of 10 new nodes have no edge: only their features predict them"
        found = answers(tmp_path)
        kept = [name for name in pq.read_table(fitted / "predictions.parquet").column_names if name not in GIVEN]
        assert list(found) == kept
        assert found["id"] == new_nodes["id"]
        assert found["has_edges"] == [True, True, False, True] + [False] * 6

    @pytest.mark.slow
    def test_new_nodes_without_edges(self, predict, tmp_path):
        ran = predict()
        assert (ran.code, ran.err) == (0, f"note: {LONELY}\n")
        assert ran.out == f"10 nodes, of which 10 are new; answers in {tmp_path / 'new.parquet'}\n"
        found = answers(tmp_path)
        assert not any(found["has_edges"])
        truth = node_columns(NEW, labelled=99)["group"]
        assert np.mean([one == other for one, other in zip(found["label"], truth, strict=True)]) > 0.8

    def test_ids_of_the_fit_are_answered_as_they_were(self, predict, fitted, new_nodes, tmp_path):
        for name, values in node_columns().items():
            if name in new_nodes:
                new_nodes[name][4:4] = [values[7]]
        new_nodes["age"][4] = 1.0
        ran = predict("--json", edges={"source": ["p7"], "target": ["p60"]})
        assert "1 of 11 ids were in the fit" in ran.err
        assert json.loads(ran.out)["new"] == 10
        found = answers(tmp_path)
        assert found["id"][3:6] == ["p63", "p7", "p64"]
        before = pq.read_table(fitted / "predictions.parquet").to_pylist()[7]
        assert {name: values[4] for name, values in found.items()} == {
            name: value for name, value in before.items() if name not in GIVEN
        }
        assert found["has_edges"] == [True, False, False, False, True] + [False] * 6

    def test_only_ids_of_the_fit(self, predict, fitted, new_nodes, tmp_path):
        new_nodes.update({name: values[5:8] for name, values in node_columns().items() if name in new_nodes})
        ran = predict(edges=edge_columns())
        assert ran.code == 0
        assert "3 of 3 ids" in ran.err
        before = pq.read_table(fitted / "predictions.parquet").to_pylist()[5:8]
        assert pq.read_table(tmp_path / "new.parquet").to_pylist() == before

    def test_a_label_column_is_not_looked_at(self, predict, new_nodes, tmp_path):
        assert predict().code == 0
        expected = answers(tmp_path)
        new_nodes["group"] = ["nonsense"] * 10
        assert predict().code == 0
        assert answers(tmp_path) == expected

    def test_unseen_categories_are_noted(self, predict, new_nodes):
        new_nodes["city"][2] = "Bonn"
        ran = predict()
        assert ran.code == 0
        assert "column 'city': 1 value that the fit has not seen ('Bonn'); taken as unknown" in ran.err
        ran = predict("--strict")
        assert ran.code == 2
        assert "column 'city': got 1 value that the fit has not seen ('Bonn')" in ran.err

    def test_what_is_odd_about_the_rows_is_noted(self, predict, new_nodes):
        new_nodes["age"][:2] = ["n/a", "old"]
        new_nodes["height"] = list(range(10))
        ran = predict("--json")
        notes = [note.partition("nodes.csv, ")[2] for note in json.loads(ran.out)["notes"]]
        assert notes == [
            "column 'age': 1 value that is no number ('old'); taken as missing",
            "column 'height': columns that the model was not fitted with; left out",
            "",
        ]

    def test_the_folder_of_the_model_will_do(self, predict, fitted, tmp_path):
        assert predict().code == 0
        expected = answers(tmp_path)
        assert predict(folder=fitted / "model").code == 0
        assert answers(tmp_path) == expected

    def test_a_csv_file_with_the_columns_of_the_table(self, predict, new_nodes, tmp_path):
        out = tmp_path / "new.csv"
        ran = predict("--out", str(out), "--keep", "--alpha", "0.4", "--quiet")
        assert (ran.code, ran.out, ran.err) == (0, "", f"note: {LONELY}\n")
        table = pa_csv.read_csv(out)
        assert table.column_names[-4:] == ["age", "member", "city", "notes"]
        assert table["notes"].to_pylist() == new_nodes["notes"]
        wide = tmp_path / "wide.csv"
        assert predict("--out", str(wide), "--alpha", "0.01").code == 0
        sizes = [
            [len(names.split(" | ")) for names in pa_csv.read_csv(file)["conformal_set"].to_pylist()]
            for file in (out, wide)
        ]
        assert sum(sizes[0]) < sum(sizes[1])

    def test_one_node_whose_columns_are_all_alike(self, predict, new_nodes):
        for values in new_nodes.values():
            del values[1:]
        assert predict().code == 0


class TestBadInput:
    def test_columns_that_differ_are_all_named(self, predict, new_nodes, tmp_path):
        new_nodes["height"] = list(range(10))
        new_nodes["member"] = ["yes", "no"] * 5
        del new_nodes["age"], new_nodes["notes"]
        ran = predict()
        assert (ran.code, ran.out) == (2, "")
        assert "2 problems" in ran.err
        assert "no column 'age', 'notes'" in ran.err
        assert "column 'member': got 'yes', 'no', which are no numbers" in ran.err
        assert ran.err.startswith("note: ")
        assert "column 'height': columns that the model was not fitted with; left out" in ran.err
        assert not (tmp_path / "new.parquet").exists()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda nodes: nodes["id"].__setitem__(3, "p60"), "1 id in more than one row ('p60')"),
            (lambda nodes: nodes["age"].__setitem__(3, float("inf")), "column 'age': got infinite or huge numbers"),
            (lambda nodes: nodes.pop("id"), "id column: got no 'id' among 'age'"),
        ],
    )
    def test_nodes(self, predict, new_nodes, tmp_path, change, words):
        change(new_nodes)
        ran = predict()
        assert (ran.code, ran.out) == (2, "")
        assert words in ran.err
        assert not (tmp_path / "new.parquet").exists()

    def test_unknown_edges(self, predict):
        edges = {"source": ["p60", "p61"], "target": ["p0", "p99"]}
        ran = predict(edges=edges)
        assert (ran.code, ran.out) == (2, "")
        assert "1 of 2 edges with ids that no node has ('p99')" in ran.err
        ran = predict("--drop-unknown-edges", edges=edges)
        assert ran.code == 0
        assert "1 edge in 2 rows; the others are 1 with ids that no node has" in ran.err

    def test_edge_columns_of_the_fit_are_needed(self, predict):
        ran = predict(edges={"source": ["p60"], "dst": ["p0"]})
        assert ran.code == 2
        assert "target column: got no 'target' among 'source', 'dst'; expected a column 'target'" in ran.err

    def test_ids_of_another_type(self, predict, new_nodes, fitted, tmp_path):
        new_nodes["id"] = list(range(10))
        assert predict().code == 0
        assert answers(tmp_path)["id"] == list(range(10))

    @pytest.mark.parametrize(
        ("out", "words"),
        [
            ("new.json", "ends in .csv, .parquet"),
            ("folder.parquet", "a file, not a folder"),
            ("deep/new.parquet", "in a folder that exists"),
            ("nodes.parquet", "another file than the tables"),
        ],
    )
    def test_out(self, predict, tmp_path, out, words):
        (tmp_path / "folder.parquet").mkdir()
        ran = predict("--out", str(tmp_path / out), form="parquet")
        assert (ran.code, ran.out) == (2, "")
        assert words in ran.err

    def test_out_may_not_be_in_the_model(self, predict, fitted):
        ran = predict("--out", str(fitted / "model" / "new.parquet"))
        assert ran.code == 2
        assert "outside the folder of a model" in ran.err

    @pytest.fixture
    def copied(self, fitted: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(fitted, tmp_path / "copy"))

    def test_an_extra_file_in_the_model(self, predict, copied):
        (copied / "model" / "extra.py").write_text("print('run me')")
        ran = predict(folder=copied)
        assert (ran.code, ran.out) == (2, "")
        assert "extra.py" in ran.err

    @pytest.mark.parametrize("name", ["model.json", "model.safetensors", "graph.safetensors"])
    def test_a_tampered_model(self, predict, copied, name):
        content = bytearray((copied / "model" / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copied / "model" / name).write_bytes(bytes(content))
        ran = predict(folder=copied)
        assert (ran.code, ran.out) == (2, "")
        assert name in ran.err
        assert "Traceback" not in ran.err

    def test_a_model_that_knows_no_tables(self, predict, learnable, tmp_path):
        y = [int(label) if node in learnable.train else None for node, label in enumerate(learnable.labels)]
        classifier = G3NNClassifier("gcn", ensemble=1, epochs=3, device="cpu")
        classifier.fit(learnable.features, y, learnable.edges).save(tmp_path / "plain")
        ran = predict(folder=tmp_path / "plain")
        assert ran.code == 2
        assert "a model that was fitted on plain arrays" in ran.err

    def test_all_problems_at_once(self, run_command, tmp_path):
        words = ("--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path), "--out", str(tmp_path / "new.json"))
        ran = run_command("predict", str(tmp_path / "nowhere"), *words, "--alpha", "0")
        assert (ran.code, ran.out) == (2, "")
        assert "5 problems" in ran.err
        for text in ("nowhere", "n.csv: there is no such file", "is a folder", "ends in .csv", "alpha: got 0.0"):
            assert text in ran.err
        assert list(tmp_path.iterdir()) == []

    def test_nothing_is_left_when_writing_fails(self, predict, tmp_path, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("g3nn.estimator.showing.write_table", full)
        ran = predict()
        assert (ran.code, ran.out) == (2, "")
        assert "cannot be written: No space left on device" in ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["nodes.csv"]

    def test_help(self, run_command):
        ran = run_command("predict", "--help")
        assert ran.code == 0
        assert "--edges" in ran.out
