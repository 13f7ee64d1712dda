from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from small_tables import read_edges, read_nodes

import g3nn
from g3nn.base.errors import DataError, InputError
from g3nn.base.parse import UNKNOWN
from g3nn.graph.datasets.planetoid import row_normalised
from g3nn.graph.tables.edge_table import join
from g3nn.graph.tables.frames import EXAMPLE_FILES, export
from g3nn.graph.tables.remarks import Remarks


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_the_tables_give_back_the_task(tmp_path, name):
    task = g3nn.load(name)
    folder = export(task, tmp_path / "tables")
    assert sorted(path.name for path in folder.iterdir()) == sorted(EXAMPLE_FILES)
    nodes = read_nodes(folder / "nodes.parquet", "id", "label", split="split")
    words = np.stack([nodes.features[name].to_numpy() for name in nodes.features.column_names], axis=1)
    assert (row_normalised(sp.csr_array(words.astype(np.float32))) != task.features).nnz == 0
    edges = read_edges(folder / "edges.csv")
    np.testing.assert_array_equal(join(edges, nodes.ids, nodes.typed, Remarks())[0], task.edges)
    assert nodes.labels is not None
    assert nodes.split is not None
    labels = nodes.labels.values
    known = np.concatenate([task.train, task.val])
    np.testing.assert_array_equal(np.flatnonzero(labels != UNKNOWN), known)
    np.testing.assert_array_equal(labels[known], task.labels[known])
    np.testing.assert_array_equal(np.flatnonzero((nodes.split == "train") & (labels != UNKNOWN)), task.train)
    np.testing.assert_array_equal(np.flatnonzero(nodes.split == "val"), task.val)
    np.testing.assert_array_equal(np.flatnonzero(nodes.split == "test"), task.test)


def test_the_answers_are_kept_apart(tmp_path, path_task):
    folder = export(path_task, tmp_path / "tables")
    answers = pq.read_table(folder / "answers.parquet").to_pydict()
    assert answers == {"id": ["paper-5"], "label": [1]}
    nodes = pq.read_table(folder / "nodes.parquet").to_pydict()
    assert nodes["label"] == [0, 1, 0, 1, 0, None, None, None]
    assert nodes["split"] == ["train"] * 4 + ["val", "test", None, None]
    assert (folder / "edges.csv").read_text().splitlines()[:2] == ["source,target", "paper-0,paper-1"]


@pytest.mark.parametrize("sparse", [True, False])
def test_other_features_are_written_as_they_are(tmp_path, path_task, sparse):
    values = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    task = replace(path_task, features=sp.csr_array(values) if sparse else values)
    table = pq.read_table(export(task, tmp_path / "tables") / "nodes.parquet")
    assert table.column_names[3:] == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(np.stack([table[name].to_numpy() for name in ("x0", "x1", "x2")], axis=1), values)


def test_shares_that_are_no_words_stay_shares(tmp_path, path_task):
    values = np.tile(np.array([[0.25, 0.75, 0.0]], dtype=np.float32), (8, 1))
    table = pq.read_table(export(replace(path_task, features=values), tmp_path / "tables") / "nodes.parquet")
    assert table["w1"].to_pylist() == [0.75] * 8


def test_a_folder_that_is_in_use(tmp_path, path_task):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="which is not empty; expected a new or an empty folder"):
        export(path_task, tmp_path)
    with pytest.raises(InputError, match="which is a file"):
        export(path_task, tmp_path / "notes.txt")
    with pytest.raises(InputError, match="inside one that exists"):
        export(path_task, tmp_path / "deep" / "tables")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_filled(tmp_path, path_task):
    (tmp_path / "tables").mkdir()
    export(path_task, tmp_path / "tables")
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_nothing_is_left_when_writing_fails(tmp_path, path_task, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        export(path_task, tmp_path / "tables")
    assert list(tmp_path.iterdir()) == []


def test_only_classes_are_exported(tmp_path):
    task = g3nn.synthetic_values(nodes=100, val=20, seed=0)
    with pytest.raises(InputError, match="labels that are classes"):
        export(task, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()
