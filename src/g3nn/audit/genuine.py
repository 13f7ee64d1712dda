"""Which observed edges are genuine: labels, features and the rest of the graph against the edges of chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression

from g3nn.audit.likeness import Likeness
from g3nn.audit.messages import PSEUDO_EDGES, Mixing, NoisyEdges
from g3nn.audit.scores import ObservedEdges
from g3nn.data.random_graph import uniform_pairs
from g3nn.parse import Matrix

_ROUNDS = 4
_CHANCE_PAIRS = 3
"""Pairs without an edge that stand for false edges: so many for each edge."""
_MOST_PAIRS = 60_000
"""At most so many of either are learned from."""
_ALIKE, _FIRST_ROUNDS = 0.7, 8
"""Where edges join like with like: the share of them that do not join nodes at random."""
_MOSTLY = 0.7
"""If at least this share of the edges is genuine, how false ones join labels can be learned from known labels. With a
lower share too many genuine edges would be taken for false ones."""
_SURE = 0.98
"""What is believed at most about a label before any edge is looked at."""


@dataclass(frozen=True, eq=False)
class GenuineEdges:
    """share: of all observed edges that are taken to be genuine. log_odds: (E,), how much likelier each of them is as a
    genuine one than as one between any two nodes; probability: (E,), that it is genuine. beliefs: (n, K) about labels;
    around: (n, K), the same by the edges alone, without what was known about the node itself.
    """

    share: float
    log_odds: np.ndarray
    probability: np.ndarray
    beliefs: np.ndarray
    around: np.ndarray


def genuine_edges(
    edges: np.ndarray,
    features: Matrix | None,
    prior: np.ndarray,
    shares: Sequence[float],
    *,
    directed: bool = False,
    seed: int = 0,
) -> list[GenuineEdges]:
    """One for each of the shares, each going on from the one before.

    edges: (2, E). features: (n, d), or None. prior: (n, K), what features alone say about labels, and one-hot where
    they are known.
    """
    return Evidence(edges, len(prior), features, directed, seed).judge(prior, shares)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What edges (2, E) between n nodes with features (n, d), or without, say whatever the labels are."""

    edges: np.ndarray
    n: int
    features: Matrix | None
    directed: bool = False
    seed: int = 0

    @cached_property
    def _noisy(self) -> NoisyEdges:
        return NoisyEdges(self.edges, self.n)

    @cached_property
    def _likeness(self) -> Likeness:
        return Likeness(self.edges, self.n, self.features)

    @cached_property
    def _chance(self) -> np.ndarray:
        return pairs_by_chance(ObservedEdges(self.edges, self.n, self.directed), np.random.default_rng(self.seed))

    @cached_property
    def _alike(self) -> tuple[np.ndarray, np.ndarray]:
        """(E, 1) and (P, 1), without features (E, 0) and (P, 0)."""
        return self._likeness.fixed(self.edges), self._likeness.fixed(self._chance)

    def _ratio(self, believed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(E,): the log of how many times as often genuine edges join nodes that are so alike as chance does."""
        alike, alike_by_chance = self._alike
        attributes = np.hstack([alike, self._likeness.around(self.edges, believed, believed)])
        nothing = np.zeros(self._chance.shape[1])
        by_chance = np.hstack([alike_by_chance, self._likeness.around(self._chance, nothing, believed)])
        return density_ratio(attributes, by_chance, believed, rng)(attributes)

    def judge(self, prior: np.ndarray, shares: Sequence[float]) -> list[GenuineEdges]:
        """See `genuine_edges`.

        The objective is the evidence of the observed edges, relative to as many pairs by chance, at a given share pi:

            J(c, B, F) = log sum_y prod_i prior_i(y_i) prod_ij (pi c_ij B(y_i, y_j) + (1 - pi) F(y_i, y_j))

        and that of `PSEUDO_EDGES` more edges at random for B. In turn:

        - labels and edges: belief propagation finds the posterior under c, B and F as they are. On a tree J is the
          Bethe free energy of its messages, and the posterior exact: the E-step of EM. On other graphs, and after a
          few damped rounds, it is an approximation.
        - B: how often labels meet on genuine edges, divided by chance. With chance fixed this is the M-step, and J does
          not fall. Here chance follows the labels of all ends, which moves little.
        - F: two numbers, from the edges with two known labels alone. An M-step for these; the others do not count.
        - c: how alike the ends of genuine edges are, compared with those of any pair. A logistic regression in which
          each edge counts as much as it is believed maximises its own likelihood, which is a consistent estimate of
          the density ratio but not J; and what is around the ends of an edge is weighed by what is believed of it.

        So J need not rise in a round, and rounds are few. Nothing that judges an edge has seen it.
        """
        K, noisy, rng = prior.shape[1], self._noisy, np.random.default_rng([self.seed, 1])
        start = (_SURE * prior + (1 - _SURE) / K).astype(np.float32)
        known = (prior.max(1) == 1)[self.edges].all(0)
        believed, found = np.full(self.edges.shape[1], shares[0]), []
        mixing, messages = _begun(noisy, start, believed)
        as_known = np.concatenate([start[self.edges[0]], start[self.edges[1]]])
        for share in shares:
            for _ in range(_ROUNDS):
                ratio = self._ratio(believed, rng)
                beliefs, messages = noisy.propagate(start, mixing, expit(ratio + logit(share)), messages)
                odds = ratio + np.log(np.maximum(noisy.agreement(messages, mixing), np.finfo(np.float64).tiny))
                believed = expit(odds + logit(share))
                aimed = noisy.aimed(as_known, (1 - believed) * known, PSEUDO_EDGES)
                genuine = noisy.mixing(messages, mixing.genuine, believed, PSEUDO_EDGES)
                mixing = Mixing(genuine, aimed if share >= _MOSTLY else np.ones((K, K)))
            around = beliefs / start
            found.append(GenuineEdges(share, odds, believed, beliefs, around / around.sum(1, keepdims=True)))
        return found


def pairs_by_chance(observed: ObservedEdges, rng: np.random.Generator, least: int = 0) -> np.ndarray:
    """(2, P): pairs without an edge. least: so many are drawn at least, edges and repetitions included."""
    count = max(least, min(_CHANCE_PAIRS * observed.edges.shape[1], _MOST_PAIRS))
    pairs = np.stack(uniform_pairs(observed.n, count, rng))
    return pairs[:, observed.is_free(pairs)]


def _begun(noisy: NoisyEdges, prior: np.ndarray, believed: np.ndarray) -> tuple[Mixing, np.ndarray]:
    """Tables and messages to begin with: as labels that are known are linked, or like with like; whichever then
    explains the edges better. False edges may sit at the very nodes whose labels are known."""
    K = prior.shape[1]
    known, any_labels = 1 - entropy(prior, axis=1) / np.log(K), np.ones((K, K))
    first = np.concatenate([prior[noisy.edges[0]], prior[noisy.edges[1]]])
    seen = noisy.mixing(first, any_labels, known[noisy.edges].prod(0), PSEUDO_EDGES)
    found = []
    for table in (seen, (1 - _ALIKE) + _ALIKE * K * np.eye(K)):
        _, messages = noisy.propagate(prior, Mixing(table, any_labels), believed, first, _FIRST_ROUNDS)
        mixing = Mixing(noisy.mixing(messages, table, believed, PSEUDO_EDGES), any_labels)
        explained = np.log1p(believed * (noisy.agreement(messages, mixing) - 1)).mean()
        found.append((float(explained), mixing, messages))
    return max(found, key=lambda one: one[0])[1:]


def density_ratio(
    edges: np.ndarray, chance: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> Callable[[np.ndarray], np.ndarray]:
    """The log of how many times as often edges, counted by their weights, have such attributes (E, A) as pairs by
    chance: a function of attributes (P, A)."""
    centre, spread = chance.mean(0), np.concatenate([edges, chance]).std(0) + 1e-9
    some = np.arange(len(edges)) if len(edges) <= _MOST_PAIRS else rng.choice(len(edges), _MOST_PAIRS, replace=False)
    kind = np.concatenate([np.ones(len(some)), np.zeros(len(chance))])
    counts = np.concatenate([weights[some] / weights[some].sum(), np.full(len(chance), 1 / len(chance))]) * len(some)
    rows = (np.concatenate([edges[some], chance]) - centre) / spread
    model = LogisticRegression(max_iter=500).fit(rows, kind, sample_weight=counts)
    return lambda attributes: np.asarray(model.decision_function((attributes - centre) / spread))
