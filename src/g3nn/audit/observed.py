"""The observed edges, and which of any given pairs are among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from g3nn.task import NodeTask


@dataclass(frozen=True, eq=False)
class Observed:
    """edges: (2, E) of a graph with n nodes. A pair has one code, whichever end of an undirected one comes first."""

    edges: np.ndarray
    n: int
    directed: bool

    @classmethod
    def of(cls, task: NodeTask) -> Observed:
        return cls(task.edges, task.num_nodes, task.directed)

    def codes(self, pairs: np.ndarray) -> np.ndarray:
        i, j = pairs
        if not self.directed:
            i, j = np.minimum(i, j), np.maximum(i, j)
        return i * self.n + j

    def pairs(self, codes: np.ndarray) -> np.ndarray:
        return np.stack([codes // self.n, codes % self.n])

    def find(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): the position of each pair among the edges, -1 if it is none of them."""
        order, known = self._sorted
        wanted = self.codes(pairs)
        place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        return np.where(known[place] == wanted, order[place], -1)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        codes = self.codes(self.edges)
        order = np.argsort(codes)
        return order, codes[order]
