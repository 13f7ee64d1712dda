"""BlogCatalog (Tang and Liu, 2009): bloggers, who is whose friend, and the groups that each has joined."""

from __future__ import annotations

from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.data.sources import BLOGCATALOG, raw_files
from g3nn.errors import Problems
from g3nn.outcomes import Tags
from g3nn.parse import Matrix
from g3nn.task import NodeTask

FEATURES = ("spectral", "identity")


def load_blogcatalog(
    share: float = 0.1, *, validation: float = 0.2, seed: int = 0, features: str = "spectral", size: int = 64
) -> NodeTask:
    """10,312 nodes, 333,983 edges and 39 tags (groups), 1.4 of them for a node on average; a split for each seed.

    share:      of the nodes whose tags are told; all others are for testing.
    validation: share of the told ones that is for validation, the rest is for training.
    features:   there are none in the data. "spectral": leading eigenvectors of the normalised adjacency matrix, `size`
                of them. "identity": node i has feature i alone.

    A split is drawn at random, but some node of every tag is for training: the rarest tag has 8 nodes.
    """
    _check(share, validation, seed, features, size)
    edges, tags = _graph()
    n = tags.shape[0]
    told = round(share * n)
    order, train = _order(tags, np.random.default_rng(seed)), told - max(1, round(validation * told))
    x = spectral_features(size) if features == "spectral" else sp.eye_array(n, dtype=np.float32, format="csr")
    split = order[:train], order[train:told], order[told:]
    return NodeTask.build(x, edges, tags, *split, outcome=Tags.name, name="blogcatalog")


@cache
def spectral_features(size: int) -> Matrix:
    """(n, size): rows of the eigenvectors of D^-1/2 A D^-1/2 with the largest eigenvalues, each row of mean square 1.

    The length of a row tells how many friends a node has; without it two rows are alike if their friends are. An
    eigenvector has no sign of its own: its largest entry is made positive.
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
    """Edges (2, E) and tags (n, T). The files number nodes and groups from 1 on."""
    files = raw_files("blogcatalog")
    edges, members = (_pairs(files[file]) - 1 for file in BLOGCATALOG)
    tags = np.zeros((edges.max() + 1, members[1].max() + 1))
    tags[members[0], members[1]] = 1
    return edges, tags


def _pairs(content: bytes) -> np.ndarray:
    """(2, lines) from lines "a,b"."""
    return np.array(content.replace(b",", b" ").split(), dtype=np.int64).reshape(-1, 2).T


def _order(tags: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All nodes in random order, but the first node of each tag comes before all others."""
    order = rng.permutation(tags.shape[0])
    first = np.unique(tags[order].argmax(0))
    return np.concatenate([order[first], np.delete(order, first)])


def _check(share: Any, validation: Any, seed: Any, features: Any, size: Any) -> None:
    problems = Problems()

    def number(argument: str, value: Any, low: float, high: float) -> None:
        if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
            problems.add(argument, repr(value), f"a number from {low} to {high}")

    def whole(argument: str, value: Any, low: int, high: int | None = None) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, Integral)
            or int(value) < low
            or (high and int(value) > high)
        ):
            problems.add(argument, repr(value), f"a whole number, at least {low}" + (f", at most {high}" * bool(high)))

    number("share", share, 0.01, 0.99)
    number("validation", validation, 0.01, 0.5)
    whole("seed", seed, 0)
    whole("size", size, 1, 512)
    problems.name("features", features, FEATURES)
    problems.raise_if_any()
