"""What the graph model knows of a node: its features in few coordinates, its neighbours' features, and its degree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler, normalize

from g3nn.parse import Matrix


def coordinates(features: Matrix, size: int) -> np.ndarray:
    """(n, r) float32 with r <= size: features of equal variance, and their leading directions where there are more.

    Every row has length one before it is reduced, so that a node with many features does not count more than others.
    """
    sparse = sp.issparse(features)
    # Sparse features keep their zeros: they are scaled, not centred.
    scaled = normalize(StandardScaler(with_mean=not sparse).fit_transform(features))
    r = min(size, *features.shape)
    if r < features.shape[1]:
        reduced: np.ndarray = TruncatedSVD(r, random_state=0).fit_transform(scaled)
    else:
        reduced = scaled.toarray() if sparse else scaled
    return np.ascontiguousarray(reduced, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class View:
    """The nodes as they look when only some of the edges are known.

    traits:  (n, (1 + hops) r): x, P x, P^2 x, ... side by side, where P = D^-1/2 A D^-1/2 holds the known edges, in
             both directions. Each part of a row has length one, or zero for a node without neighbours.
    sending, receiving: (n, 2): the logarithm of the degree and whether it is zero, for edges that leave a node and
             those that arrive; the same on an undirected graph.
    """

    traits: np.ndarray
    sending: np.ndarray
    receiving: np.ndarray

    @classmethod
    def of(cls, positions: np.ndarray, edges: np.ndarray, hops: int, directed: bool, share: float) -> View:
        """positions (n, r): see `coordinates`. edges (2, E): the known ones, a `share` of all."""
        n = positions.shape[0]
        known = sp.coo_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(n, n)).tocsr()
        both = known + known.T
        degrees = [known.sum(axis=1), known.sum(axis=0)] if directed else [both.sum(axis=1)] * 2
        sending, receiving = (_activity(degree, share) for degree in degrees)
        return cls(_traits(positions, both, hops), sending, receiving)


def _traits(positions: np.ndarray, adjacency: sp.csr_array, hops: int) -> np.ndarray:
    scale = 1.0 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1.0))
    parts = [positions]
    for _ in range(hops):
        parts.append(scale[:, None] * (adjacency @ (scale[:, None] * parts[-1])))
    return np.concatenate([normalize(part) for part in parts], axis=1).astype(np.float32)


def _activity(degree: np.ndarray, share: float) -> np.ndarray:
    """Degrees are counted in a share of the edges and stand for the degrees in all of them. Centred, so that the
    weight of the degree can be learned apart from the density of the graph."""
    logarithm = np.log1p(degree / share)
    return np.stack([logarithm - logarithm.mean(), degree == 0], axis=1).astype(np.float32)
