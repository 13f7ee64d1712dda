"""Draws the edges of random graphs in time linear in the number of edges, never looking at all pairs.

Every unordered pair (i, j) is linked independently with probability

    p_ij = sigmoid(a_same + w u_i . u_j)     if y_i = y_j
    p_ij = sigmoid(a_other + w u_i . u_j)    otherwise

where u_i is a vector of length at most 1. With z_i = [u_i, onehot(y_i)] the logit is bilinear in z_i and z_j. With
w = 0 this is the planted partition. Edges are held as sorted codes i n + j with i < j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from g3nn.base.parse import decode, distinct, encode

_CHUNK = 1 << 20
"""Candidate pairs held at once."""

_MANY = 4_000_000
"""With at least this many expected edges, every node draws its own, on all cores."""

_CALIBRATION_PAIRS = 200_000
"""Pairs drawn to solve for an intercept; the mean degree then comes out within a fraction of a percent."""

Fits = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Which of the pairs (i, j) may become edges."""

Sampler = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Given m, draws m uniform pairs and returns those that belong to its block."""


@dataclass(frozen=True)
class Latent:
    """positions: (n, q) with rows u_i of length at most 1. weight: w."""

    positions: np.ndarray
    weight: float

    def __call__(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """w u_i . u_j for each pair."""
        products: np.ndarray = np.einsum("pq,pq->p", self.positions[i], self.positions[j])
        return self.weight * products.astype(np.float64)

    @property
    def highest(self) -> float:
        """No term is above this."""
        return abs(self.weight)

    def lowest(self, terms: np.ndarray) -> float:
        """No term is below this; `terms` are a sample of them."""
        return -abs(self.weight)


@dataclass(frozen=True)
class Closeness:
    """values: (n, T) with rows z_i."""

    values: np.ndarray
    weight: float
    highest = 0.0

    def __call__(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """-w |z_i - z_j|^2 for each pair."""
        squares: np.ndarray = ((self.values[i] - self.values[j]) ** 2).sum(1)
        return -self.weight * squares

    def lowest(self, terms: np.ndarray) -> float:
        return float(terms.min())


Term = Latent | Closeness
"""What a pair adds to its logit."""


def block_probabilities(sizes: np.ndarray, degree: float, homophily: float) -> tuple[float, float]:
    """Mean link probabilities (same class, different class) that give the mean degree and the share of edges inside.

    With n_k nodes in class k, S = sum_k n_k (n_k - 1) / 2 pairs inside classes and D pairs between them:
    p_same = h E / S and p_other = (1 - h) E / D, where E = n degree / 2.
    """
    n = int(sizes.sum())
    same = _same_pairs(sizes)
    edges = n * degree / 2
    return homophily * edges / same, (1 - homophily) * edges / (n * (n - 1) / 2 - same)


def draw_edges(
    labels: np.ndarray, p_same: float, p_other: float, latent: Latent | None, rng: np.random.Generator
) -> np.ndarray:
    """Codes of the edges. p_same and p_other are the means of p_ij over the pairs inside and between classes."""
    n, sizes = labels.size, np.bincount(labels)
    same, other = _block_samplers(labels, by_class(labels), rng)
    inside = _draw_block(same, _same_pairs(sizes), p_same, latent, n, rng)
    between = _draw_block(other, n * (n - 1) / 2, p_other, latent, n, rng)
    return distinct(np.concatenate([inside, between]))


def _block_samplers(labels: np.ndarray, grouped: np.ndarray, rng: np.random.Generator) -> tuple[Sampler, Sampler]:
    """Of pairs inside classes, and between them. grouped: the nodes class by class."""
    n, sizes = labels.size, np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    share = sizes * (sizes - 1) / (2 * _same_pairs(sizes))

    def same(m: int) -> tuple[np.ndarray, np.ndarray]:
        k = rng.choice(sizes.size, size=m, p=share)
        i, j = uniform_pairs(sizes[k], m, rng)
        return grouped[starts[k] + i], grouped[starts[k] + j]

    def other(m: int) -> tuple[np.ndarray, np.ndarray]:
        i, j = uniform_pairs(n, m, rng)
        differ = labels[i] != labels[j]
        return i[differ], j[differ]

    return same, other


def draw_graph(
    labels: np.ndarray, p_same: float, p_other: float, latent: Latent | None, rng: np.random.Generator
) -> np.ndarray:
    """The edges (2, E) of such a graph, in rising order."""
    n, same = labels.size, _same_pairs(np.bincount(labels))
    if same * p_same + (n * (n - 1) / 2 - same) * p_other < _MANY:
        return decode(draw_edges(labels, p_same, p_other, latent, rng), n)
    return _draw_rows(labels, p_same, p_other, latent, rng)


def _draw_rows(
    labels: np.ndarray, p_same: float, p_other: float, latent: Latent | None, rng: np.random.Generator
) -> np.ndarray:
    """The edges (2, E), drawn node by node."""
    from g3nn.kernels import cpu_draws

    n, sizes = labels.size, np.bincount(labels)
    members = by_class(labels)
    place = np.empty(n, dtype=np.int64)
    place[members] = np.arange(n)
    samplers = _block_samplers(labels, members, rng)
    intercepts = [
        intercept(sample, p, latent) if p else 0.0 for sample, p in zip(samplers, (p_same, p_other), strict=True)
    ]
    highest = 0.0 if latent is None else latent.highest
    rates = [np.logaddexp(0.0, a + highest) if p else 0.0 for a, p in zip(intercepts, (p_same, p_other), strict=True)]
    term = (None, 0.0) if latent is None else (latent.positions, latent.weight)
    how = (labels, members, place, np.cumsum(sizes), np.array(rates), np.array(intercepts), *term, rng.integers(2**63))
    rowptr = np.zeros(n + 1, dtype=np.int64)
    draw: Any = cpu_draws.draw_rows
    draw(*how, rowptr, None)
    np.cumsum(rowptr, out=rowptr)
    edges = np.empty((2, rowptr[-1]), dtype=np.int64)
    draw(*how, rowptr, edges)
    return edges


def by_class(labels: np.ndarray) -> np.ndarray:
    """The numbers of the nodes, class by class, in rising order."""
    # Of 16 bits, numpy sorts by counting.
    narrow = labels.astype(np.int16) if labels.max() < 2**15 else labels
    return np.argsort(narrow, kind="stable")


def draw_near(values: np.ndarray, weight: float, degree: float, rng: np.random.Generator) -> np.ndarray:
    """Edges (2, E) with p_ij = sigmoid(a - weight |z_i - z_j|^2), for values z (n, T); a gives the mean degree."""
    n = len(values)
    term, p = Closeness(values, weight), degree / (n - 1)
    return decode(distinct(_draw_block(lambda m: uniform_pairs(n, m, rng), n * (n - 1) / 2, p, term, n, rng)), n)


def rewire(edges: np.ndarray, n: int, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Replace a random `fraction` of the edges (2, E) by uniformly random pairs; the number of edges stays."""
    codes = encode(edges[0], edges[1], n)
    missing = round(fraction * codes.size)
    kept = np.sort(rng.choice(codes, codes.size - missing, replace=False))
    fresh = free_pairs(kept, n, missing, n * (n - 1) // 2 - kept.size, rng)
    return decode(np.sort(np.concatenate([kept, fresh])), n)


def free_pairs(
    taken: np.ndarray, n: int, count: int, free: int, rng: np.random.Generator, fits: Fits | None = None
) -> np.ndarray:
    """(count,) codes of uniformly random pairs that fit and are not taken. free: how many such pairs there are."""
    total, found = n * (n - 1) // 2, np.zeros(0, dtype=np.int64)
    while missing := count - found.size:
        # As many draws as are needed on average: few rounds even where hardly any pair is left.
        i, j = uniform_pairs(n, -(-missing * total // (free - found.size)), rng)
        drawn = distinct(encode(i, j, n) if fits is None else encode(i, j, n)[fits(i, j)])
        fresh = np.setdiff1d(drawn, np.concatenate([taken, found]), assume_unique=True)
        found = np.concatenate([found, rng.permutation(fresh)[:missing]])
    return found


def uniform_pairs(n: int | np.ndarray, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """m pairs of two different numbers below n, uniform and independent; n may differ from pair to pair."""
    i = rng.integers(n, size=m)
    j = rng.integers(n - 1, size=m)
    return i, j + (j >= i)


def intercept(sample: Sampler, p: float, term: Term | None) -> float:
    """The a for which the mean of sigmoid(a + term) over the block's pairs is p."""
    if term is None:
        return float(logit(p))
    # Imported here because it takes longer to load than numpy.
    from scipy.optimize import brentq

    terms = term(*sample(_CALIBRATION_PAIRS))
    low, high = logit(p) - term.highest, logit(p) - term.lowest(terms)

    return float(brentq(lambda a: expit(a + terms).mean() - p, low - 1e-9, high + 1e-9))


def _same_pairs(sizes: np.ndarray) -> float:
    return float((sizes * (sizes - 1.0)).sum() / 2)


def _draw_block(
    sample: Sampler, pairs: float, p: float, term: Term | None, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Codes of the linked pairs of one block, some of them repeated.

    A pair of logit t is linked if it receives at least one of a Poisson number of hits with mean log(1 + e^t), which
    has probability exactly 1 - 1 / (1 + e^t) = sigmoid(t). Hits are drawn for all pairs at the highest such rate, and
    each is kept in the proportion of its own pair's rate to the highest.
    """
    codes = [np.zeros(0, dtype=np.int64)]
    if p == 0:
        return codes[0]
    a = intercept(sample, p, term)
    highest = np.logaddexp(0.0, a if term is None else a + term.highest)
    hits = int(rng.poisson(highest * pairs))
    for start in range(0, hits, _CHUNK):
        i, j = sample(min(_CHUNK, hits - start))
        if term is not None:
            kept = rng.random(i.size) * highest < np.logaddexp(0.0, a + term(i, j))
            i, j = i[kept], j[kept]
        codes.append(encode(i, j, n))
    return np.concatenate(codes)
