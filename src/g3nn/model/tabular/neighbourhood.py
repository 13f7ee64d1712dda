"""Features of a node and of those around it, as columns for a model that knows no graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD

from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import neighbour_mean, neighbourhoods

_NARROW = 128
"""Up to so many features two steps are taken, otherwise one."""

_MOST_CELLS, _COMPONENTS = 100_000_000, 64
"""Where features and means would have more numbers than that, features are reduced first."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """How features of nodes become columns. basis: (d, r), what they are multiplied by; None: they stay. hops: how many
    steps are taken."""

    basis: np.ndarray | None
    hops: int

    @classmethod
    def fit(cls, features: Matrix, edges: np.ndarray, seed: int = 0) -> Neighbourhood:
        """The basis are the leading singular vectors of these features."""
        n, d = features.shape
        if d <= _NARROW:
            return cls(None, 2)
        # A mean over neighbours has no more entries than they have together.
        cells = features.nnz / n * (n + 2 * edges.shape[1]) if sp.issparse(features) else 2 * n * d
        if cells <= _MOST_CELLS:
            return cls(None, 1)
        svd = TruncatedSVD(min(_COMPONENTS, n), random_state=seed).fit(features)
        return cls(svd.components_.T.astype(np.float32), 2)

    def apply(self, features: Matrix, edges: np.ndarray, weights: np.ndarray | None = None) -> Matrix:
        """The columns of `neighbour_features` for nodes with features (n, d)."""
        reduced = features if self.basis is None else features @ self.basis
        return neighbour_features(reduced, edges, weights, self.hops)


def neighbour_features(features: Matrix, edges: np.ndarray, weights: np.ndarray | None = None, hops: int = 2) -> Matrix:
    """(n, (hops + 1) d + 1): x, its mean over the neighbours, the mean of that over the neighbours and so on, and
    log(1 + degree); sparse if x is. The means of a node without neighbours are 0. Directions are ignored."""
    n = features.shape[0]
    mean = neighbour_mean(edges, n, weights)
    parts = [features]
    for _ in range(hops):
        parts.append(mean @ parts[-1])
    degree = np.log1p(neighbourhoods(edges, n, weights).sum(axis=1) - 1)[:, None]
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([*parts, degree]), dtype=np.float32)
    return np.concatenate([*parts, degree], axis=1, dtype=np.float32)
