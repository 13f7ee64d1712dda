"""What the graph model knows of a node: its features in few coordinates, its neighbours' features, and its degree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.extmath import randomized_svd

from g3nn.parse import Matrix


def coordinates(features: Matrix, size: int) -> np.ndarray:
    """(n, r) float32 with r <= size + 1: features of equal variance, their leading directions if there are more.

    Rows of sparse features are brought to length one: a text counts by what is in it, not by how long it is. Dense ones
    are centred and get a constant coordinate: what follows looks at directions only, and so can tell small from large.
    """
    sparse = sp.issparse(features)
    scaled = StandardScaler(with_mean=not sparse).fit_transform(features)
    scaled = normalize(scaled) if sparse else scaled / np.sqrt(features.shape[1])
    r = min(size, *features.shape)
    if r < features.shape[1]:
        directions, lengths, _ = randomized_svd(scaled, r, random_state=0)
        found = directions * lengths
    else:
        found = scaled.toarray() if sparse else scaled
    if not sparse:
        found = np.concatenate([found, np.ones((len(found), 1))], axis=1)
    return np.ascontiguousarray(found, dtype=np.float32)


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
