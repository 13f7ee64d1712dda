"""Belief propagation: what labels say about edges, and what edges say about labels, where some edges are false."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

_TINY = np.finfo(np.float32).tiny


class Mixing(NamedTuple):
    """(K, K) each: how many times as often as by chance edges join two labels, genuine ones and false ones."""

    genuine: np.ndarray
    false: np.ndarray


@dataclass(frozen=True, eq=False)
class NoisyEdges:
    """Observed edges (2, E) between n nodes, some of which are false.

    An observed edge is genuine with probability g. Compared with chance, a genuine one joins labels k and l
    `genuine`_kl times as often, a false one `false`_kl times: it may join any two nodes, or have been put where it does
    harm. Labels are independent given the features, with probabilities `prior` (n, K):

        p(y, observed) ~ prod_i prior_i(y_i) prod_ij (g_ij genuine(y_i, y_j) + (1 - g_ij) false(y_i, y_j))

    On a tree all beliefs are exact, on other graphs they are those of loopy belief propagation.
    """

    edges: np.ndarray
    n: int

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(2 E,) each: message m goes from a node to a node; that of the other direction is E places away."""
        i, j = self.edges
        return np.concatenate([i, j]), np.concatenate([j, i])

    @cached_property
    def _arriving(self) -> sp.csr_array:
        """(n, 2 E): 1 where a message arrives at a node."""
        target = self._ends[1]
        return sp.csr_array((np.ones(target.size), (target, np.arange(target.size))), shape=(self.n, target.size))

    def propagate(
        self,
        prior: np.ndarray,
        mixing: Mixing,
        genuine: np.ndarray,
        messages: np.ndarray | None = None,
        rounds: int = 4,
        damping: float = 0.5,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Beliefs (n, K) about labels, and messages (2 E, K): what each end of an edge would be without that edge.

        genuine: (E,), g. messages: those of an earlier call, to go on from. damping: how much of them stays.
        """
        source, _ = self._ends
        start, g = np.log(prior), np.concatenate([genuine, genuine])[:, None].astype(prior.dtype)
        if_genuine, if_false = (table.astype(prior.dtype) for table in mixing)
        messages = prior[source] if messages is None else messages
        back = np.roll(np.arange(source.size), self.edges.shape[1])
        total = start
        for _ in range(rounds):
            heard = np.log(g * (messages @ if_genuine) + (1 - g) * (messages @ if_false))
            total = start + self._arriving.astype(prior.dtype, copy=False) @ heard
            messages = damping * messages + (1 - damping) * _softmax(total[source] - heard[back])
        return _softmax(total), messages

    def agreement(self, messages: np.ndarray, mixing: Mixing) -> np.ndarray:
        """(E,): how many times as often a genuine edge joins two such ends as a false one does."""
        return self._expected(messages, mixing.genuine) / np.maximum(self._expected(messages, mixing.false), _TINY)

    def mixing(self, messages: np.ndarray, table: np.ndarray, weights: np.ndarray, held_back: float) -> np.ndarray:
        """(K, K): the table that edges suggest, if those with weights (E,) link labels, and as the table so far says:
        how often labels meet, divided by how often they would meet by chance.

        held_back: so many more edges between labels that meet by chance.
        """
        met, share = self._met(messages, table, weights), messages.mean(0, dtype=np.float64)
        chance = np.outer(share, share)
        return (met + held_back * chance) / ((met.sum() + held_back) * chance)

    def aimed(self, messages: np.ndarray, weights: np.ndarray, held_back: float) -> np.ndarray:
        """(K, K): the same with two values only, for equal and for different labels, and where chance has the labels
        that the ends of edges with these weights have: whoever adds false edges may prefer some nodes."""
        K = messages.shape[1]
        met = self._met(messages, np.ones((K, K)), weights) + held_back / K**2
        share = met.sum(1) / met.sum()
        alike, alike_by_chance = np.trace(met) / met.sum(), share @ share
        return np.where(np.eye(K) > 0, alike / alike_by_chance, (1 - alike) / (1 - alike_by_chance))

    def _expected(self, messages: np.ndarray, table: np.ndarray) -> np.ndarray:
        from_source, from_target = np.split(messages, 2)
        return np.einsum("ek,kl,el->e", from_source, table, from_target, optimize=True)

    def _met(self, messages: np.ndarray, table: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(K, K): how often labels meet on edges with these weights."""
        from_source, from_target = np.split(messages, 2)
        scale = weights / np.maximum(self._expected(messages, table), _TINY)
        met = table * ((from_source * scale[:, None]).T @ from_target)
        return (met + met.T) / 2


def _softmax(scores: np.ndarray) -> np.ndarray:
    """Rows that sum to one; scores are written over."""
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    return scores
