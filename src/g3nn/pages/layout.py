"""Where the nodes of a graph stand on its map: by themselves if there are few, in groups if there are many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_FREE = 1_000
"""A graph with more nodes is drawn in groups of nodes that are closely linked."""

MOST_GROUPS = 150
"""The smallest groups share one bubble where there are more."""

MOST_LINKS = 400
"""At most this many lines between groups, those with the most edges."""

_MANY = 200_000
"""Pairs of groups, of which many join in one round."""

_STEPS = 120
_GOLDEN = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True, eq=False)
class GraphMap:
    """A map in the unit square.

    points:  (n, 2).
    bubbles: (B, 3): centre and radius of each group, none if nodes stand by themselves. sizes: (B,) its nodes.
    links:   (3, L): two bubbles and the number of edges between them.
    group:   (n,): the bubble of each node.
    """

    points: np.ndarray
    bubbles: np.ndarray
    sizes: np.ndarray
    links: np.ndarray
    group: np.ndarray


def laid_out(edges: np.ndarray, n: int, key: np.ndarray) -> GraphMap:
    """The map of a graph. edges: (2, E) node numbers. key: (n,) what nodes of one group are sorted by."""
    if n <= MOST_FREE:
        points = _settled(edges, np.ones(edges.shape[1]), np.full(n, 1.0))
        middle, scale = _frame(points)
        nothing, no_links = np.zeros(0, dtype=np.int64), np.zeros((3, 0), dtype=np.int64)
        return GraphMap(0.5 + (points - middle) * scale, np.zeros((0, 3)), nothing, no_links, nothing)
    group = _limited(communities(edges, n), np.bincount(edges.ravel(), minlength=n))
    sizes = np.bincount(group)
    ends, counts = _between(group[edges], np.ones(edges.shape[1]))
    radii = np.sqrt(sizes)
    centres = _apart(_settled(ends, np.log1p(counts), radii), 1.08 * radii)
    points = np.empty((n, 2))
    for bubble in range(len(sizes)):
        members = np.flatnonzero(group == bubble)
        points[members] = centres[bubble] + _inside(radii[bubble], key[members])
    middle, scale = _frame(np.concatenate([points, centres - radii[:, None], centres + radii[:, None]]))
    bubbles = np.column_stack([0.5 + (centres - middle) * scale, radii * scale])
    strongest = np.argsort(-counts, kind="stable")[:MOST_LINKS]
    links = np.vstack([ends, counts]).astype(np.int64)[:, strongest]
    return GraphMap(0.5 + (points - middle) * scale, bubbles, sizes, links, group)


def communities(edges: np.ndarray, n: int) -> np.ndarray:
    """(n,): groups of closely linked nodes, numbered from 0.

    Pairs of groups that gain most modularity by joining do so, all at once, until no pair gains any.
    """
    group = np.arange(n)
    ends, weights = _between(edges, np.ones(edges.shape[1]))
    volume = np.bincount(edges.ravel(), minlength=n).astype(float)
    total = max(volume.sum(), 1.0)
    while ends.size:
        gain = weights / total - 2 * volume[ends[0]] * volume[ends[1]] / total**2
        # A gain per volume: otherwise large groups would swallow everything first.
        gain = gain / np.minimum(volume[ends[0]], volume[ends[1]])
        partner = _partners(ends, gain, len(volume))
        joined = np.flatnonzero(partner >= 0)
        if not joined.size:
            break
        parent = np.arange(len(volume))
        parent[joined] = np.minimum(joined, partner[joined])
        _, parent = np.unique(parent, return_inverse=True)
        group, volume = parent[group], np.bincount(parent, weights=volume)
        ends, weights = _between(parent[ends], weights)
    return group


def _partners(ends: np.ndarray, gain: np.ndarray, size: int) -> np.ndarray:
    """(size,): which one each joins, if both gain most by it; -1 for none. Of very many pairs also those that gain most
    among the rest, and so on: otherwise it would take hundreds of rounds."""
    if len(gain) > _MANY:
        from g3nn.kernels import cpu_edges  # numba takes long to import.

        partner, useful = np.full(size, -1), np.flatnonzero(gain > 0)
        cpu_edges.match(ends, useful[np.argsort(-gain[useful], kind="stable")], partner)
        return partner
    ends, gain = np.concatenate([ends, ends[::-1]], axis=1), np.concatenate([gain, gain])
    useful = np.flatnonzero(gain > 0)
    pair = np.minimum(*ends) * size + np.maximum(*ends)
    # The best comes last, and of equal ones the first.
    order = useful[np.lexsort((-pair[useful], gain[useful]))]
    best = np.full(size, -1)
    best[ends[0, order]] = ends[1, order]
    return np.where((best >= 0) & (best[best] == np.arange(size)), best, -1)


def _between(ends: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of different ends once, with the sum of its weights."""
    low, high = np.minimum(*ends), np.maximum(*ends)
    apart = low != high
    keys, place = np.unique(low[apart] * (high.max(initial=0) + 1) + high[apart], return_inverse=True)
    pairs = np.stack(np.divmod(keys, high.max(initial=0) + 1))
    return pairs, np.bincount(place, weights=weights[apart], minlength=len(keys))


def _limited(group: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Groups from the largest on. Nodes without edges share one bubble, and so do the smallest groups."""
    group = np.where(degree > 0, group, group.max() + 1)
    sizes = np.bincount(group)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return np.unique(np.minimum(rank[group], MOST_GROUPS - 1), return_inverse=True)[1]


def _settled(ends: np.ndarray, weights: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Edges pull, all nodes push, and everything is drawn gently to the middle (after Fruchterman and Reingold)."""
    n = len(mass)
    points = _spectral(ends, weights, n)
    spring, strength = 1 / np.sqrt(n), weights / max(weights.max(initial=0), 1e-12)
    for step in range(_STEPS):
        apart = points[:, None] - points[None]
        distance = np.maximum(np.square(apart).sum(2), 1e-6)
        push = (apart * (spring**2 * mass / mass.mean() / distance)[:, :, None]).sum(1)
        pull = np.zeros_like(points)
        along = points[ends[1]] - points[ends[0]]
        force = along * (strength * np.sqrt(np.square(along).sum(1)) / spring)[:, None]
        np.add.at(pull, ends[0], force)
        np.add.at(pull, ends[1], -force)
        move = push + pull - points
        length = np.maximum(np.sqrt(np.square(move).sum(1, keepdims=True)), 1e-12)
        points = points + move / length * np.minimum(length, 0.1 * (1 - step / _STEPS) + 0.002)
    return points


def _spectral(ends: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """A start that shows what is linked with what: the smoothest vectors over the edges, and a little disorder."""
    disorder = np.random.default_rng(0).normal(scale=0.05, size=(n, 2))
    if n < 4:
        return disorder
    near = np.full((n, n), 1 / n)
    np.add.at(near, (ends[0], ends[1]), weights)
    np.add.at(near, (ends[1], ends[0]), weights)
    root = np.sqrt(near.sum(1))
    vectors = np.linalg.eigh(near / np.outer(root, root))[1][:, [-2, -3]] / root[:, None]
    return vectors / np.maximum(np.abs(vectors).max(0), 1e-12) * 0.5 + disorder


def _apart(points: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Discs pushed apart until they hardly overlap, in an area that is about twice theirs."""
    points = points - points.mean(0)
    # A bubble without links would fly away and leave little space for the others.
    far = np.maximum(np.sqrt(np.square(points).sum(1, keepdims=True)), 1e-12)
    points = points * np.minimum(1, 2 * np.median(far) / far)
    points = points / max(points.std(), 1e-12) * 0.8 * np.sqrt(np.square(radii).sum())
    reach = radii[:, None] + radii[None]
    for step in range(300):
        apart = points[:, None] - points[None]
        distance = np.maximum(np.sqrt(np.square(apart).sum(2)), 1e-9)
        overlap = np.maximum(reach - distance, 0)
        np.fill_diagonal(overlap, 0)
        # The larger one stays where it is.
        share = radii[None] / reach
        points = points + (apart / distance[:, :, None] * (overlap * share)[:, :, None]).sum(1) * 0.6
        if step < 200:
            points = points * 0.99
    return points


def _inside(radius: float, key: np.ndarray) -> np.ndarray:
    """Points spread evenly over a disc, the nodes with the same key in one sector."""
    size = len(key)
    place = np.arange(size)
    distance, angle = radius * 0.92 * np.sqrt((place + 0.5) / size), place * _GOLDEN % (2 * np.pi)
    order = np.argsort(angle, kind="stable")
    points = np.empty((size, 2))
    spread = np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
    points[np.argsort(key, kind="stable")] = spread[order]
    return points


def _frame(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The middle of these points, and the scale at which they fit into the unit square."""
    low, high = points.min(0), points.max(0)
    return (high + low) / 2, float(1 / max((high - low).max(initial=0), 1e-12))
