from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_tables import Columns, edge_columns, fit_people, node_columns, read_nodes, write

from g3nn.data.tables.notes import TableNotes
from g3nn.errors import DataError, G3NNWarning
from g3nn.estimator import load_model

NEW = range(60, 70)


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
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_new_nodes_with_edges(self, predict, fitted, new_nodes, tmp_path, form):
        edges = {"source": ["p60", "p61", "p60"], "target": ["p0", "p1", "p63"]}
        ran = predict("--json", edges=edges, form=form)
        assert (ran.code, ran.err) == (0, "")
        assert json.loads(ran.out) == {"out": str(tmp_path / "new.parquet"), "nodes": 10, "new": 10}
        found = answers(tmp_path)
        assert list(found) == pq.read_table(fitted / "predictions.parquet").column_names
        assert found["id"] == new_nodes["id"]
        assert found["has_edges"] == [True, True, False, True] + [False] * 6
        classifier = load_model(fitted / "model")
        notes = TableNotes.from_json(classifier.notes_["tables"])
        nodes = read_nodes(tmp_path / f"nodes.{form}", "id", text=["notes"])
        expected = classifier.predict_proba(notes.schema.encode(nodes), np.array([[60, 61, 60], [0, 1, 63]]))
        given = np.stack([found[f"prob_{name}"] for name in ("art", "law", "tea")], axis=1)
        np.testing.assert_allclose(given, expected)

    def test_new_nodes_without_edges(self, predict, tmp_path):
        ran = predict()
        assert ran.code == 0
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
        with pytest.warns(G3NNWarning, match="1 of 11 ids were in the fit"):
            ran = predict("--json", edges={"source": ["p7"], "target": ["p60"]})
        assert json.loads(ran.out)["new"] == 10
        found = answers(tmp_path)
        assert found["id"][3:6] == ["p63", "p7", "p64"]
        before = pq.read_table(fitted / "predictions.parquet").to_pylist()[7]
        assert {name: values[4] for name, values in found.items()} == before
        assert found["has_edges"] == [True, False, False, False, True] + [False] * 6

    def test_only_ids_of_the_fit(self, predict, fitted, new_nodes, tmp_path):
        new_nodes.update({name: values[5:8] for name, values in node_columns().items() if name in new_nodes})
        with pytest.warns(G3NNWarning, match="3 of 3 ids"):
            assert predict(edges=edge_columns()).code == 0
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
        with pytest.warns(G3NNWarning, match=r"column 'city': 1 value \('Bonn'\)"):
            assert predict().code == 0

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
        assert "3 problems" in ran.err
        assert "no column 'age', 'notes'" in ran.err
        assert "new columns 'height'" in ran.err
        assert "'member' (categorical instead of boolean)" in ran.err
        assert not (tmp_path / "new.parquet").exists()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda nodes: nodes["id"].__setitem__(3, "p60"), "1 id in more than one row ('p60')"),
            (lambda nodes: nodes["age"].__setitem__(3, float("inf")), "column 'age': got numbers that are infinite"),
            (lambda nodes: nodes["age"].__setitem__(3, None), "column 'age': got missing values"),
            (lambda nodes: nodes.pop("id"), "id column: got 'id'"),
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
        with pytest.warns(G3NNWarning, match="left out 1 of 2 edges"):
            assert predict("--drop-unknown-edges", edges=edges).code == 0

    def test_edge_columns_of_the_fit_are_needed(self, predict):
        ran = predict(edges={"source": ["p60"], "dst": ["p0"]})
        assert ran.code == 2
        assert "target column: got 'target'" in ran.err

    def test_ids_of_another_type(self, predict, new_nodes, fitted, tmp_path):
        new_nodes["id"] = list(range(10))
        assert predict().code == 0
        assert answers(tmp_path)["id"] == list(range(10))

    @pytest.mark.parametrize(
        ("out", "words"),
        [
            ("new.csv", "ends in .parquet"),
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
        assert "outside the folder of the model" in ran.err

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

    def test_a_model_that_knows_no_tables(self, predict, fitted, tmp_path):
        classifier = load_model(fitted / "model")
        classifier.notes_.clear()
        (tmp_path / "plain").mkdir()
        classifier.save(tmp_path / "plain" / "model")
        ran = predict(folder=tmp_path / "plain")
        assert ran.code == 2
        assert "not fitted on tables" in ran.err

    def test_all_problems_at_once(self, run_command, tmp_path):
        words = ("--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path), "--out", str(tmp_path / "new.csv"))
        ran = run_command("predict", str(tmp_path / "nowhere"), *words)
        assert (ran.code, ran.out) == (2, "")
        assert "4 problems" in ran.err
        for text in ("nowhere", "n.csv: there is no such file", "is a folder", "ends in .parquet"):
            assert text in ran.err
        assert list(tmp_path.iterdir()) == []

    def test_nothing_is_left_when_writing_fails(self, predict, tmp_path, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.replace", full)
        ran = predict()
        assert (ran.code, ran.out) == (2, "")
        assert "cannot be written: No space left on device" in ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["nodes.csv"]

    def test_help(self, run_command):
        ran = run_command("predict", "--help")
        assert ran.code == 0
        assert "--edges" in ran.out


class TestNotes:
    def test_there_and_back(self, fitted):
        content = load_model(fitted / "model").notes_["tables"]
        assert TableNotes.from_json(json.loads(json.dumps(content))).to_json() == content

    def test_damage_is_said(self, fitted):
        for change in [
            {"ids": None},
            {"ids": [1]},
            {"ids": [[]]},
            {"schema": 3},
            {"node_columns": {}},
            {"edge_columns": None},
        ]:
            content = {**load_model(fitted / "model").notes_["tables"], **change}
            with pytest.raises(DataError):
                TableNotes.from_json(content)

    def test_something_else(self):
        for content in [None, 3, {}, []]:
            with pytest.raises(DataError, match="not fitted on tables"):
                TableNotes.from_json(content)
