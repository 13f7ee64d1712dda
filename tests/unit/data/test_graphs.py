"""Graphs in the folder that `G3NN_GRAPHS` names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import DataError, InputError
from g3nn.graph.datasets import GRAPHS, load, load_noisy, seeded, settings_of
from g3nn.graph.datasets.graphs import GRAPHS_FOLDER


@pytest.fixture
def parts() -> dict[str, np.ndarray]:
    """The content of a file: a ring whose classes are 3 and 8, and two nodes without a label."""
    x, ring = sp.csr_array(np.eye(200, 5, dtype=np.float32) * 7), np.arange(200)
    return {
        "edge_index": np.concatenate([[ring, np.roll(ring, 1)], [np.roll(ring, 1), ring]], axis=1),
        "y": np.where(ring < 30, 3, np.where(ring < 198, 8, -1)),
        **{"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape)},
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("G3NN_GRAPHS", str(tmp_path))
    return tmp_path


def test_a_graph_of_the_folder(folder, parts):
    np.savez(folder / "texas.npz", **parts)
    task = load("Texas")
    assert (task.name, task.setting, task.num_edges, task.num_classes) == ("texas", "standard", 200, 2)
    assert task.labels.tolist() == [0] * 30 + [1] * 168 + [-1] * 2
    assert np.bincount(task.labels[task.train]).tolist() == [15, 20]
    assert (len(task.val), len(task.test)) == (81, 82)
    assert task.features.max() == 7


def test_each_seed_has_a_split_of_its_own(folder, parts):
    np.savez(folder / "acm.npz", **parts)
    for setting in ("standard", "random-20", "uniform-30"):
        one, same, other = (load("acm", setting, seed=seed) for seed in (1, 1, 2))
        assert np.array_equal(one.train, same.train)
        assert not np.array_equal(one.train, other.train)
        assert seeded("acm", setting)
    noisy = load_noisy("acm", "uniform-50", seed=1)
    assert np.array_equal(noisy.task.train, load("acm", seed=1).train)
    assert noisy.wrong.sum() == round(0.5 * (35 + 81))
    assert [seeded("cora", setting) for setting in ("standard", "pair-30")] == [False, True]


def test_settings(folder):
    assert {settings_of(name) for name in GRAPHS} == {settings_of("texas")}
    with pytest.raises(InputError, match="setting: got 'reduced-label'"):
        load("actor", "reduced-label")
    with pytest.raises(InputError, match="seed: got -1"):
        load("actor", seed=-1)


def test_a_missing_file_says_where_to_put_it(folder, monkeypatch):
    with pytest.raises(DataError, match=rf"there is no actor\.npz in {folder}\. Set G3NN_GRAPHS"):
        load("actor")
    monkeypatch.delenv("G3NN_GRAPHS")
    with pytest.raises(DataError, match=r"it cannot be downloaded\. Set G3NN_GRAPHS"):
        load("actor")


WRONG = {
    "no classes": ({"y": np.full(200, -1)}, "texas.npz: "),
    "labels of other nodes": ({"y": np.arange(199) % 2}, "labels"),
    "labels in columns": ({"y": np.ones((200, 2), dtype=int)}, r"y is int64 of shape \(200, 2\)"),
    "labels that are no classes": ({"y": np.full(200, 0.5)}, "y is float64"),
    "edges beyond the nodes": ({"edge_index": np.array([[0], [200]])}, r"edges: .*node numbers 0\.\.199"),
    "edges of three": ({"edge_index": np.zeros((3, 3), dtype=int)}, "edges: got shape"),
    "features of other nodes": ({"x_shape": np.array([201, 5])}, "texas.npz: "),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_does_not_fit_is_refused(what, folder, parts):
    change, message = WRONG[what]
    np.savez(folder / "texas.npz", **parts | change)
    with pytest.raises(DataError, match=message) as raised:
        load("texas")
    assert str(raised.value).startswith(f"{folder / 'texas.npz'}: ")


def test_all_missing_keys_are_named(folder, parts):
    del parts["y"], parts["x_shape"]
    np.savez(folder / "texas.npz", **parts)
    with pytest.raises(DataError, match=r"texas\.npz: lacks y, x_shape\. Set G3NN_GRAPHS"):
        load("texas")


@pytest.mark.skipif(GRAPHS_FOLDER.file("texas") is None, reason="needs the graphs")
def test_the_graphs():
    classes = {name: load(name).num_classes for name in GRAPHS if GRAPHS_FOLDER.file(name)}
    known = dict(zip(GRAPHS, (8, 4, 3, 19, 9, 5, 5, 5, 2, 2, 2), strict=True))
    assert classes == {name: known[name] for name in classes}
