"""What makes a node worth asking about: each strategy as scores of the candidates, the higher the better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import entr, expit

from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import neighbourhoods
from g3nn.queries.covering import Likeness, greedy_cover
from g3nn.queries.messages import mixing


@dataclass(frozen=True, eq=False)
class Situation:
    """A partly labelled graph before the next question.

    edges:    (2, E), each pair once. weights: (E,), or None if all edges count alike.
    features: (n, d), or None.
    labelled: sorted numbers of the nodes with a label. candidates: those that may be asked about.
    beliefs:  (n, K) probabilities of the classes, one-hot at labelled nodes; None where a label is no class, or before
              the first fit. members: (M, n, K), those of each replica, with weights (M,) that sum to 1.
    spread:   (n,), how uncertain the answer for each node is, where there are no `beliefs` to tell by.
    names:    of the K classes, for reasons in words.
    known_likeness: how alike nodes are, if that was worked out before for this graph.
    """

    edges: np.ndarray
    features: Matrix | None
    labelled: np.ndarray
    candidates: np.ndarray
    num_nodes: int
    weights: np.ndarray | None = None
    beliefs: np.ndarray | None = None
    members: np.ndarray | None = None
    member_weights: np.ndarray | None = None
    spread: np.ndarray | None = None
    names: tuple[str, ...] = ()
    seed: int = 0
    known_likeness: Likeness | None = None

    @cached_property
    def likeness(self) -> Likeness:
        if self.known_likeness is not None:
            return self.known_likeness
        return Likeness.of(self.features, self.edges, self.num_nodes, self.weights)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """(n, n), without self-loops."""
        return neighbourhoods(self.edges, self.num_nodes, self.weights, loops=False)

    @cached_property
    def uncertainty(self) -> np.ndarray | None:
        """(n,): entropy of the beliefs, or the spread; None where nothing is believed."""
        if self.beliefs is None:
            return self.spread
        return np.asarray(entr(self.beliefs).sum(1))

    def rng(self) -> np.random.Generator:
        """The same draws for the same labels, other ones when a label was added."""
        return np.random.default_rng([self.seed % 2**63, len(self.labelled)])


_ODDS = 5.0
"""Prior odds that similar nodes have the same label."""
_EFFECT = 0.5
"""How many standard deviations above chance pairs with the same label are expected to be alike, divided by the root of
the number of such pairs."""
_MOST = 1000
"""Of more labels, this many are used, evenly spaced in their list."""


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


_ROUNDS, _TABLES = 12, 3
_ARCS_AT_ONCE = 1 << 22
"""Cells of the tables (arcs, K, K) that are looked at in one go."""


def expected_reduction(beliefs: np.ndarray, adjacency: sp.csr_array, candidates: np.ndarray) -> np.ndarray:
    """(m,): how much squared error the label of each candidate is expected to remove from its neighbours.

    Under a block model of the edges the labels of two linked nodes u, v have a joint distribution proportional to
    a_k M_kl b_l, where M says how much more often classes k and l are linked than by chance. M comes from the beliefs
    at both ends of all edges; a and b are such that each end keeps its belief. With the label k of u known, v is
    believed to be J_kl / p_u(k); the squared error sum_l p_v(l) (1 - p_v(l)) falls, on average over k, by
    sum_kl J_kl^2 / p_u(k) - sum_l p_v(l)^2, which is never below zero. The error of u itself does not count: it is one
    node of many, and would lead to those that are unlike any other.

    What is approximated: messages go one step, neighbours count separately, M and the network stay as they are.

    beliefs: (n, K), one-hot at labelled nodes, which have nothing to gain. adjacency: (n, n), weights of the edges.
    """
    mixing = class_mixing(beliefs, adjacency)
    own = 1.0 - (beliefs**2).sum(1)
    rows = adjacency[candidates].tocoo()
    gains = np.zeros(len(candidates))
    K = beliefs.shape[1]
    size = max(1, _ARCS_AT_ONCE // (K * K))
    open_ends = own[rows.col] > 1e-9
    source, target, weight = rows.row[open_ends], rows.col[open_ends], rows.data[open_ends]
    for start in range(0, len(source), size):
        here = slice(start, start + size)
        found = _change(beliefs[candidates[source[here]]], beliefs[target[here]], mixing)
        gains += np.bincount(source[here], np.minimum(weight[here], 1.0) * found, minlength=len(candidates))
    return gains


def class_mixing(beliefs: np.ndarray, adjacency: sp.csr_array) -> np.ndarray:
    """(K, K): how much more often nodes of two classes are linked than by chance, from what is believed of both ends.

    Soft beliefs blur it: each round takes for an edge the joint belief that the last table implies.
    """
    arcs, table = adjacency.tocoo(), np.ones((beliefs.shape[1], beliefs.shape[1]))
    if not adjacency.sum() > 0:
        return table
    ends, share = np.concatenate([beliefs[arcs.row], beliefs[arcs.col]]), np.asarray(adjacency.sum(1)).ravel() @ beliefs
    for _ in range(_TABLES):
        table = mixing(ends, table, arcs.data, share / share.sum())
    return table


def _change(left: np.ndarray, right: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """(A,): how much the expected squared error at `right` (A, K) falls when the label at `left` (A, K) is known."""
    tiny = 1e-12
    a, b = np.ones_like(left), np.ones_like(right)
    for _ in range(_ROUNDS):
        a = left / np.maximum(b @ mixing.T, tiny)
        b = right / np.maximum(a @ mixing, tiny)
    joint = a[:, :, None] * mixing[None] * b[:, None, :]
    known = (joint**2 / np.maximum(joint.sum(2, keepdims=True), tiny)).sum((1, 2))
    return np.maximum(known - (right**2).sum(1), 0.0)


@dataclass(frozen=True, eq=False)
class Scores:
    """words: the reason, as it is shown to a person, or that of each candidate. values: (m,), at least 0, of the
    candidates. spread_out: whether nodes like or beside one that was chosen count less afterwards. order: places of the
    candidates, where a strategy chooses a whole batch itself."""

    words: str | Sequence[str]
    values: np.ndarray
    spread_out: bool = True
    order: np.ndarray | None = None


def random(situation: Situation, k: int) -> Scores:
    return Scores("drawn at random", situation.rng().random(len(situation.candidates)), spread_out=False)


def entropy(situation: Situation, k: int) -> Scores:
    if situation.uncertainty is None:
        return Scores("nothing is known yet", np.ones(len(situation.candidates)))
    return Scores("the model is unsure about it", situation.uncertainty[situation.candidates])


def margin(situation: Situation, k: int) -> Scores:
    """One minus the distance between the two likeliest classes."""
    if situation.beliefs is None:
        return entropy(situation, k)
    best = np.sort(situation.beliefs[situation.candidates], axis=1)
    return Scores("the two likeliest classes are close to each other", 1.0 - (best[:, -1] - best[:, -2]))


def disagreement(situation: Situation, k: int) -> Scores:
    """Mutual information between a label and the replica: entropy of the mean less mean of the entropies."""
    if situation.members is None or situation.beliefs is None or len(situation.members) < 2:
        return entropy(situation, k)
    answers = situation.members[:, situation.candidates]
    weights = situation.member_weights
    mean = np.average(answers, axis=0, weights=weights)
    each = np.average(entr(answers).sum(2), axis=0, weights=weights)
    return Scores("members of the model disagree about it", np.maximum(entr(mean).sum(1) - each, 0.0))


_SOFT = 3.0
"""The temperature at which beliefs enter the expected error. A model with few labels is overconfident, and where all
neighbours are certain nothing is left to gain."""


def expected_error(situation: Situation, k: int) -> Scores:
    if situation.beliefs is None:
        return entropy(situation, k)
    # One-hot rows, which are those of labels, stay as they are.
    beliefs = situation.beliefs ** (1 / _SOFT)
    beliefs /= beliefs.sum(1, keepdims=True)
    values = expected_reduction(beliefs, situation.adjacency, situation.candidates)
    return Scores("its label would say most about its neighbours", values)


def coverage(situation: Situation, k: int, worth: np.ndarray | None = None, trust: float = 1.0) -> Scores:
    """Candidates that cover most nodes. worth: (n,), how much it matters that each node is covered; None: all the same.
    trust: how probable it is that alike nodes have the same label; with the rest, candidates are drawn at random."""
    rng, nodes, places = situation.rng(), situation.candidates, np.arange(len(situation.candidates))
    at_random = rng.choice(places, int((rng.random(k) >= trust).sum()), replace=False)
    rest = np.setdiff1d(places, at_random)
    labelled = np.concatenate([situation.labelled, nodes[at_random]])
    chosen, covered = greedy_cover(situation.likeness, nodes[rest], labelled, k - len(at_random), worth)
    order = np.concatenate([rest[np.array(chosen, dtype=np.int64)], at_random])
    values, words = np.zeros(len(nodes)), ["drawn at random: alike nodes often have different labels here"] * len(nodes)
    for place, many in zip(order.tolist(), covered, strict=False):
        values[place] = many * (situation.num_nodes / len(situation.likeness.targets))
        words[place] = f"it stands for about {values[place]:.3g} nodes like it that no label covers yet"
    return Scores(words, values, order=order)


_ANYWAY, _LABELS = 2.0, 3.0
"""The worth of covering a node with a certain prediction, at this many labels of each class; a certainly wrong
prediction adds 1. A model with few labels is overconfident, and a poor judge of where it is wrong."""


def default(situation: Situation, k: int) -> Scores:
    """Coverage, in which nodes count more the likelier their answers are wrong, or the less certain they are: the more,
    the more labels there are. As far as labels so far say that alike nodes have the same label."""
    if situation.uncertainty is None:
        return coverage(situation, k)
    if situation.beliefs is None:
        most = max(float(situation.uncertainty.max(initial=0.0)), 1e-12)
        return coverage(situation, k, _ANYWAY + situation.uncertainty / most)
    labelled, K = situation.labelled, situation.beliefs.shape[1]
    trust = chance_of_agreement(situation.likeness.vectors[labelled], situation.beliefs[labelled])
    anyway = _ANYWAY * _LABELS * K / max(len(labelled), 1)
    return coverage(situation, k, anyway + 1.0 - situation.beliefs.max(1), trust)


Strategy = Callable[[Situation, int], Scores]
STRATEGIES: dict[str, Strategy] = {
    "default": default,
    "random": random,
    "entropy": entropy,
    "margin": margin,
    "disagreement": disagreement,
    "coverage": coverage,
    "expected-error": expected_error,
}
