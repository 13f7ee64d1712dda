"""Belief propagation: what labels say about edges, and what edges say about labels, where some edges are false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from scipy.special import softmax

from g3nn.base.parse import UNKNOWN

PSEUDO_EDGES = 20
"""Pseudo-edges that shrink the mixing matrix towards chance."""

_TINY = np.finfo(np.float32).tiny

Part = np.ndarray | slice
"""Places of some edges."""


@dataclass(frozen=True, eq=False)
class NoisyEdges:
    """Observed edges (2, E) between n nodes, some of which are false.

    An observed edge is genuine with probability g. Compared with chance, a genuine one joins labels k and l B_kl times
    as often; a false one joins nodes by chance. Labels are independent given the features, with probabilities `prior`
    (n, K):

        p(y, observed) ~ prod_i prior_i(y_i) prod_ij (g_ij B(y_i, y_j) + 1 - g_ij)

    On a tree all beliefs are exact, on other graphs they are those of loopy belief propagation.

    parts: the places of the edges of each type, which has a B of its own.
    """

    edges: np.ndarray
    n: int
    parts: Sequence[Part] = (slice(None),)

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(2 E,) each: message m goes from a node to a node; that of the other direction is E places away."""
        i, j = self.edges
        return np.concatenate([i, j]), np.concatenate([j, i])

    @cached_property
    def _arriving(self) -> tuple[np.ndarray, np.ndarray]:
        """(n + 1,) and (2 E,): where the messages to each node begin in a list of all, sorted by their targets."""
        target = self._ends[1]
        starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=self.n))])
        return starts, np.argsort(target, kind="stable")

    def propagate(
        self,
        prior: np.ndarray,
        table: np.ndarray,
        genuine: np.ndarray,
        messages: np.ndarray | None = None,
        rounds: int = 4,
        damping: float = 0.5,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Beliefs (n, K) about labels, and messages (2 E, K): what each end of an edge would be without that edge.

        table: (K, K), B, or (T, K, K) where there are types. genuine: (E,), g. messages: those of an earlier call, to
        go on from. damping: how much of them stays.
        """
        from g3nn.kernels import cpu_edges  # numba takes long to import.

        source, (starts, arriving), number = self._ends[0], self._arriving, prior.dtype.type
        start, g = np.log(prior), genuine.astype(prior.dtype)
        tables = np.ascontiguousarray(table, dtype=prior.dtype).reshape(-1, *table.shape[-2:])
        messages = np.array(prior[source] if messages is None else messages, order="C")
        total, heard = start, np.empty_like(messages)
        for _ in range(rounds):
            for part, one in zip(self.parts, tables, strict=True):
                some = both_ways(heard, part)
                cpu_edges.hear(both_ways(messages, part), g[part], one, some)
                heard.reshape(2, len(g), -1)[:, part] = some.reshape(2, -1, some.shape[1])
            total = np.empty_like(start)
            cpu_edges.arrive(starts, arriving, heard, start, total)
            cpu_edges.send(total, heard, source, number(damping), messages)
        return np.asarray(softmax(total, axis=1)), messages


def both_ways(messages: np.ndarray, part: Part) -> np.ndarray:
    """(2 P, K): the messages (2 E, K) along some edges."""
    return messages.reshape(2, -1, messages.shape[1])[:, part].reshape(-1, messages.shape[1])


def mixing(
    messages: np.ndarray,
    table: np.ndarray,
    weights: np.ndarray,
    share: np.ndarray | None = None,
    pseudo_edges: float = PSEUDO_EDGES,
) -> np.ndarray:
    """(K, K): the table that edges suggest, if those with weights (E,) link labels as the table so far says: how often
    labels meet, divided by how often they would meet by chance.

    messages: (2 E, K), as for `agreement`. share: (K,), how frequent each label is at the ends of edges; None: as in
    the messages.
    """
    from_source, from_target = np.split(messages, 2)
    scale = weights / agreement(messages, table)
    met = table * ((from_source * scale[:, None]).T @ from_target)
    met = (met + met.T) / 2
    share = messages.mean(0, dtype=np.float64) if share is None else share
    chance = np.outer(share, share)
    return (met + pseudo_edges * chance) / np.maximum((met.sum() + pseudo_edges) * chance, _TINY)


def agreement(messages: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(P,): how many times as often as by chance a genuine edge joins two such ends. messages: (2 P, K), beliefs about
    the first ends of P pairs, then about the second ones."""
    from_source, from_target = np.split(messages, 2)
    return np.maximum(np.einsum("ek,kl,el->e", from_source, table, from_target, optimize=True), _TINY)


def mixings(messages: np.ndarray, tables: np.ndarray, weights: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """(T, K, K): the table of each type, whose edges are in a part."""
    typed = zip(parts, tables, strict=True)
    return np.stack([mixing(both_ways(messages, part), table, weights[part]) for part, table in typed])


def agreements(messages: np.ndarray, tables: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """(P,): `agreement` by the table (K, K) of the part that each pair is in."""
    found = np.empty(len(messages) // 2)
    for part, table in zip(parts, tables, strict=True):
        found[part] = agreement(both_ways(messages, part), table)
    return found


MOST_GROUPS = 16

_DIGITS = 4
"""Of the shares by which classes are compared: rounding errors must not decide which are merged."""


def merged_groups(beliefs: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(K,): the group of each class, by beliefs (n, K) and edges (2, E). Classes are alike if their nodes are linked to
    the same classes; few classes are groups of their own.

    The profile of a class is the square roots of the shares of its edges that lead to each class, as beliefs have it;
    Ward's method merges what is near. So classes that are linked to each other are merged first.
    """
    K = beliefs.shape[1]
    if K <= MOST_GROUPS:
        return np.arange(K)
    i, j = edges
    met = beliefs[i].T @ beliefs[j]
    met = met + met.T
    shares = met / np.maximum(met.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    found = fcluster(linkage(pdist(np.sqrt(shares).round(_DIGITS)), "ward"), MOST_GROUPS, "maxclust")
    return np.unique(found, return_inverse=True)[1]


def labels_in_groups(labels: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(n,): the groups of labels (n,); -1 stays unknown. group: (K,), that of each class."""
    return np.where(labels == UNKNOWN, UNKNOWN, group[labels])


def beliefs_in_groups(q: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(n, G): the probability of each group of classes. q: (n, K). group: (K,), that of each class."""
    return q @ np.eye(int(group.max()) + 1)[group]


def drawn_classes(groups: np.ndarray, q: np.ndarray, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,): a class out of the group (n,) of each node, drawn from the beliefs q (n, K) about it."""
    within = np.cumsum(np.where(group == groups[:, None], q, 0.0), axis=1)
    drawn = rng.random((len(q), 1)) * within[:, -1:]
    return (within <= drawn).sum(1)
