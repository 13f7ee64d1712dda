"""What makes a node worth asking about: each strategy as scores of the candidates, the higher the better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from g3nn.queries.agreement import chance_of_agreement
from g3nn.queries.expected_error import expected_reduction
from g3nn.queries.situation import Situation


@dataclass(frozen=True, eq=False)
class Scores:
    """words: the reason to ask, as it is said to a person. values: (m,), at least 0, of the candidates. spread_out:
    whether nodes like or beside one that was chosen count less afterwards. order: places of the candidates, where a
    strategy chooses a whole batch itself."""

    words: str
    values: np.ndarray
    spread_out: bool = True
    order: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Worth:
    """Candidates are to be chosen so that they cover nodes. values: (n,), how much it matters that each node is
    covered; None if all matter alike. trust: how probable it is that alike nodes have the same label; with the rest,
    nodes are drawn at random."""

    values: np.ndarray | None
    trust: float = 1.0


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
    """Mutual information between a label and the replica that is asked: entropy of the mean less mean of entropies."""
    if situation.members is None or situation.beliefs is None or len(situation.members) < 2:
        return entropy(situation, k)
    answers = situation.members[:, situation.candidates]
    weights = situation.member_weights
    mean = np.average(answers, axis=0, weights=weights)
    each = np.average(entr(answers).sum(2), axis=0, weights=weights)
    return Scores("members of the model disagree about it", np.maximum(entr(mean).sum(1) - each, 0.0))


_SOFT = 3.0
"""The temperature at which beliefs enter the expected error: a model with few labels is too sure, and who is sure of
all neighbours expects to learn nothing about them."""


def expected_error(situation: Situation, k: int) -> Scores:
    if situation.beliefs is None:
        return entropy(situation, k)
    # One-hot rows, which are those of labels, stay as they are.
    beliefs = situation.beliefs ** (1 / _SOFT)
    beliefs /= beliefs.sum(1, keepdims=True)
    values = expected_reduction(beliefs, situation.adjacency, situation.candidates)
    return Scores("its label would say most about its neighbours", values)


def coverage(situation: Situation, k: int) -> Worth:
    return Worth(None)


_ANYWAY, _LABELS = 2.0, 3.0
"""What it is worth to cover a node whose answer is certain, at so many labels of each class; one whose answer is
certainly wrong has 1 more. A model with few labels is too sure, and does not know either what it should ask."""


def default(situation: Situation, k: int) -> Worth:
    """Coverage, in which nodes count more the likelier their answers are wrong, or the less certain they are: the more,
    the more labels there are. As far as labels so far say that alike nodes have the same label."""
    if situation.uncertainty is None:
        return coverage(situation, k)
    if situation.beliefs is not None:
        labelled, K = situation.labelled, situation.beliefs.shape[1]
        trust = chance_of_agreement(situation.likeness.vectors[labelled], situation.beliefs[labelled])
        anyway = _ANYWAY * _LABELS * K / max(len(labelled), 1)
        return Worth(anyway + 1.0 - situation.beliefs.max(1), trust)
    return Worth(_ANYWAY + situation.uncertainty / max(float(situation.uncertainty.max(initial=0.0)), 1e-12))


Strategy = Callable[[Situation, int], Scores | Worth]
STRATEGIES: dict[str, Strategy] = {
    "default": default,
    "random": random,
    "entropy": entropy,
    "margin": margin,
    "disagreement": disagreement,
    "coverage": coverage,
    "expected-error": expected_error,
}
