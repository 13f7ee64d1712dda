"""BlogCatalog (Tang and Liu, 2009): bloggers, their friends, and the groups that they have joined."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.options import WHOLE, Rule, check_values
from g3nn.base.parse import Matrix
from g3nn.graph.datasets.sources import BLOGCATALOG, raw_files
from g3nn.graph.outcomes import Tags
from g3nn.graph.task import NodeTask

FEATURES = ("spectral", "identity")
_RULES = {
    "share": Rule(float, low=0.01, high=0.99),
    "validation": Rule(float, low=0.01, high=0.5),
    "seed": WHOLE,
    "size": Rule(int, low=1, high=512),
}


def load_blogcatalog(
    share: float = 0.1, *, validation: float = 0.2, seed: int = 0, features: str = "spectral", size: int = 64
) -> NodeTask:
    """10,312 nodes, 333,983 edges and 39 tags (groups), on average 1.4 for each node; a split for each seed.

    share:      share of the nodes that are labelled; all others are for test.
    validation: share of the labelled nodes that are for validation; the rest are for training.
    features:   the data has none. "spectral": the `size` leading eigenvectors of the normalised adjacency matrix.
                "identity": node i has only feature i.

    A split is random, except that some node of every tag is for training: the rarest tag has 8 nodes.
    """
    with Problems() as problems:
        check_values(locals(), _RULES, problems)
        problems.name("features", features, FEATURES)
    edges, tags = _graph()
    n = tags.shape[0]
    labelled = round(share * n)
    order, train = _order(tags, np.random.default_rng(seed)), labelled - max(1, round(validation * labelled))
    x = spectral_features(size) if features == "spectral" else sp.eye_array(n, dtype=np.float32, format="csr")
    split = order[:train], order[train:labelled], order[labelled:]
    return NodeTask.build(x, edges, tags, *split, outcome=Tags.name, name="blogcatalog")


@cache
def spectral_features(size: int) -> Matrix:
    """(n, size): rows of the eigenvectors of D^-1/2 A D^-1/2 with the largest eigenvalues, each row of mean square 1.

    The length of a row depends on the number of friends; without it, rows are alike if their friends are alike. The
    sign of an eigenvector is arbitrary: its largest entry is made positive.
    """
    from scipy.sparse.linalg import eigsh

    edges, tags = _graph()
    n = tags.shape[0]
    arcs = np.concatenate([edges, edges[::-1]], axis=1)
    scale = 1 / np.sqrt(np.bincount(arcs[0], minlength=n))
    adjacency = sp.csr_array((scale[arcs[0]] * scale[arcs[1]], (arcs[0], arcs[1])), shape=(n, n))
    _, vectors = eigsh(adjacency, k=size, which="LA", v0=np.random.default_rng(0).standard_normal(n))
    vectors = vectors[:, ::-1] * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(size)])[::-1]
    return (vectors / np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))).astype(np.float32)


@cache
def _graph() -> tuple[np.ndarray, np.ndarray]:
    """Edges (2, E) and tags (n, T). In the files, nodes and groups are numbered from 1."""
    files = raw_files("blogcatalog")
    edges, members = (_pairs(files[file]) - 1 for file in BLOGCATALOG)
    tags = np.zeros((edges.max() + 1, members[1].max() + 1))
    tags[members[0], members[1]] = 1
    return edges, tags


def _pairs(content: bytes) -> np.ndarray:
    """(2, lines) from lines "a,b"."""
    return np.array(content.replace(b",", b" ").split(), dtype=np.int64).reshape(-1, 2).T


def _order(tags: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All nodes in random order, except that the first node of each tag comes before all others."""
    order = rng.permutation(tags.shape[0])
    first = np.unique(tags[order].argmax(0))
    return np.concatenate([order[first], np.delete(order, first)])
