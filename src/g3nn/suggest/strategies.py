"""What makes a node worth asking about: each strategy as scores of the candidates, the higher the better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr
from scipy.stats import rankdata

from g3nn.suggest import peers
from g3nn.suggest.covering import Cover
from g3nn.suggest.expected_error import expected_reduction
from g3nn.suggest.situation import Situation


@dataclass(frozen=True, eq=False)
class Part:
    """One reason to ask. words: as it is said to a person. values: (m,), at least 0, of the candidates. cover: given
    where values are what a node adds to it, so that they change with every node that is chosen."""

    words: str
    values: np.ndarray
    weight: float = 1.0
    cover: Cover | None = None

    def after(self, place: int) -> Part:
        """The same once the candidate at this place has been chosen."""
        if self.cover is None:
            return self
        cover = self.cover.with_node(place)
        return replace(self, cover=cover, values=cover.gains())

    @property
    def ranks(self) -> np.ndarray:
        """(m,): the share of the candidates that are no better."""
        return np.asarray(rankdata(self.values, method="average") / max(len(self.values), 1))


@dataclass(frozen=True, eq=False)
class Scores:
    """Parts that are added up by their percentile ranks; a single one counts as it is. spread_out: whether nodes like
    or beside one that was chosen count less afterwards. order: places of the candidates, where a strategy chooses a
    whole batch itself."""

    parts: tuple[Part, ...]
    spread_out: bool = True
    order: np.ndarray | None = None

    @property
    def total(self) -> np.ndarray:
        if len(self.parts) == 1:
            return self.parts[0].values
        return np.asarray(sum(part.weight * part.ranks for part in self.parts))

    def after(self, place: int) -> Scores:
        return replace(self, parts=tuple(part.after(place) for part in self.parts))


def random(situation: Situation, k: int) -> Scores:
    values = situation.rng().random(len(situation.candidates))
    return Scores((Part("drawn at random", values),), spread_out=False)


def entropy(situation: Situation, k: int) -> Scores:
    return Scores((_uncertain(situation),))


def margin(situation: Situation, k: int) -> Scores:
    """One minus the distance between the two likeliest classes."""
    if situation.beliefs is None:
        return entropy(situation, k)
    best = np.sort(situation.beliefs[situation.candidates], axis=1)
    values = 1.0 - (best[:, -1] - best[:, -2])
    return Scores((Part("the two likeliest classes are close to each other", values),))


def disagreement(situation: Situation, k: int) -> Scores:
    """Mutual information between a label and the replica that is asked: entropy of the mean less mean of entropies."""
    return Scores((_disagreeing(situation),))


def coverage(situation: Situation, k: int) -> Scores:
    return Scores((_covering(situation, None),), spread_out=False)


def expected_error(situation: Situation, k: int) -> Scores:
    return Scores((_expected(situation),))


_TEACHING = 0.3
"""The weight of what a label would teach, where the model is sure of all its answers; the rest is that of coverage."""
_ANYWAY = 0.5
"""What it is worth to cover a node whose answer is certain; one whose answer is certainly wrong has 1 more."""
_SOFT = 3.0
"""The temperature at which beliefs enter the expected error: a model with few labels is too sure, and who is sure of
all neighbours expects to learn nothing about them."""
_LABELS = 100.0
"""Labels after which a model of numbers or tags counts half as much as one that is sure."""


def default(situation: Situation, k: int) -> Scores:
    """Coverage of what is not yet known and, the surer the model is on the whole, what a label would teach.

    A model that knows little does not know either what it should ask. It gets surer with every label, where edges and
    features say something about labels at all.
    """
    if situation.uncertainty is None:
        return coverage(situation, k)
    weight = _TEACHING * _sureness(situation)
    covering = replace(_covering(situation, _open_questions(situation)), weight=1 - weight)
    return Scores((covering, replace(_expected(situation), weight=weight)))


STRATEGIES: dict[str, Callable[[Situation, int], Scores]] = {
    "default": default,
    "random": random,
    "entropy": entropy,
    "margin": margin,
    "disagreement": disagreement,
    "coverage": coverage,
    "expected-error": expected_error,
}

PEERS: dict[str, Callable[[Situation, int], Any]] = {"age": peers.age, "featprop": peers.featprop}
"""Published strategies, for comparison."""


def scores_of(strategy: str, situation: Situation, k: int) -> Scores:
    if strategy in STRATEGIES:
        return STRATEGIES[strategy](situation, k)
    values, order = PEERS[strategy](situation, k)
    return Scores((Part(f"chosen by {strategy}", values),), spread_out=False, order=order)


def _uncertain(situation: Situation) -> Part:
    if situation.uncertainty is None:
        return Part("nothing is known yet", np.ones(len(situation.candidates)))
    return Part("the model is unsure about it", situation.uncertainty[situation.candidates])


def _disagreeing(situation: Situation) -> Part:
    if situation.members is None or situation.beliefs is None or len(situation.members) < 2:
        return _uncertain(situation)
    answers = situation.members[:, situation.candidates]
    weights = situation.member_weights
    mean = np.average(answers, axis=0, weights=weights)
    each = np.average(entr(answers).sum(2), axis=0, weights=weights)
    return Part("members of the model disagree about it", np.maximum(entr(mean).sum(1) - each, 0.0))


def _covering(situation: Situation, worth: np.ndarray | None) -> Part:
    cover = Cover.of(situation.likeness, situation.candidates, situation.labelled, worth)
    return Part("it stands for nodes that no label covers yet", cover.gains(), cover=cover)


def _expected(situation: Situation) -> Part:
    if situation.beliefs is None:
        return _uncertain(situation)
    # One-hot rows, which are those of labels, stay as they are.
    beliefs = situation.beliefs ** (1 / _SOFT)
    beliefs /= beliefs.sum(1, keepdims=True)
    values = expected_reduction(beliefs, situation.adjacency, situation.candidates)
    return Part("its label would say most about its neighbours", values)


def _open_questions(situation: Situation) -> np.ndarray:
    """(n,): how likely the answer for each node is wrong, or how uncertain it is, and something for every node: a model
    with few labels is often too sure."""
    if situation.beliefs is not None:
        return np.asarray(_ANYWAY + 1.0 - situation.beliefs.max(1))
    assert situation.spread is not None
    return np.asarray(_ANYWAY + situation.spread / max(float(situation.spread.max(initial=0.0)), 1e-12))


def _sureness(situation: Situation) -> float:
    """From 0, where answers are guesses, to 1."""
    if situation.beliefs is None:
        return len(situation.labelled) / (len(situation.labelled) + _LABELS)
    K = situation.beliefs.shape[1]
    best = situation.beliefs[situation.candidates].max(1).mean()
    return float(np.clip((best - 1 / K) / (1 - 1 / K), 0.0, 1.0))
