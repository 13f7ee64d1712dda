"""Tables with types of edges and kinds of nodes, from the command line to answers."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import g3nn
from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, load_model

TYPED = Path(os.environ.get("G3NN_TYPED", "/nonexistent"))
LABELS = {"counties": "democrats", "films": "imdb_score"}
FOLDERS = ("aifb", "counties", "films", "heco_acm", "heco_dblp")
pytestmark = pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly", "few_models")


def drawn(papers: int = 90, people: int = 12, seed: int = 0) -> dict[str, dict[str, list[Any]]]:
    """Papers whose authors write about one topic, and whose editors say nothing: only types tell them apart."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, papers)
    author = rng.integers(0, people // 2, papers) * 2 + topic
    editor = rng.integers(0, people, papers)
    ids, humans = [f"paper{i}" for i in range(papers)], [f"person{i}" for i in range(people)]
    nodes = {
        "id": ids + humans,
        "kind": ["paper"] * papers + ["person"] * people,
        "topic": [["art", "law"][t] if i < 60 else None for i, t in enumerate(topic)] + [None] * people,
        "pages": [*rng.integers(3, 30, papers).tolist(), *[None] * people],
    }
    edges = {
        "source": ids * 2,
        "target": [humans[i] for i in (*author, *editor)],
        "type": ["by"] * papers + ["edited by"] * papers,
    }
    truth = {"id": ids, "topic": [["art", "law"][t] for t in topic]}
    return {"nodes": nodes, "edges": edges, "truth": truth}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for name, columns in drawn().items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def command(tables: Path) -> list[str]:
    given = ["--nodes", str(tables / "nodes.parquet"), "--edges", str(tables / "edges.parquet"), "--id", "id"]
    return [*given, "--label", "topic", "--effort", "quick", "--ensemble", "1", "--device", "cpu"]


def test_fit_and_predict(run_command, tables, tmp_path):
    out = tmp_path / "out"
    ran = run_command("fit", *command(tables), "--target-kind", "paper", "--out", str(out), "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert any("a column 'type'; its 2 texts are the types of the edges" in note for note in told["notes"])
    found = pq.read_table(out / "predictions.parquet").to_pylist()
    truth = pq.read_table(tables / "truth.parquet")["topic"].to_pylist()
    asked = [row["label"] == right for row, right in zip(found[60:90], truth[60:], strict=True)]
    assert np.mean(asked) > 0.8
    assert {row["role"] for row in found[90:]} == {"never-labelled"}
    assert load_model(out / "model").fitted_.task.relations.names == ("by", "edited by")
    new = {"id": ["new0", "new1"], "kind": ["paper"] * 2, "pages": [9, 9]}
    links = {"source": ["new0", "new0", "new1", "new1"], "target": ["person0", "person1", "person1", "person0"]}
    links["type"] = ["by", "edited by"] * 2
    pq.write_table(pa.table(new), tmp_path / "new.parquet")
    pq.write_table(pa.table(links), tmp_path / "links.parquet")
    files = ["--nodes", str(tmp_path / "new.parquet"), "--edges", str(tmp_path / "links.parquet")]
    ran = run_command("predict", str(out / "model"), *files, "--out", str(tmp_path / "answers.parquet"))
    assert ran.code == 0, ran.err
    assert pq.read_table(tmp_path / "answers.parquet")["label"].to_pylist() == ["art", "law"]
    pq.write_table(pa.table({**links, "type": ["by", "sold by"] * 2}), tmp_path / "links.parquet")
    ran = run_command("predict", str(out / "model"), *files, "--out", str(tmp_path / "more.parquet"))
    assert ran.code != 0
    assert "got 'sold by'; expected those of the fit: by, edited by" in ran.err


def test_cells_that_name_nodes_get_no_answers(tmp_path):
    found = drawn()
    by, papers = dict(zip(found["edges"]["source"][:90], found["edges"]["target"][:90], strict=True)), 90
    nodes = {name: cells[:papers] for name, cells in found["nodes"].items() if name != "kind"}
    nodes["author"] = [by[id] for id in nodes["id"]]
    graph = g3nn.read_tables(pa.table(nodes), id="id", label="topic", edges_from=["author"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        classifier = G3NNClassifier(effort="quick", ensemble=1, device="cpu").fit(graph)
    assert classifier.answer_table()["id"].to_pylist() == nodes["id"]
    answers = classifier.predict()
    assert len(answers) == papers
    assert classifier.predict_set().shape[0] == papers
    assert np.mean(answers[60:] == np.array(found["truth"]["topic"][60:])) > 0.8
    classifier.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(), answers)
    new = pa.table({"id": ["n0", "n1"], "pages": [5, 6], "author": ["person0", "person1"]})
    assert again.predict(new).tolist() == ["art", "law"]


def test_a_folder_without_nodes_that_have_no_row(run_command, tables, tmp_path):
    found, out = drawn()["nodes"], tmp_path / "out"
    nodes = {name: found[name][:90] for name in ("id", "topic", "pages")} | {"venue": ["ab"[i % 2] for i in range(90)]}
    pq.write_table(pa.table(nodes), tables / "papers.parquet")
    words = command(tables)
    words[1] = str(tables / "papers.parquet")
    ran = run_command("fit", *words, "--edges-from", "venue", "--drop-unknown-edges", "--keep", "--out", str(out))
    assert ran.code != 0
    assert "180 of 180 edges with ids that no node has" in ran.err
    pq.write_table(pa.table({"source": ["paper0"], "target": ["paper1"]}), tables / "links.parquet")
    words[3] = str(tables / "links.parquet")
    ran = run_command("fit", *words, "--edges-from", "venue", "--keep", "--out", str(out), "--json")
    assert ran.code == 0, ran.err
    written = pq.read_table(out / "predictions.parquet")
    assert written["id"].to_pylist() == nodes["id"]
    assert written["venue"].to_pylist() == nodes["venue"]
    edges = pq.read_table(out / "edges.parquet")
    assert {"venue: a", "venue: b"} < {*edges["target"].to_pylist()}
    assert (out / "report.html").is_file()


def test_frames(tables):
    nodes, edges = (pq.read_table(tables / f"{name}.parquet") for name in ("nodes", "edges"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        how = {"model": "label-propagation", "ensemble": 1, "device": "cpu"}
        typed = G3NNClassifier(**how).fit(nodes, "topic", edges, id="id")
        plain = G3NNClassifier(**how).fit(nodes, "topic", edges, id="id", edge_types="none", node_kinds="none")
    assert typed.task_.relations.names == ("by", "edited by")
    assert plain.task_.relations is None
    with pytest.raises(InputError, match="edge_types: got values beside data frames"), pytest.warns(G3NNWarning):
        G3NNClassifier(**how).fit(nodes, "topic", edges, id="id", edge_types=np.zeros(180, dtype=int))


@pytest.mark.skipif(not TYPED.is_dir(), reason="no typed tables here")
@pytest.mark.parametrize("name", FOLDERS)
def test_shared_tables(run_command, name):
    files = ["--nodes", str(TYPED / name / "nodes.parquet"), "--edges", str(TYPED / name / "edges.parquet")]
    label = LABELS.get(name, "label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        graph = g3nn.read_tables(*files[1::2], id="id", label=label)
    assert (graph.relations is None) == (name == "counties")
    words = ["--id", "id", "--label", label, "--dry-run", "--json", "--effort", "quick", "--device", "cpu"]
    ran = run_command("fit", *files, *words)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["seconds"] > 0
