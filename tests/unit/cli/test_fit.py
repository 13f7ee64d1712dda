from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import Tags, data_of
from small_tables import Columns, edge_columns, fit_people, node_columns, write

from g3nn.estimator import G3NNClassifier, load_model
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.frames import export
from g3nn.graph.tables.remarks import Remarks

pytestmark = pytest.mark.usefixtures("short_audit", "few_epochs")

SHORT = ("--model", "gcn", "--ensemble", "1", "--device", "cpu")


RESULTS = ["edges.parquet", "labels.parquet", "model", "predictions.parquet", "report.html"]


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
    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_predictions(self, fitted):
        table = pq.read_table(fitted / "predictions.parquet")
        given = ["id", "given", "role"]
        columns = ["label", "prob_art", "prob_law", "prob_tea", "entropy", "conformal_set", "has_edges"]
        assert table.column_names == given + columns
        assert table["id"].to_pylist() == node_columns()["id"]
        # Labels that were given stay beside the answers, of which some differ.
        assert table["given"].to_pylist() == node_columns()["group"]
        assert any(row["label"] != row["given"] for row in table.slice(0, 45).to_pylist())
        assert table.schema.field("conformal_set").type == pa.list_(pa.field("element", pa.string()))
        p = np.stack([table[f"prob_{name}"].to_numpy() for name in ("art", "law", "tea")], axis=1)
        np.testing.assert_allclose(p.sum(1), 1)
        assert table["label"].to_pylist() == np.array(["art", "law", "tea"])[p.argmax(1)].tolist()
        np.testing.assert_allclose(table["entropy"].to_numpy(), -(p * np.log(p)).sum(1), rtol=1e-6)
        classifier = load_model(fitted / "model")
        role = np.full(60, "unlabelled", dtype=object)
        role[classifier.task_.train], role[classifier.task_.val] = "train", "validation"
        assert table["role"].to_pylist() == role.tolist()
        np.testing.assert_allclose(p, classifier.predict_proba())
        sets = [np.array(["art", "law", "tea"])[row].tolist() for row in classifier.predict_set(0.1)]
        assert table["conformal_set"].to_pylist() == sets
        assert table["has_edges"].to_pylist() == [True] * 59 + [False]
        right = np.array(table["label"].to_pylist())[45:] == np.array(node_columns(labelled=60)["group"])[45:]
        assert right.mean() > 0.8

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_a_page(self, fitted):
        page = (fitted / "report.html").read_text(encoding="utf-8")
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert "<title>Labels for nodes.csv</title>" in page
        text = Tags(page).text
        assert "; label group; seed 0." in text
        assert set(data_of(page)["graph"]["columns"]) >= {"age", "group"}

    def test_it_says_what_comes_after_the_choice(self, fit, caplog):
        caplog.set_level("INFO", "g3nn")
        for words, said in [((), "auditing edges and writing results"), (("--no-audit",), "writing results")]:
            assert fit(*words, out=f"out{len(words)}").code == 0
            assert caplog.messages[-2].startswith("chose gcn")
            assert caplog.messages[-1] == said
        caplog.clear()
        assert fit("--no-audit", "--quiet", out="silent").code == 0
        assert caplog.messages == []

    def test_the_page_says_what_was_typed(self, fit, tmp_path):
        assert fit("--no-audit", "--json").code == 0
        text = Tags((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
        assert f"Command: g3nn fit --nodes {tmp_path / 'nodes.csv'} " in text
        assert text.endswith("--no-audit --json")

    def test_a_graph_with_too_few_edges_to_audit(self, fit, tables, tmp_path):
        tables["edges"] = {"source": ["p1", "p2"], "target": ["p4", "p5"]}
        ran = fit("--json")
        assert ran.code == 0
        assert re.search("note: the edges could not be audited: .* 2 edges", ran.err)
        expected = {"source": ["p1", "p2"], "target": ["p4", "p5"], "probability": [None] * 2, "rank": [None] * 2}
        assert pq.read_table(tmp_path / "out" / "edges.parquet").to_pydict() == expected
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == RESULTS

    @pytest.mark.slow
    def test_classes_keep_their_type_and_a_link_to_an_empty_folder_will_do(self, fit, tables, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "out").symlink_to("empty")
        tables["nodes"]["group"] = [
            None if name is None else len(name) + ord(name[0]) for name in tables["nodes"]["group"]
        ]
        assert fit("--json").code == 0
        table = pq.read_table(tmp_path / "out" / "predictions.parquet")
        assert table["label"].type == pa.int64()
        assert table["given"].type == pa.int64()
        assert table.column_names[4:7] == ["prob_100", "prob_111", "prob_119"]

    @pytest.mark.slow
    def test_a_split_column_keeps_test_labels_out(self, fit, tables, tmp_path):
        nodes = tables["nodes"] = node_columns(labelled=60)
        nodes["part"] = ["train"] * 24 + ["val"] * 12 + ["test"] * 24
        told = json.loads(fit("--json", "--split", "part").out)
        assert (told["train"], told["val"], told["test"]["nodes"]) == (24, 12, 24)
        assert told["test"]["accuracy"] > 0.8
        nodes["split"] = nodes.pop("part")
        again = json.loads(fit("--json", out="again").out)
        assert (again["val_loss"], again["test"]) == (told["val_loss"], told["test"])
        table = pq.read_table(tmp_path / "again" / "predictions.parquet")
        assert table["role"].to_pylist() == ["train"] * 24 + ["validation"] * 12 + ["test"] * 24
        assert table["given"].to_pylist() == nodes["group"]

    @pytest.mark.slow
    def test_for_people(self, fit, tables, caplog):
        caplog.set_level("INFO", "g3nn")
        tables["nodes"] = {**node_columns(labelled=60), "split": ["train"] * 24 + ["val"] * 12 + ["test"] * 24}
        ran = fit()
        assert ran.code == 0
        for text in ("60 nodes", "3 classes", "24 labels to train on", "model gcn", "test accuracy", "results in"):
            assert text in ran.out
        assert "24 training nodes and 12 validation nodes" in caplog.text

    @pytest.mark.slow
    def test_a_label_of_each_class_leaves_nothing_to_validate_on(self, fit, tables):
        tables["nodes"]["group"][3:] = [None] * 57
        told = json.loads(fit("--json", "--no-audit").out, parse_constant=pytest.fail)
        assert (told["val"], told["val_accuracy"], told["val_loss"]) == (0, None, None)
        assert "no labelled node is left to validate on" in told["notes"][0]
        assert "model gcn, not validated\n" in fit("--no-audit", out="again").out

    @pytest.mark.slow
    def test_options_reach_the_classifier(self, fit, tmp_path):
        words = ("--model", "sbm-gcn", "--objective", "released", "--ensemble", "2", "--seed", "7", "--directed")
        told = json.loads(fit(*words, "--json").out)
        assert (told["model"], told["objective"], told["panel"][0]["replicas"]) == ("sbm-gcn", "released", 2)
        classifier = load_model(tmp_path / "out" / "model")
        assert (classifier.random_state, classifier.task_.directed) == (7, True)

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
        words = ("--source", "a", "--target", "b", "--weight", "w", "--drop-unknown-edges", "--no-audit")
        ran = fit("--json", *words)
        assert ran.code == 0
        told = json.loads(ran.out)
        assert told["edges"] == len(edges["source"]) - 6
        assert [note.partition("edges.csv")[2] for note in told["notes"]] == [
            ": 66 edges in 72 rows; the others are 1 with ids that no node has, 5 of weight 0",
            ": 'from' summed up in features of the nodes at both ends. --ignore leaves out what should not count.",
        ]
        assert ran.err == "".join(f"note: {note}\n" for note in told["notes"])

    @pytest.mark.slow
    def test_weights_are_found_and_can_be_ignored(self, fit, tables, tmp_path):
        tables["edges"]["weight"] = [1 + place % 3 for place in range(len(tables["edges"]["source"]))]
        (note,) = json.loads(fit("--json", "--no-audit").out)["notes"]
        assert "--weight none ignores them" in note
        assert load_model(tmp_path / "out").task_.weights is not None
        assert json.loads(fit("--json", "--no-audit", "--weight", "none", out="plain").out)["notes"] == []
        assert load_model(tmp_path / "plain").task_.weights is None

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
    def test_answers_alone(self, fit, tables, tmp_path, form):
        """With all columns of the node table, those with the name of an answer under another one."""
        tables["nodes"]["role"] = ["boss", "clerk"] * 30
        ran = fit("--out", str(tmp_path / f"answers.{form}"), "--keep", "--alpha", "0.4")
        assert ran.code == 0
        assert not (tmp_path / "out").exists()
        table = Source.open(tmp_path / f"answers.{form}", "nodes", Remarks()).read(text=["id"])
        assert table.column_names[:4] == ["id", "given", "role", "label"]
        assert table.column_names[-5:] == ["age", "member", "city", "notes", "role (table)"]
        assert table["role (table)"].to_pylist() == tables["nodes"]["role"]
        assert table["notes"].to_pylist() == tables["nodes"]["notes"]
        assert set(table["given"].to_pylist()[45:]) <= {None, ""}
        one, *_ = table["conformal_set"].to_pylist()
        assert one == (["art"] if form == "parquet" else "art")

    def test_quiet(self, fit, tables):
        tables["nodes"]["same"] = [1] * 60
        ran = fit("--quiet", "--no-audit")
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.endswith("column 'same': the same value in every row; left out\n")
        assert len(ran.err.splitlines()) == 1

    def test_edges_that_nobody_judged(self, fit, tmp_path):
        assert fit("--json", "--no-audit").code == 0
        table = pq.read_table(tmp_path / "out" / "edges.parquet")
        assert (len(table), table["probability"].null_count) == (71, 71)
        assert load_model(tmp_path / "out").graph_audit_ is None

    @pytest.mark.slow
    def test_files_can_be_read_by_those_whom_the_umask_lets(self, fit, tmp_path):
        before = os.umask(0o027)
        try:
            assert fit("--json").code == 0
        finally:
            os.umask(before)
        written = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
        assert len(written) == 10
        rights = {path.name: oct(path.stat().st_mode & 0o777) for path in written}
        assert rights == {path.name: "0o750" if path.is_dir() else "0o640" for path in written}

    @pytest.mark.slow
    def test_exported_tables_need_no_more_than_the_names(self, run_command, learnable, tmp_path):
        folder = export(learnable, tmp_path / "tables")
        files = ("--nodes", str(folder / "nodes.parquet"), "--edges", str(folder / "edges.csv"))
        words = ("--id", "id", "--label", "label", "--out", str(tmp_path / "out"), *SHORT, "--json")
        told = json.loads(run_command("fit", *files, *words).out)
        assert (told["train"], told["val"]) == (len(learnable.train), len(learnable.val))
        classifier = load_model(tmp_path / "out" / "model")
        np.testing.assert_array_equal(classifier.task_.edges, learnable.edges)
        np.testing.assert_array_equal(classifier.val_nodes_, learnable.val)


class TestCrashes:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "error", [OSError(28, "No space left on device"), RuntimeError("bug"), KeyboardInterrupt()]
    )
    def test_nothing_is_left_half_written(self, fit, tmp_path, monkeypatch, error):
        def fail(_: object, page: Path, **__: object) -> None:
            assert page.with_name("edges.parquet").exists()
            raise error

        monkeypatch.setattr("g3nn.estimator.showing.write_model_report", fail)
        if isinstance(error, RuntimeError):
            with pytest.raises(RuntimeError):
                fit("--json")
        else:
            ran = fit("--json")
            assert ran.code == (2 if isinstance(error, OSError) else 130)
            assert ran.out == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]

    @pytest.mark.slow
    @pytest.mark.parametrize("out", ["out", "out.csv"])
    def test_a_full_disk_does_not_cost_the_training(self, fit, tmp_path, monkeypatch, out):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(elsewhere))
        monkeypatch.setattr("g3nn.estimator.G3NNClassifier.fit", fitted_then_full(monkeypatch, elsewhere))
        ran = fit("--json", "--no-audit", out=out)
        assert (ran.code, ran.out) == (2, "")
        (rescued,) = elsewhere.iterdir()
        full = f"error: {tmp_path / out}: cannot be written: No space left on device."
        assert ran.err.splitlines()[-1] == f"{full} The results are in {rescued} instead."
        assert not (tmp_path / out).exists()
        if out == "out":
            assert load_model(rescued / out).classes_.tolist() == ["art", "law", "tea"]
        else:
            assert len((rescued / out).read_text().splitlines()) == 61


def fitted_then_full(monkeypatch: pytest.MonkeyPatch, room_is_left: Path) -> Any:
    """A fit after which nothing can be written any more, but in one folder."""
    fit, mkdir = G3NNClassifier.fit, Path.mkdir

    def refuse(path: Path, *words: Any, **options: Any) -> None:
        if room_is_left not in path.parents:
            raise OSError(28, "No space left on device")
        mkdir(path, *words, **options)

    def run(self: G3NNClassifier, *words: Any, **options: Any) -> G3NNClassifier:
        fitted = fit(self, *words, **options)
        monkeypatch.setattr(Path, "mkdir", refuse)
        return fitted

    return run


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
    for option in ("--nodes", "--text", "--split", "--drop-unknown-edges", "--dry-run"):
        assert option in ran.out


def test_bad_usage(run_command):
    for words in [(), ("--nodes", "n.csv"), ("--nodes", "n.csv", "--edgs", "e.csv")]:
        ran = run_command("fit", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "Traceback" not in ran.err
