"""How often each class was labelled as each other, from predictions that have not seen the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ANCHOR = 5.0
"""As how many labels the expected share of right labels counts."""
_ROUNDS = 500
_ENOUGH = 1e-10
"""The relative gain of a round below which the table stays as it is."""
_LIMIT, _HALVINGS = 30.0, 60
"""Log-odds between which the common share of right labels is looked for, and how often that range is halved."""


@dataclass(frozen=True, eq=False)
class Confusion:
    """T[k, s] = p(seen = s | true = k).

    table: (K, K), rows sum to one. right: the share of right labels that all rows are drawn to. course: what each round
    of the search reached.
    """

    table: np.ndarray
    right: float
    course: tuple[float, ...]

    def posterior(self, r: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(m, K): b_i(k) = r_i(k) T[k, s_i] / Z_i, what a node is, given probabilities r (m, K) that have not seen its
        label, and the label."""
        return _beliefs(self.table, r, seen)[0]

    def log_prob(self, log_answer: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(m,): log sum_k q_i(k) T[k, s_i], the log-probability of the labels that were seen, from log q (m, K)."""
        with np.errstate(divide="ignore"):
            joint = log_answer + np.log(self.table.T[seen])
        return np.asarray(np.logaddexp.reduce(joint, axis=1))


def fit_confusion(r: np.ndarray, seen: np.ndarray, strength: float = 10.0, start_wrong: float = 0.1) -> Confusion:
    """The likeliest table for labels `seen` (m,) and probabilities r (m, K) that have not seen them.

    Found by EM, which maximises

        sum_i log sum_k r_i(k) T[k, s_i] - strength sum_k KL(m || T_k) + 5 (v log a + (1 - v) log(1 - a))

    with m = a on the diagonal and (1 - a) / (K - 1) elsewhere: every row is drawn to one common row, as by a Dirichlet
    prior of `strength` labels, and the common share a of right labels to v = 1 - start_wrong, as by five labels. Given
    the beliefs, T and a are found together, so no round makes it worse. start_wrong: strictly between 0 and 1.
    """
    classes = r.shape[1]
    if classes == 1:
        return Confusion(np.ones((1, 1)), 1.0, ())
    right = 1.0 - start_wrong
    table = _common(right, classes)
    course: list[float] = []
    for _ in range(_ROUNDS):
        b, evidence = _beliefs(table, r, seen)
        course.append(evidence + _log_prior(table, right, strength, 1.0 - start_wrong))
        if len(course) > 1 and course[-1] - course[-2] <= _ENOUGH * abs(course[-1]):
            break
        counts = np.stack([b[seen == s].sum(0) for s in range(classes)], axis=1)
        right = _common_share(counts, strength, 1.0 - start_wrong)
        table = _rows(counts, right, strength)
    return Confusion(table, right, tuple(course))


def _beliefs(table: np.ndarray, r: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, float]:
    """(m, K), and sum_i log Z_i."""
    joint = r * table.T[seen]
    z = joint.sum(1, keepdims=True)
    return joint / z, float(np.log(z).sum())


def _common(right: float, classes: int) -> np.ndarray:
    """(K, K): a on the diagonal, the rest equal."""
    same = np.eye(classes)
    return right * same + (1.0 - right) / (classes - 1) * (1.0 - same)


def _rows(counts: np.ndarray, right: float, strength: float) -> np.ndarray:
    """(K, K): the best T, given expected counts and the common row."""
    table = counts + strength * _common(right, len(counts))
    return np.asarray(table / table.sum(1, keepdims=True))


def _log_prior(table: np.ndarray, right: float, strength: float, expected: float) -> float:
    common = _common(right, len(table))
    anchor = _ANCHOR * (expected * np.log(right) + (1.0 - expected) * np.log1p(-right))
    return float(anchor - strength * (common * np.log(common / table)).sum())


def _common_share(counts: np.ndarray, strength: float, expected: float) -> float:
    """The best a, if T follows it: the root of a slope that falls, since the objective is concave in T and a."""
    classes = len(counts)
    same = np.eye(classes, dtype=bool)
    low, high = -_LIMIT, _LIMIT
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        a = 1.0 / (1.0 + np.exp(-middle))
        rest = 1.0 / (1.0 + np.exp(middle))
        log_table = np.log(_rows(counts, a, strength))
        gaps = log_table[same] - log_table[~same].reshape(classes, -1).mean(1) - middle - np.log(classes - 1)
        slope = strength * gaps.sum() + _ANCHOR * (expected / a - (1.0 - expected) / rest)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return float(1.0 / (1.0 + np.exp(-(low + high) / 2)))
