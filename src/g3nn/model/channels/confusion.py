"""How often each class was labelled as each other, from predictions that have not seen the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from g3nn.graph.calibrate import Scaling, fit_temperature, log_seen

_SURE, _FEWEST = 0.25, 40
"""The share of wrong labels is read off where predictions are surest: this share of them, at least this number."""
_LEAST, _MOST = 0.002, 0.8
"""Some label may always be wrong; and labels are never worse than so much of what guessing would give, so that most of
each class keep their label."""
_NO_SKILL, SKILL = 0.35, 0.5
"""Up to the first, predictions say nothing about labels: what contradicts a model that is hardly better than guessing
may be a hard node as well as a wrong label. From the second on, what they say counts in full, and in between in
proportion."""
_FEWEST_OTHERS = 20
"""Skill is measured by labels that are right and not of the commonest class; with fewer of them there is none."""
_STRENGTH = 3.0
"""Pseudo-labels of each class that shrink where its wrong labels go towards all other classes alike."""
_ROUNDS, _ENOUGH = 200, 1e-9
_TURNS = 4


@dataclass(frozen=True, eq=False)
class Confusion:
    """T[k, s] = p(seen = s | true = k). table: (K, K), rows sum to one. course: what each round of EM reached."""

    table: np.ndarray
    course: tuple[float, ...] = ()

    def posterior(self, log_prob: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(m, K): b_i(k) = r_i(k) T[k, s_i] / Z_i, what a node is, from log r (m, K) that has not seen its label."""
        return np.exp(log_prob - self.log_prob(log_prob, seen)[:, None]) * self.table.T[seen]

    def log_prob(self, log_prob: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(m,): log Z_i = log sum_k q_i(k) T[k, s_i], the forward-corrected log-probability of the labels."""
        return log_seen(log_prob, seen, self.table)


def wrong_share(log_prob: np.ndarray, seen: np.ndarray) -> float:
    """The share of labels that are wrong, one standard error below what the surest predictions say.

    Predictions that are not sure say nothing about it: a model with wrong labels and sure predictions explains the same
    labels as one with right labels and unsure predictions. Where predictions are surest, what contradicts them is a
    wrong label. Even there predictions err, so the lower end of the estimate is taken, and less of it without `skill`.
    """
    size = _surest(len(seen))
    surest = np.argsort(-log_prob.max(1), kind="stable")[:size]
    share = float((log_prob[surest].argmax(1) != seen[surest]).mean())
    K = log_prob.shape[1]
    found = float(np.clip(share - share_error(share, len(seen)), _LEAST, _MOST * (K - 1) / K))
    weight = (skill(log_prob, seen, found) - _NO_SKILL) / (SKILL - _NO_SKILL)
    return max(found * min(max(weight, 0.0), 1.0), _LEAST)


def share_error(share: float, labels: int) -> float:
    """The standard error of a share of wrong labels that was read off the surest predictions."""
    return float(np.sqrt(share * (1 - share) / _surest(labels)))


def _surest(labels: int) -> int:
    return min(labels, max(_FEWEST, round(_SURE * labels)))


def skill(log_prob: np.ndarray, seen: np.ndarray, wrong: float) -> float:
    """How often predictions name the true class, on the way from always naming the commonest (0) to always right (1),
    if a share of the labels is wrong."""
    commonest, agree = float(np.bincount(seen).max()) / len(seen), float((log_prob.argmax(1) == seen).mean())
    others = 1 - wrong - commonest
    return (agree - commonest) / others if others * len(seen) >= _FEWEST_OTHERS else 0.0


def fit_confusion(log_prob: np.ndarray, seen: np.ndarray) -> tuple[Confusion, float]:
    """The table, and the temperature at which predictions log r (m, K) of labels `seen` (m,) explain them best.

    Maximised in turn over T and the temperature t is

        sum_i log sum_k r_i(k)^(1/t) T[k, s_i] / c_i + strength / (K - 1) sum_(k != l) log T[k, l] - (log t)^2 / 2

    with the diagonal of T held at 1 - `wrong_share` and c_i the sum of r_i^(1/t): where the wrong labels of a class go,
    found by EM, has a Dirichlet prior. No round of EM makes it worse.
    """
    share, temperature = wrong_share(log_prob, seen), 1.0
    found = _where_wrong_ones_go(Scaling(temperature)(log_prob), seen, share)
    for _ in range(_TURNS):
        temperature = fit_temperature(log_prob, seen, found.table)
        found = _where_wrong_ones_go(Scaling(temperature)(log_prob), seen, share)
    return found, temperature


def _where_wrong_ones_go(log_prob: np.ndarray, seen: np.ndarray, share: float) -> Confusion:
    K = log_prob.shape[1]
    others = ~np.eye(K, dtype=bool)
    table, course = np.where(others, share / (K - 1), 1 - share), list[float]()
    for _ in range(_ROUNDS):
        confusion = Confusion(table)
        prior = _STRENGTH / (K - 1) * float(np.log(table[others]).sum())
        course.append(float(confusion.log_prob(log_prob, seen).sum()) + prior)
        if len(course) > 1 and course[-1] - course[-2] <= _ENOUGH * abs(course[-1]):
            break
        b = confusion.posterior(log_prob, seen)
        counts = np.stack([b[seen == s].sum(0) for s in range(K)], axis=1)
        weights = np.where(others, counts + _STRENGTH / (K - 1), 0.0)
        table = np.where(others, share * weights / weights.sum(1, keepdims=True), 1 - share)
    return Confusion(table, tuple(course))
