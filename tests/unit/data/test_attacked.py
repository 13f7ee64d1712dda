from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import DataError, InputError
from g3nn.graph.datasets import load, load_noisy, settings_of
from g3nn.graph.datasets.graphs import ATTACKED, ATTACKED_FOLDER, METATTACK, attacked


@pytest.fixture
def parts(monkeypatch) -> dict[str, np.ndarray]:
    """The content of a file: four nodes on a path, of which the attacker joins the ends and cuts the middle."""
    monkeypatch.setitem(ATTACKED, "cora", (2, 2))
    x = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    return {
        **{"y": np.array([0, 1, 0, 1], dtype=np.int16), "train": np.array([0, 1]), "val": np.array([2])},
        **{"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape)},
        "test": np.array([3]),
        "edges_clean": np.array([[0, 1, 2], [1, 2, 3]]),
        "edges_meta_0.25": np.array([[1, 0, 3], [0, 3, 2]]),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("G3NN_ATTACKED", str(tmp_path))
    return tmp_path


def test_a_poisoned_graph_and_what_was_injected(folder, parts):
    np.savez(folder / "cora.npz", **parts)
    noisy = load_noisy("Cora", "metattack-25")
    assert noisy.task.edges.tolist() == [[0, 0, 2], [1, 3, 3]]
    assert noisy.injected.tolist() == [False, True, False]
    assert (noisy.task.name, noisy.task.setting, noisy.task.num_features) == ("cora", "metattack-25", 3)
    assert [noisy.task.train.tolist(), noisy.task.val.tolist(), noisy.task.test.tolist()] == [[0, 1], [2], [3]]
    clean = load_noisy("cora", "metattack-0")
    assert clean.task.edges.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert not clean.injected.any()


def test_a_missing_file_says_where_to_put_it(folder, monkeypatch):
    assert ATTACKED_FOLDER.file("cora") is None
    with pytest.raises(DataError, match=rf"there is no cora\.npz in {folder}\. Set G3NN_ATTACKED"):
        attacked("cora", "metattack-5")
    monkeypatch.delenv("G3NN_ATTACKED")
    with pytest.raises(DataError, match=r"it cannot be downloaded\. Set G3NN_ATTACKED"):
        attacked("cora", "metattack-5")


def test_all_missing_keys_are_named(folder, parts):
    del parts["train"], parts["x_data"]
    np.savez(folder / "cora.npz", **parts)
    with pytest.raises(DataError, match=r"cora\.npz: lacks train, x_data, edges_meta_0\.1\."):
        attacked("cora", "metattack-10")


WRONG = {
    "labels of another graph": ({"y": np.array([0, 1, 1, 1])}, r"classes of \[1, 3\], but cora has 4 in .* \[2, 2\]"),
    "another size": ({"y": np.array([0, 1, 0, 1, 0])}, r"5 nodes in classes of \[3, 2\], but cora has 4"),
    "labels below zero": ({"y": np.array([0, -1, 0, -1])}, "labels"),
    "labels in columns": ({"y": np.array([[0], [1], [0], [1]])}, "labels"),
    "labels that are no classes": ({"y": np.array([0.5, 1.5, 0.5, 1.5])}, "labels"),
    "edges beyond the nodes": ({"edges_meta_0.25": np.array([[0], [4]])}, r"edges: .*node numbers 0\.\.3"),
    "clean edges beyond the nodes": ({"edges_clean": np.array([[0], [4]])}, r"edges: .*node numbers 0\.\.3"),
    "edges of three": ({"edges_meta_0.25": np.zeros((3, 3), dtype=int)}, "edges: got shape"),
    "a split beyond the nodes": ({"test": np.array([9])}, "test"),
    "features of other nodes": ({"x_shape": np.array([5, 3])}, "cora.npz: "),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_does_not_fit_is_refused(what, folder, parts):
    change, message = WRONG[what]
    np.savez(folder / "cora.npz", **parts | change)
    with pytest.raises(DataError, match=message) as raised:
        attacked("cora", "metattack-25")
    assert str(raised.value).startswith(f"{folder / 'cora.npz'}: ")


def test_something_else_is_refused(folder):
    np.save(folder / "array.npy", np.zeros(3))
    for content in (b"", b"not a zip file", b"PK\x03\x04", (folder / "array.npy").read_bytes()):
        (folder / "cora.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"cora\.npz: not an \.npz file that can be read"):
            attacked("cora", "metattack-25")


def test_only_three_graphs_were_attacked():
    assert [
        name for name in ("cora", "citeseer", "pubmed", "polblogs") if set(METATTACK) <= set(settings_of(name))
    ] == [*ATTACKED]
    with pytest.raises(InputError, match="setting: got 'metattack-5'"):
        load("pubmed", "metattack-5")
    with pytest.raises(InputError, match="setting: got 'standard'; expected metattack-0"):
        load("polblogs")


@pytest.mark.skipif(ATTACKED_FOLDER.file("cora") is None, reason="needs the poisoned graphs")
def test_the_graphs_of_the_study():
    for name in ATTACKED:
        clean, edges = load(name, "metattack-0"), 0
        for setting, percent in METATTACK.items():
            noisy = load_noisy(name, setting)
            removed = clean.num_edges - (~noisy.injected).sum()
            edges = max(edges, noisy.injected.sum() + removed)
            assert noisy.injected.sum() + removed <= round(percent / 100 * clean.num_edges) + 1, (name, setting)
        assert edges > 0.2 * clean.num_edges
