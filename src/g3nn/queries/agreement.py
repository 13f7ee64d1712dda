"""Whether nodes that are alike have the same label: without that, labels of a few cannot stand for the others."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_ODDS = 5.0
"""Before any label is known, so many to one that alike nodes agree."""
_EFFECT = 0.5
"""How many standard deviations above chance pairs with the same label are expected to be alike, divided by the root of
the number of such pairs."""
_MOST = 1000
"""Of more labels, so many at even distances in their list are looked at."""


def chance_of_agreement(vectors: np.ndarray, labels: np.ndarray) -> float:
    """The probability, given the labels so far, that alike nodes have the same label rather than any.

    vectors: (m, r), by which labelled nodes are alike. labels: (m, K), one-hot. If labels have nothing to do with
    likeness, the deviation z is about normal around 0; if they have, around a mean that grows with the pairs there are.
    """
    if len(labels) > _MOST:
        some = np.linspace(0, len(labels) - 1, _MOST).astype(int)
        vectors, labels = vectors[some], labels[some]
    m, K = labels.shape
    mean = _EFFECT * np.sqrt(m * (m - 1) / (2 * K))
    z = deviation(vectors.astype(np.float64) @ vectors.T, labels @ labels.T)
    return float(expit(np.log(_ODDS) + mean * z - mean**2 / 2))


def deviation(one: np.ndarray, other: np.ndarray) -> float:
    """How many standard deviations the sum of products of two symmetric tables (m, m) is above its mean, if the nodes
    of one were shuffled; the diagonals do not count. 0 where shuffling changes nothing. Moments by Mantel (1967)."""
    m = len(one)
    if m < 4:
        return 0.0
    one, other = (table - np.diag(np.diag(table)) for table in (one, other))
    pairs = m * (m - 1)
    triples, quadruples = pairs * (m - 2), pairs * (m - 2) * (m - 3)
    (sum1, squares1, rows1), (sum2, squares2, rows2) = (
        (table.sum(), (table**2).sum(), (table.sum(1) ** 2).sum()) for table in (one, other)
    )
    mean = sum1 * sum2 / pairs
    variance = (
        2 * squares1 * squares2 / pairs
        + 4 * (rows1 - squares1) * (rows2 - squares2) / triples
        + (sum1**2 + 2 * squares1 - 4 * rows1) * (sum2**2 + 2 * squares2 - 4 * rows2) / quadruples
        - mean**2
    )
    if variance <= 1e-9 * mean**2 + 1e-18:
        return 0.0
    return float(((one * other).sum() - mean) / np.sqrt(variance))
