"""How alike the ends of a pair are, judged without the edge between them if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from g3nn.audit.learning import coordinates, unit_rows
from g3nn.parse import Matrix
from g3nn.sparse import row_dots

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
        i, j = self.edges
        half = sp.csr_array((weights, (i, j)), shape=(self.n, self.n))
        adjacency = sp.csr_array(half + half.T)
        degree = np.asarray(adjacency.sum(1)).ravel()
        shared = row_dots(adjacency, pairs, 1 / np.log(2 + degree))
        if self._reduced is None:
            left, right = np.log1p(np.maximum(degree[pairs] - own, 0))
            return np.stack([np.log1p(shared), left + right, np.minimum(left, right)], axis=1)
        near, found = adjacency.astype(np.float32) @ self._reduced, []
        for (left, right), mine in zip(_parts(pairs), _parts(own[None]), strict=True):
            x, y, mine = self._reduced[left], self._reduced[right], mine.T
            around_left, around_right = _directions(near[left] - mine * y), _directions(near[right] - mine * x)
            found.append((around_left * y + around_right * x).sum(1))
        return np.stack([np.log1p(shared), np.concatenate(found)], axis=1)


def _directions(rows: np.ndarray) -> np.ndarray:
    """Rows of length one. Where nothing is left but rounding, since a neighbour was the only one, they are zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > _ROUNDING)


def _parts(values: np.ndarray) -> list[np.ndarray]:
    """Columns in chunks; at least one."""
    return np.array_split(values, max(1, values.shape[1] // _CHUNK), axis=1)
