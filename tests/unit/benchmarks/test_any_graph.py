"""The splits, forms, records and tables of `benchmarks/any_graph.py`. Only tiny graphs are trained on."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import g3nn

FOLDER = Path(__file__).parents[3] / "benchmarks"
SIZES = (100, 30, 7, 1)
MODULES = ("any_graph", "any_graph_report", "classifier", "portfolio", "records")


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Scripts import each other from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            del sys.modules[name]


@pytest.fixture
def any_graph(scripts: dict[str, ModuleType]) -> Any:
    return scripts["any_graph"]


@pytest.fixture
def report(scripts: dict[str, ModuleType]) -> Any:
    return scripts["any_graph_report"]


@pytest.fixture
def y() -> np.ndarray:
    """Classes of the sizes above and 5 nodes without a label, in any order."""
    labels = np.repeat([0, 1, 2, 3, -1], [*SIZES, 5])
    return np.random.default_rng(0).permutation(labels)


@pytest.mark.parametrize(
    ("split", "train_sizes", "val_nodes"),
    [("5", [5, 5, 3, 1], 62), ("20", [20, 15, 3, 1], 49), ("10/10/80", [10, 3, 1, 1], 14)],
)
def test_parts_are_disjoint_and_hold_every_label_once(any_graph, y, split, train_sizes, val_nodes):
    train, val, test = any_graph.parts(y, split, seed=1)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, val, test])), np.flatnonzero(y >= 0))
    assert np.bincount(y[train], minlength=4).tolist() == train_sizes
    assert len(val) == val_nodes
    if split == "10/10/80":
        assert np.bincount(y[val], minlength=4).tolist() == [10, 3, 1, 0]


def test_parts_follow_from_the_seed(any_graph, y):
    one, same, other = (any_graph.parts(y, "20", seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_at_most_500_nodes_validate(any_graph):
    assert len(any_graph.parts(np.repeat([0, 1], 1000), "5", seed=0)[1]) == 500


def test_forms(any_graph):
    x = sp.csr_array(np.array([[1, 3, 0, 2], [0, 1, 0, 2], [0, 0, 0, 2]], dtype=np.float32))
    np.testing.assert_allclose(any_graph.formed(x, "rows").sum(axis=1), 1, rtol=1e-6)
    scaled = any_graph.formed(x, "scaled").toarray()
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(scaled[:, 3], 2)
    assert (any_graph.formed(x, "raw") != x).nnz == 0


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A folder with one graph, whose classes are 3 and 8."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    x, ring = sp.csr_array(np.eye(20)), np.arange(20)
    arcs = np.concatenate([[ring, np.roll(ring, 1)], [np.roll(ring, 1), ring]], axis=1)
    arrays = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": x.shape}
    np.savez(folder / "ring.npz", edge_index=arcs, y=np.where(ring < 8, 3, np.where(ring < 18, 8, -1)), **arrays)
    return folder


def test_a_graph_of_the_folder(any_graph, graphs):
    task = any_graph.load("ring", "5", 0, graphs)
    assert (task.num_edges, task.num_classes) == (20, 2)
    assert task.labels.tolist() == [0] * 8 + [1] * 10 + [-1] * 2
    assert (len(task.train), len(task.val), len(task.test)) == (9, 4, 5)


def record(graph: str, split: str, method: str, accuracy: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    own = {"ece": 0.02, "coverage": 0.91, "set_size": 1.5} if method in ("default", "believing") else {}
    figures = {"accuracy": accuracy, "val_loss": 0.5, "seconds": 8.0, "test_nodes": 2000}
    return {"graph": graph, "split": split, "seed": seed, "form": "raw", "method": method, **figures, **own, **more}


@pytest.fixture
def records() -> list[dict[str, Any]]:
    """Two graphs and Pubmed. Seed 1 of texas has no portfolio yet, so it counts nowhere but in the change of form."""
    return [
        record("texas", "20", "default", 0.8, test_nodes=90, ece=0.3),
        record("texas", "20", "default", 0.6, seed=1, test_nodes=90, ece=0.5),
        record("texas", "20", "portfolio", 0.7),
        record("texas", "20", "trees", 0.75),
        record("texas", "20", "default", 0.79, form="rows"),
        record("texas", "20", "default", 0.63, seed=1, form="rows"),
        record("acm", "20", "default", 0.9, coverage=0.89),
        record("acm", "20", "portfolio", 0.92),
        record("acm", "20", "trees", 0.5),
        record("acm", "20", "default", 0.86, form="rows"),
        record("acm", "20", "believing", 0.91, seconds=4.0),
        record("texas", "20", "believing", 0.84, seed=1, seconds=16.0),
        record("acm", "10/10/80", "default", 0.94),
        record("acm", "10/10/80", "portfolio", 0.9),
        record("acm", "10/10/80", "trees", 0.93),
        record("pubmed", "20", "default", 0.5),
        record("pubmed", "20", "portfolio", 0.9),
        record("pubmed", "10/10/80", "default", 0.89),
        record("pubmed", "public", "default", 0.81),
    ]


def test_the_table_of_a_split(report, records):
    lines = report.table(records).split("\n\n")[1].splitlines()
    assert lines[2:] == [
        "| acm | 0.900 | 0.920 | 0.500 | -0.020 | 0.020 | 0.890 | 8 |",
        "| texas | 0.800 | 0.700 | 0.750 | +0.050 | 0.300 | 0.910 | 8 |",
        "| pubmed | 0.500 | 0.900 | – | -0.400 | 0.020 | 0.910 | 8 |",
        "| mean | 0.733 | 0.840 | 0.625 | -0.123 | 0.113 | 0.903 | 8 |",
    ]


def test_the_targets(report, records):
    found = report.targets(report.Results.of(records))
    assert found == {
        "20 labels: default - portfolio, mean of the others": "+0.0400",
        "20 labels: default - portfolio, worst of the others": "-0.0200 (acm)",
        "20 labels: change if row-normalised, mean of the others": "-0.0150",
        "20 labels: change if row-normalised, largest of all graphs": "-0.0400 (acm)",
        "20 labels: change if scaled, mean of the others": "–",
        "20 labels: change if scaled, largest of all graphs": "–",
        "5 labels: default - portfolio, mean of the others": "–",
        "10/10/80: default - better peer, mean of the others": "+0.0100",
        "10/10/80: accuracy on pubmed": "0.8900",
        "public split: accuracy on cora": "–",
        "public split: accuracy on citeseer": "–",
        "public split: accuracy on pubmed": "0.8100",
        "what doubting edges changes in the accuracy of the default": "-0.1250",
        "and in its time, as a factor": "1.25",
        "mean ECE of graphs with at least 1,000 test nodes": "0.0200 (20: 0.0200, 10/10/80: 0.0200, public: 0.0200)",
        "mean coverage of 90 % sets": "0.9067 (20: 0.9033, 10/10/80: 0.9100, public: 0.9100)",
    }


def test_the_drawing_has_a_bar_for_every_comparison(report, records):
    root = ElementTree.fromstring(report.drawing(records))
    bars = [bar.get("class") for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars == ["better", "worse", "worse", "better"]
    names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")][1:4]
    assert names == ["texas", "acm", "pubmed"]


def told(any_graph: Any, monkeypatch: pytest.MonkeyPatch, *words: object) -> str:
    """What the script says when it refuses."""
    monkeypatch.setattr(sys, "argv", ["any_graph.py", *map(str, words)])
    with pytest.raises(SystemExit) as refused:
        any_graph.main()
    return str(refused.value)


@pytest.mark.parametrize("text", ["", "{}", "[{]", '[{"graph": "ring"}]', "[1]"])
def test_a_damaged_file_is_refused_and_kept(any_graph, graphs, tmp_path, monkeypatch, text):
    out = tmp_path / "records.json"
    out.write_text(text)
    said = told(any_graph, monkeypatch, "--graphs", graphs, "--only", "ring", "--out", out, "--device", "cpu")
    assert said.startswith(f"--out: got {out}")
    assert "expected a file of records" in said
    assert out.read_text() == text
    assert told(any_graph, monkeypatch, "--table", out).startswith(f"--table: got {out}")


def test_every_problem_is_told_at_once(any_graph, graphs, tmp_path, monkeypatch):
    np.savez(graphs / "other.npz", y=np.zeros(3))
    (graphs / "text.npz").write_text("no arrays")
    words = ["--graphs", graphs, "--only", "other", "text", "rign", "--seeds", 0, "--out", tmp_path / "no" / "a.json"]
    said = told(any_graph, monkeypatch, *words)
    for part in ("--seeds: got 0", "no/a.json", "Did you mean 'ring'?", "other.npz without edge_index", "text.npz"):
        assert part in said
    assert "--graphs: got nowhere" in told(any_graph, monkeypatch, "--graphs", "nowhere", "--only", "cora")


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(any_graph, graphs, tmp_path, monkeypatch):
    """The one job that is left is measured, in another process, and the records that were there stay."""
    out = tmp_path / "records.json"
    stored = [record("ring", "5", "default", 0.1), record("ring", "5", "portfolio", 0.2)]
    out.write_text(json.dumps(stored))
    words = ["--graphs", graphs, "--only", "ring", "--splits", "5", "--seeds", "1", "--out", out, "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["any_graph.py", *map(str, words)])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    any_graph.main()
    *before, new = json.loads(out.read_text())
    assert before == stored
    assert (new["method"], new["columns"], new["test_nodes"]) == ("trees", 20, 5)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_jobs(any_graph):
    given = {"splits": ("20", "public"), "seeds": 1, "methods": ("default", "trees"), "forms": True}
    jobs = list(any_graph.planned(["cora", "ring"], any_graph.argparse.Namespace(**given)))
    assert [(job.graph, job.split, job.form, job.method) for job in jobs] == [
        ("cora", "20", "raw", "default"),
        ("cora", "20", "raw", "trees"),
        ("cora", "20", "rows", "default"),
        ("cora", "20", "scaled", "default"),
        ("cora", "public", "raw", "default"),
        ("cora", "public", "raw", "trees"),
        ("ring", "20", "raw", "default"),
        ("ring", "20", "raw", "trees"),
        ("ring", "20", "rows", "default"),
        ("ring", "20", "scaled", "default"),
    ]


def test_the_lowest_validation_loss_answers(scripts, monkeypatch):
    peers = scripts["portfolio"]
    monkeypatch.setattr(peers, "EPOCHS", 3)
    task = g3nn.synthetic(nodes=60, classes=2, labels_per_class=5, val=20, seed=0)
    found = peers.portfolio(task, seed=0, device="cpu")
    assert [(one["model"], one["form"]) for one in found["tried"]] == [
        (name, form) for form in ("raw", "rows") for name in ("mlp", "gcn", "gat", "sage", "appnp", "gcnii")
    ]
    losses = [one["val_loss"] for one in found["tried"]]
    chosen = found["tried"][int(np.argmin(losses))]
    assert (found["model"], found["accuracy"]) == (f"{chosen['model']} {chosen['form']}", chosen["accuracy"])
    assert len(set(losses)) == 12


def test_trees_keep_the_columns_that_tell_the_training_classes_apart(scripts, monkeypatch):
    peers = scripts["portfolio"]
    monkeypatch.setattr(peers, "MOST_COLUMNS", 1)
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 60)
    features = np.stack([rng.normal(size=120), np.ones(120), labels + 0.1 * rng.normal(size=120)], axis=1)
    shuffled = rng.permutation(120)
    split = {"train": shuffled[:60], "val": shuffled[60:80], "test": shuffled[80:]}
    task = g3nn.NodeTask.build(features, [[0, 1], [1, 2]], labels, **split)
    found = peers.boosted_trees(task, seed=0)
    assert (found["columns"], found["accuracy"]) == (1, 1.0)
