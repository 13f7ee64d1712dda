"""Which observed edges are genuine: labels, features and the rest of the graph against the edges of chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.
from scipy.special import expit, logit
from scipy.stats import entropy
from sklearn.utils.extmath import randomized_svd

from g3nn.base.parse import Matrix
from g3nn.graph.datasets.random_graph import uniform_pairs
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import row_dots
from g3nn.queries.messages import NoisyEdges, Part, agreements, mixings
from g3nn.queries.scores import ObservedEdges

_COORDINATES = 32
_ROUNDING = 1e-4
_CHUNK = 1 << 16
"""Pairs looked at together."""


def coordinates(features: Matrix, size: int) -> np.ndarray:
    """(n, r) float32 with r <= size + 1: features of equal variance, or their leading directions if there are more
    than `size`, in rows of length one.

    Rows of sparse features have length one before they are reduced: a text counts by what is in it, not by how long it
    is. Dense ones are centred and get a constant coordinate, which separates small rows from large ones.
    """
    sparse = sp.issparse(features)
    scaled = _scaled(features)
    r = min(size, *features.shape)
    if r < features.shape[1]:
        directions, lengths, _ = randomized_svd(scaled, r, random_state=0)
        reduced = directions * lengths
    else:
        reduced = scaled.toarray() if sparse else scaled
    if not sparse:
        reduced = np.concatenate([reduced, np.ones((len(reduced), 1))], axis=1)
    return np.ascontiguousarray(sklearn.preprocessing.normalize(reduced), dtype=np.float32)


def unit_rows(features: Matrix) -> Matrix:
    """(n, d): features of equal variance, in rows of length one; dense ones are centred."""
    return sklearn.preprocessing.normalize(_scaled(features))


def _scaled(features: Matrix) -> Matrix:
    sparse = sp.issparse(features)
    scaled = sklearn.preprocessing.StandardScaler(with_mean=not sparse).fit_transform(features)
    return sklearn.preprocessing.normalize(scaled) if sparse else scaled / np.sqrt(features.shape[1])


_ROUNDS = 4
_CHANCE_PAIRS = 3
"""Pairs without an edge that stand for false edges, for each edge."""
_FEWEST_EDGES, _FEWEST_PAIRS, _MOST_PAIRS = 50, 6, 60_000
"""With fewer edges a type is not judged by itself, and with fewer pairs by chance no edge; the regression uses at most
this many of either."""
_ALIKE, _FIRST_ROUNDS = 0.7, 8
"""Where edges join like with like: the share of them that do not join nodes at random."""
_SURE = 0.98
"""What is believed at most about a label before any edge is looked at."""


@dataclass(frozen=True, eq=False)
class GenuineEdges:
    """share: of all observed edges that are taken to be genuine. log_odds: (E,), how much likelier each of them is as a
    genuine one than as one between any two nodes; probability: (E,), that it is genuine; by_chance: (P,), the log-odds
    of pairs by chance. beliefs: (n, K) about labels; around: (n, K), the same by the edges alone, without what was
    known about the node itself.
    """

    share: float
    log_odds: np.ndarray
    probability: np.ndarray
    by_chance: np.ndarray
    beliefs: np.ndarray
    around: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the edges of a task, and its features unless they say nothing, tell about edges whatever the labels are.

    by_type: whether an edge is judged as one of its type, which is compared with pairs by chance of nodes that it may
    join. Of several types between two nodes the one counts by which their edge is least likely.
    """

    task: NodeTask
    featureless: bool = False
    seed: int = 0
    by_type: bool = False

    @cached_property
    def _stated(self) -> tuple[np.ndarray, list[Part], list[np.ndarray]]:
        """(M,): the place of each edge of a type among those of the task; and by type the places of these, and pairs by
        chance (2, P). Types with too few edges or pairs are one."""
        every, relations, rng = np.arange(self.task.num_edges), self.task.apart, np.random.default_rng(self.seed)
        observed = ObservedEdges(self.task.edges, self.task.num_nodes, self.task.directed)
        if relations is None or not self.by_type:
            return every, [slice(None)], [pairs_by_chance(observed, self.seed)]
        place, types = observed.find(relations.pairs), relations.types
        place, parts, chances = np.append(place, np.setdiff1d(every, place)), list[Part](), list[np.ndarray]()
        rest = np.ones(len(place), dtype=bool)
        for type in np.flatnonzero(np.bincount(types) >= _FEWEST_EDGES).tolist():
            part = np.flatnonzero(types == type)
            count = min(_CHANCE_PAIRS * len(part), _MOST_PAIRS // len(relations.names))
            pairs = np.stack([rng.choice(end, count) for end in relations.ends(type)])
            pairs = pairs[:, observed.is_free(pairs)]
            if pairs.shape[1] >= _FEWEST_EDGES:
                parts, chances, rest[part] = [*parts, part], [*chances, pairs], False
        if rest.any():
            parts, chances = [*parts, np.flatnonzero(rest)], [*chances, pairs_by_chance(observed, self.seed)]
        return place, parts, chances

    @cached_property
    def _edges(self) -> np.ndarray:
        """(2, M)."""
        return self.task.edges[:, self._stated[0]]

    @cached_property
    def _noisy(self) -> NoisyEdges:
        return NoisyEdges(self._edges, self.task.num_nodes, self._stated[1])

    @cached_property
    def _chance(self) -> np.ndarray:
        return np.concatenate(self._stated[2], axis=1)

    @cached_property
    def _reduced(self) -> np.ndarray | None:
        """(n, r): features in few directions."""
        return None if self.featureless else coordinates(self.task.features, _COORDINATES)

    @cached_property
    def _alike(self) -> tuple[np.ndarray, np.ndarray]:
        """(M, 1) and (P, 1), without features (M, 0) and (P, 0): how alike the features of both ends are."""
        pairs, count = np.concatenate([self._edges, self._chance], axis=1), self._edges.shape[1]
        if self.featureless:
            alike = np.zeros((pairs.shape[1], 0))
        else:
            rows, parts = unit_rows(self.task.features), np.array_split(pairs, max(1, pairs.shape[1] // _CHUNK), axis=1)
            products = np.concatenate([row_dots(rows, part) for part in parts])
            alike = (np.sign(products) * np.sqrt(abs(products)))[:, None]
        return alike[:count], alike[count:]

    def around(self, pairs: np.ndarray, own: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(P, 2): how many neighbours both ends have, rare ones counting more; and how alike each end is to the
        neighbours of the other. (P, 3) without features: the number of neighbours of both ends, and of the one that
        has fewer, instead.

        weights: (M,), how much each edge counts; own: (P,), that of the edge of a pair, 0 where there is none.
        """
        (i, j), n = self._edges, self.task.num_nodes
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        adjacency = sp.coo_array((np.concatenate([weights, weights]), ends), shape=(n, n)).tocsr()
        degree = np.asarray(adjacency.sum(1)).ravel()
        shared = np.log1p(row_dots(adjacency, pairs, 1 / np.log(2 + degree)))
        if self._reduced is None:
            left, right = np.log1p(np.maximum(degree[pairs] - own, 0))
            return np.stack([shared, left + right, np.minimum(left, right)], axis=1)
        from g3nn.kernels import cpu_edges  # numba takes long to import.

        near, alike = adjacency.astype(np.float32) @ self._reduced, np.empty(pairs.shape[1])
        cpu_edges.ends_around(near, self._reduced, pairs[0], pairs[1], own, _ROUNDING, alike)
        return np.stack([shared, alike], axis=1)

    def _attributes(self, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(M, A) and (P, A): how alike both ends of edges and of pairs by chance are, if edges count so much (M,)."""
        ends = (self._edges, counted), (self._chance, np.zeros(self._chance.shape[1]))
        edges, chance = (
            np.hstack([alike, self.around(pairs, own, counted)])
            for alike, (pairs, own) in zip(self._alike, ends, strict=True)
        )
        return edges, chance

    def judge(self, prior: np.ndarray, shares: Sequence[float]) -> list[GenuineEdges]:
        """One for each of the shares, each going on from the one before. prior: (n, K), what features alone say about
        labels, and one-hot where they are known.

        The objective is the evidence of the observed edges, relative to as many pairs by chance, at a given share pi:

            J(c, B) = log sum_y prod_i prior_i(y_i) prod_ij (pi c_ij B(y_i, y_j) + 1 - pi)

        and that of `PSEUDO_EDGES` more edges at random for B. In turn:

        - labels: belief propagation finds the posterior under c and B as they are. On a tree J is the Bethe free
          energy of its messages, and the posterior exact: the E-step of EM. On other graphs, and after a few damped
          rounds, it is an approximation.
        - edges: genuine with the odds pi / (1 - pi) exp(log_odds). By J the log-odds are log c_ij + log a_ij, where
          a_ij, the agreement, is the mean of B over the labels of both ends without the edge. Where beliefs are too
          sure, as they are on graphs with many loops, a_ij is too extreme: so it is one more attribute of the
          regression, which finds the power that it counts with.
        - B: how often labels meet on genuine edges, divided by chance. With chance fixed this is the M-step, and J does
          not fall. Here chance follows the labels of all ends, which moves little.
        - c: how alike the ends of genuine edges are, compared with those of any pair. A logistic regression in which
          each edge counts as much as it is believed maximises its own likelihood, which is a consistent estimate of
          the density ratio but not J; and what is around the ends of an edge is weighed by what is believed of it.

        With types, c and B are those of a type.

        So J need not rise in a round, and rounds are few. What is said about an edge comes from the graph without it;
        only the few coefficients of the regression and B have seen all edges.
        """
        K, noisy, rng = prior.shape[1], self._noisy, np.random.default_rng([self.seed, 1])
        start = (_SURE * prior + (1 - _SURE) / K).astype(np.float32)
        (place, parts, chances), found = self._stated, list[GenuineEdges]()
        if self._chance.shape[1] < _FEWEST_PAIRS:
            nothing, even, odds = np.zeros(0), np.full_like(start, 1 / K), np.zeros(self.task.num_edges)
            return [GenuineEdges(s, odds, np.full_like(odds, s), nothing, start, even) for s in shares]
        believed, lasts = np.full(len(place), shares[0]), np.cumsum([pairs.shape[1] for pairs in chances])
        by_chance_of = [slice(last - pairs.shape[1], last) for last, pairs in zip(lasts, chances, strict=True)]
        weights = 1.0 if self.task.weights is None else self.task.weights[place] / np.bincount(place)[place]

        def odds_of(edges: np.ndarray, chance: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = np.empty(len(edges)), np.empty(len(chance))
            for part, other in zip(parts, by_chance_of, strict=True):
                ratio = density_ratio(edges[part], chance[other], counted[part], rng)
                found[0][part], found[1][other] = ratio(edges[part]), ratio(chance[other])
            return found

        tables, messages = _begun(noisy, start, believed)
        for share in shares:
            for _ in range(_ROUNDS):
                counted = believed * weights
                edges, chance = self._attributes(counted)
                alike, _ = odds_of(edges, chance, counted)
                beliefs, messages = noisy.propagate(start, tables, expit(alike + logit(share)), messages)
                edges = np.column_stack([edges, np.log(agreements(messages, tables, parts))])
                by_beliefs = agreements(beliefs[self._chance].reshape(-1, K), tables, by_chance_of)
                chance = np.column_stack([chance, np.log(by_beliefs)])
                odds, by_chance = odds_of(edges, chance, counted)
                believed = expit(odds + logit(share))
                tables = mixings(messages, tables, believed, parts)
            around = beliefs / start
            around /= around.sum(1, keepdims=True)
            lowest = np.full(self.task.num_edges, np.inf)
            np.minimum.at(lowest, place, odds)
            found.append(GenuineEdges(share, lowest, expit(lowest + logit(share)), by_chance, beliefs, around))
        return found


def pairs_by_chance(observed: ObservedEdges, seed: int) -> np.ndarray:
    """(2, P): pairs without an edge."""
    count = min(_CHANCE_PAIRS * observed.edges.shape[1], _MOST_PAIRS)
    pairs = np.stack(uniform_pairs(observed.n, count, np.random.default_rng(seed)))
    return pairs[:, observed.is_free(pairs)]


def _begun(noisy: NoisyEdges, prior: np.ndarray, believed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tables and messages to begin with: as labels that are known are linked, or like with like; whichever then
    explains the edges better. False edges may sit at the very nodes whose labels are known."""
    K, parts = prior.shape[1], noisy.parts
    like, even = (np.broadcast_to(one, (len(parts), K, K)) for one in ((1 - _ALIKE) + _ALIKE * K * np.eye(K), 1.0))
    known = 1 - entropy(prior, axis=1) / np.log(max(K, 2))
    first = np.concatenate([prior[noisy.edges[0]], prior[noisy.edges[1]]])
    seen = mixings(first, even, known[noisy.edges].prod(0), parts)
    found = []
    for tables in (seen, like):
        _, messages = noisy.propagate(prior, tables, believed, first, _FIRST_ROUNDS)
        suggested = mixings(messages, tables, believed, parts)
        explained = np.log1p(believed * (agreements(messages, suggested, parts) - 1)).mean()
        found.append((float(explained), suggested, messages))
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
    model = sklearn.linear_model.LogisticRegression(max_iter=500).fit(rows, kind, sample_weight=counts)
    return lambda attributes: np.asarray(model.decision_function((attributes - centre) / spread))
