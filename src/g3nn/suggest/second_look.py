"""Which labels to look at again: those that the other labels contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from g3nn.suggest.agreement import chance_of_agreement

_RIDGE = 1.0
_LEAST = 0.5
"""Where alike nodes have the same label less probably than this, no label contradicts another."""


@dataclass(frozen=True)
class LabelSuggestion:
    """A label to check. node: by the caller's id; number: in the graph. label: what it has; instead: what nodes like it
    have. score: how much more they say so, comparable within one answer only. reason: in words."""

    node: Any
    number: int
    label: Any
    instead: Any
    score: float
    reason: str


def doubtful_labels(k: int, vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most k places of labels that are probably wrong, the worst first; the class that each has rather; and scores.

    vectors: (m, r), by which the labelled nodes are alike. labels: (m, K), one-hot. Each label is predicted from all
    others by ridge regression, of which leaving one out costs nothing: with H the matrix that makes fitted values of
    labels, the prediction without i is (f_i - H_ii y_i) / (1 - H_ii).
    """
    if not len(labels) or chance_of_agreement(vectors, labels) < _LEAST:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    rows, centred = vectors.astype(np.float64), labels - labels.mean(0)
    solved = np.linalg.solve(rows.T @ rows + _RIDGE * np.eye(rows.shape[1]), rows.T).T
    own = (solved * rows).sum(1, keepdims=True)
    expected = (solved @ (rows.T @ centred) - own * centred) / (1 - own) + labels.mean(0)
    instead, given = expected.argmax(1), labels.argmax(1)
    scores = expected.max(1) - expected[np.arange(len(labels)), given]
    order = np.argsort(-scores, kind="stable")[:k]
    order = order[instead[order] != given[order]]
    return order, instead[order], scores[order]
