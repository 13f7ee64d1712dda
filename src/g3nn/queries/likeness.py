"""How alike the ends of a pair are, judged without the edge between them if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import row_dots
from g3nn.queries.learning import coordinates, unit_rows

_COORDINATES = 32
_ROUNDING = 1e-4
_CHUNK = 1 << 16
"""Pairs looked at together."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """Edges (2, E) between n nodes, and their features (n, d), if they have any."""

    edges: np.ndarray
    n: int
    features: Matrix | None

    @cached_property
    def _rows(self) -> Matrix | None:
        """All features, in rows of length one."""
        return None if self.features is None else unit_rows(self.features)

    @cached_property
    def _reduced(self) -> np.ndarray | None:
        """The same in few directions."""
        return None if self.features is None else coordinates(self.features, _COORDINATES)

    def fixed(self, pairs: np.ndarray) -> np.ndarray:
        """(P, 1), without features (P, 0): how alike the features of both ends are."""
        if self._rows is None:
            return np.zeros((pairs.shape[1], 0))
        alike = np.concatenate([row_dots(self._rows, part) for part in _parts(pairs)])
        return (np.sign(alike) * np.sqrt(abs(alike)))[:, None]

    def around(self, pairs: np.ndarray, own: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(P, 2): how many neighbours both ends have, rare ones counting more; and how alike each end is to the
        neighbours of the other. (P, 3) without features: the number of neighbours of both ends, and of the one that
        has fewer, instead.

        weights: (E,), how much each edge counts; own: (P,), that of the edge of a pair, 0 where there is none.
        """
        adjacency = self.adjacency(weights)
        degree = np.asarray(adjacency.sum(1)).ravel()
        shared = np.log1p(row_dots(adjacency, pairs, 1 / np.log(2 + degree)))
        if self._reduced is None:
            left, right = np.log1p(np.maximum(degree[pairs] - own, 0))
            return np.stack([shared, left + right, np.minimum(left, right)], axis=1)
        from g3nn.kernels import cpu_edges  # numba takes long to import.

        near, alike = adjacency.astype(np.float32) @ self._reduced, np.empty(pairs.shape[1])
        cpu_edges.ends_around(near, self._reduced, pairs[0], pairs[1], own, _ROUNDING, alike)
        return np.stack([shared, alike], axis=1)

    @cached_property
    def _pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows and columns of the adjacency matrix in compressed form, and where each edge is in it, both ways."""
        i, j = self.edges
        cells, place = np.unique(np.concatenate([i * self.n + j, j * self.n + i]), return_inverse=True)
        rows, columns = np.divmod(cells, self.n)
        return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.n))]), columns, place

    def adjacency(self, weights: np.ndarray) -> sp.csr_array:
        """(n, n), of edges that count as much as these weights (E,)."""
        indptr, indices, place = self._pattern
        values = np.bincount(place, np.concatenate([weights, weights]), minlength=len(indices))
        return sp.csr_array((values, indices, indptr), shape=(self.n, self.n))


def _parts(values: np.ndarray) -> list[np.ndarray]:
    """Columns in chunks; at least one."""
    return np.array_split(values, max(1, values.shape[1] // _CHUNK), axis=1)
