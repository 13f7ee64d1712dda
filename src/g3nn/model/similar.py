"""Nodes with similar features, from which one without edges may hear instead."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from g3nn.base.parse import Matrix

_CELLS, _MOST = 1 << 23, 10_000
"""Similarities that are held at once, and how many nodes are looked at."""
_NOTHING = 1e-3
"""Features that are shorter than this share of the mean say nothing: they are means where nothing was known."""


def with_features(features: Matrix, nodes: np.ndarray) -> np.ndarray:
    """Those of the nodes (m,) about which features say something."""
    lengths = _lengths(features)
    return nodes[lengths[nodes] > _NOTHING * lengths.mean()]


def most_similar(features: Matrix, nodes: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """(m, count): for each of the nodes (m,) those `among` others whose features have the largest cosine with its own.
    Where there are very many others, evenly spaced ones are looked at."""
    among = among[np.linspace(0, len(among) - 1, min(len(among), _MOST)).astype(np.int64)]
    rows, others = _of_length_one(features[nodes]), _of_length_one(features[among]).T
    found, step = np.empty((len(nodes), count), dtype=np.int64), max(_CELLS // len(among), 1)
    for start in range(0, len(nodes), step):
        cosines = rows[start : start + step] @ others
        cosines = cosines.toarray() if sp.issparse(cosines) else cosines
        found[start : start + step] = np.argpartition(-cosines, min(count, len(among) - 1), axis=1)[:, :count]
    return np.asarray(among[found])


def _of_length_one(features: Matrix) -> Matrix:
    scale = 1 / np.maximum(_lengths(features), 1e-12)
    return sp.csr_array(sp.diags_array(scale) @ features) if sp.issparse(features) else features * scale[:, None]


def _lengths(features: Matrix) -> np.ndarray:
    squares = features.multiply(features) if sp.issparse(features) else features**2
    return np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64).ravel())
