"""Many classes as a few groups that are linked alike: the audit looks at every pair of groups for every edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from g3nn.base.parse import UNKNOWN

MOST_GROUPS = 16

_DIGITS = 4
"""Of the shares by which classes are compared: rounding errors must not decide who is merged."""


@dataclass(frozen=True, eq=False)
class MergedGroups:
    """group: (K,): the number of the group of each class. Few classes are groups of their own."""

    group: np.ndarray

    @classmethod
    def of(cls, beliefs: np.ndarray, edges: np.ndarray) -> MergedGroups:
        """From beliefs (n, K) and edges (2, E). Classes are alike if their nodes are linked to the same classes.

        The profile of a class is the square roots of the shares of its edges that lead to each class, as beliefs have
        it; Ward's method merges what is near. So classes that are linked to each other are merged first.
        """
        K = beliefs.shape[1]
        if K <= MOST_GROUPS:
            return cls(np.arange(K))
        i, j = edges
        met = beliefs[i].T @ beliefs[j]
        met = met + met.T
        shares = met / np.maximum(met.sum(1, keepdims=True), np.finfo(np.float64).tiny)
        found = fcluster(linkage(pdist(np.sqrt(shares).round(_DIGITS)), "ward"), MOST_GROUPS, "maxclust")
        return cls(np.unique(found, return_inverse=True)[1])

    @property
    def count(self) -> int:
        return int(self.group.max()) + 1

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """The groups of classes (n,); -1 stays unknown."""
        return np.where(labels == UNKNOWN, UNKNOWN, self.group[labels])

    def beliefs(self, q: np.ndarray) -> np.ndarray:
        """(n, G): the probability of each group."""
        return q @ np.eye(self.count)[self.group]

    def members(self, groups: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,): a class out of the group of each node, drawn from the beliefs q (n, K) about it."""
        within = np.cumsum(np.where(self.group == groups[:, None], q, 0.0), axis=1)
        drawn = rng.random((len(q), 1)) * within[:, -1:]
        classes: np.ndarray = (within <= drawn).sum(1)
        return classes
