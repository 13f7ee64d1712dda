"""The fitted graph models as plain arrays, and what they say of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

_CHUNK = 1 << 22
"""Numbers held at once."""


@dataclass(frozen=True, eq=False)
class LatentGraph:
    """F models, each fitted without one part of the edges: logit_kl(i, j) = left_i . right_j + table_kl.

    left, right: (F, n, h). table: (F, K, K). On an undirected graph left_i . right_j = left_j . right_i.
    """

    left: np.ndarray
    right: np.ndarray
    table: np.ndarray

    @cached_property
    def mean_left(self) -> np.ndarray:
        """(n, F h): together with `mean_right` the mean of the models' log-odds, which is one bilinear model again."""
        return np.concatenate(list(self.left / len(self.left)), axis=1)

    @cached_property
    def mean_right(self) -> np.ndarray:
        return np.concatenate(list(self.right), axis=1)

    @cached_property
    def mean_table(self) -> np.ndarray:
        mean: np.ndarray = self.table.mean(0)
        return mean

    def base(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): left_i . right_j of the mean model."""
        return row_products(self.mean_left, self.mean_right, *pairs)

    def base_of(self, pairs: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """(P,): left_i . right_j of one model for each pair."""
        base = np.empty(pairs.shape[1])
        for f in range(len(self.left)):
            chosen = fold == f
            base[chosen] = row_products(self.left[f], self.right[f], *pairs[:, chosen])
        return base

    def probability(self, q: np.ndarray, pairs: np.ndarray, shift: float) -> np.ndarray:
        """(P,): of an edge, under the mean model with its log-odds shifted."""
        return expected_sigmoid(q, pairs, self.base(pairs), self.mean_table + shift)

    def probability_of(self, q: np.ndarray, pairs: np.ndarray, fold: np.ndarray, shift: float) -> np.ndarray:
        """(P,): of an edge, under one model for each pair with its log-odds shifted."""
        base, result = self.base_of(pairs, fold), np.empty(fold.size)
        for f, table in enumerate(self.table):
            chosen = fold == f
            result[chosen] = expected_sigmoid(q, pairs[:, chosen], base[chosen], table + shift)
        return result


def row_products(left: np.ndarray, right: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(P,): left_i . right_j."""
    products = np.empty(i.size)
    size = max(1, _CHUNK // left.shape[1])
    for start in range(0, i.size, size):
        part = slice(start, start + size)
        products[part] = np.einsum("ph,ph->p", left[i[part]], right[j[part]])
    return products


def expected_sigmoid(q: np.ndarray, pairs: np.ndarray, base: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(P,): sum_kl q_ik q_jl sigmoid(base + table_kl)."""
    result = np.empty(base.size)
    size = max(1, _CHUNK // table.size)
    for start in range(0, base.size, size):
        part = slice(start, start + size)
        i, j = pairs[:, part]
        linked = expit(base[part, None, None] + table)
        result[part] = np.einsum("pk,pkl,pl->p", q[i], linked, q[j], optimize=True)
    return result
