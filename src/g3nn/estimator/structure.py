"""Features for nodes that have none: what the graph around them looks like."""

from __future__ import annotations

import numpy as np

from g3nn.estimator.features import AS_IS, NUMBER, FeatureTable
from g3nn.kernels.sparse import normalised_adjacency

_MOST, _FEWEST, _CELLS = 64, 16, 4_000_000
"""Eigenvectors of a small graph, of a large one, and about how many numbers they may have in between."""

_EXACT = 500
"""Up to so many nodes the eigenvectors are computed exactly."""

_STEPS, _SPARE = 30, 8


def structural_features(edges: np.ndarray, n: int, seen: np.ndarray) -> FeatureTable:
    """(n, 1 + k): log(1 + degree) and the leading eigenvectors of the normalised adjacency matrix, each row of them of
    mean square 1, in the graph of the nodes that are `seen`; missing for all others. Directions are ignored."""
    inside = edges[:, np.isin(edges, seen).all(axis=0)]
    degrees = np.bincount(inside.ravel(), minlength=n)
    # Each isolated node would be an eigenvector of its own.
    linked = np.flatnonzero(degrees)
    number = np.zeros(n, dtype=np.int64)
    number[linked] = np.arange(len(linked))
    vectors = leading_vectors(number[inside], len(linked))
    lengths = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    matrix = np.full((n, 1 + vectors.shape[1]), np.nan, dtype=np.float32)
    matrix[seen, 0], matrix[seen, 1:] = np.log1p(degrees[seen]), 0.0
    matrix[linked, 1:] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return FeatureTable(matrix, kinds=np.array([NUMBER] + [AS_IS] * vectors.shape[1]))


def leading_vectors(edges: np.ndarray, n: int) -> np.ndarray:
    """(n, k): eigenvectors of D^-1/2 (A + I) D^-1/2 with the largest eigenvalues. The largest entry of each is
    positive.

    Large graphs: subspace iteration, which needs a fixed number of products and copes with equal eigenvalues, such as
    those of many components.
    """
    count = min(_MOST, max(_FEWEST, _CELLS // n), n)
    adjacency = normalised_adjacency(edges, n).astype(np.float32)
    if n <= _EXACT:
        _, vectors = np.linalg.eigh(adjacency.toarray().astype(np.float64))
    else:
        block = np.random.default_rng(0).standard_normal((n, count + _SPARE), dtype=np.float32)
        for _ in range(_STEPS):
            # Eigenvalues are shifted to 0..1, so that the largest in size are the largest.
            block, _ = np.linalg.qr(block + adjacency @ block)
        _, rotation = np.linalg.eigh(block.T @ (adjacency @ block))
        vectors = block @ rotation
    vectors = vectors[:, ::-1][:, :count]
    return vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
