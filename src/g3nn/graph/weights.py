"""How often the label of each node counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, xlogy

from g3nn.base.errors import Problems
from g3nn.base.parse import to_numpy
from g3nn.graph.outcomes import Labels, Outcome, without_labels_of
from g3nn.graph.outcomes.labels import quoted

BALANCED = "balanced"
_MOST_COPIES = 1000
_FINENESS = 4
_ALIKE = 0.05
"""With a lower p-value of a likelihood ratio test, classes are not as frequent among some labels as among others."""


def label_weights(
    class_weight: str | Mapping[object, float] | None,
    sample_weight: object,
    nodes: np.ndarray | None,
    labels: Labels,
    val: np.ndarray,
    outcome: type[Outcome],
    problems: Problems,
) -> np.ndarray | None:
    """(n,): the weight of a node's class times its own; None where a problem was recorded.

    class_weight: None, "balanced" (all classes have the same weight together among the training nodes) or a mapping
    from classes to weights, 1 for those it does not name. sample_weight: of the nodes, or of those in `nodes`.
    """
    n = len(labels.values)
    weights, train = np.ones(n), np.setdiff1d(labels.labelled, val)
    if sample_weight is not None:
        given, count = to_numpy(sample_weight), n if nodes is None else len(nodes)
        if given.shape != (count,) or given.dtype.kind not in "biuf":
            problems.add("sample_weight", f"shape {given.shape} of type {given.dtype}", f"{count} numbers")
            return None
        if not (np.isfinite(given).all() and (given >= 0).all()):
            problems.add("sample_weight", "negative or infinite weights, or NaN", "numbers from 0 on")
            return None
        weights[slice(None) if nodes is None else nodes] = given
    if class_weight is not None:
        if not outcome.exclusive:
            problems.add("class_weight", repr(class_weight), "None for tags", "Use sample_weight instead.")
            return None
        weights[labels.labelled] *= _of_classes(class_weight, labels, train, problems)[labels.values[labels.labelled]]
    if len(train) and weights[train].sum() == 0:
        problems.add("sample_weight", "zero for every training node", "a weight above 0 for some")
    return weights


def _of_classes(class_weight: Any, labels: Labels, train: np.ndarray, problems: Problems) -> np.ndarray:
    """(K,)"""
    names = labels.names.tolist()
    if isinstance(class_weight, str) and class_weight == BALANCED:
        counts = np.bincount(labels.values[train], minlength=len(names))
        return len(train) / (len(names) * np.maximum(counts, 1))
    if not isinstance(class_weight, Mapping):
        problems.add("class_weight", repr(class_weight), f"None, {BALANCED!r} or a mapping from classes to weights")
        return np.ones(len(names))
    strange = [name for name in class_weight if name not in names]
    values = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
    if strange:
        problems.add("class_weight", f"weights of {quoted(strange)}", f"the classes {quoted(names)}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        problems.add("class_weight", repr(dict(class_weight)), "weights above 0")
    return values


def without_weightless(labels: Labels, weights: np.ndarray | None, val: np.ndarray) -> Labels:
    """Labels that do not count are not known, unless they are to validate on, or are all that there are of a class."""
    if weights is None or not weights[labels.labelled].any():
        return labels
    hidden = np.setdiff1d(labels.labelled[weights[labels.labelled] == 0], val)
    if labels.values.ndim == 1:
        hidden = hidden[np.isin(labels.values[hidden], np.delete(labels.values, hidden))]
    return replace(labels, values=without_labels_of(labels.values, hidden))


def repeated(nodes: np.ndarray, weights: np.ndarray | None, among: np.ndarray | None = None) -> np.ndarray:
    """Nodes as often as their weights say, relative to each other and to those `among` which they are; the smallest
    weight there that is not 0 is exact to a quarter."""
    if weights is None or not weights[nodes].any():
        return nodes
    others = weights[nodes if among is None else among]
    shares = weights / others[others > 0].min()
    copies = np.minimum(np.rint(_FINENESS * shares), _FINENESS * _MOST_COPIES).astype(np.int64)
    return np.repeat(nodes, (copies // np.gcd.reduce(copies[nodes if among is None else among]))[nodes])


def weights_by_shares(labels: Labels, given: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """The weights (n,), or None if all are alike, times how much more frequent a class is among the nodes `given` to
    validate on than among the training labels, where these contradict each other.

    Labels to train on are often taken in equal numbers from every class. As many more nodes as there are classes are
    taken to agree with them.
    """
    values, K = labels.values, len(labels.names)
    train = np.setdiff1d(labels.labelled, given)
    shares = np.maximum(np.bincount(values[train], minlength=K) / len(train), np.finfo(np.float64).tiny)
    counts = np.bincount(values[given], minlength=K)
    if chdtrc(K - 1, 2 * xlogy(counts, counts / (len(given) * shares)).sum()) > _ALIKE:
        return weights
    ratio = (counts + K * shares) / (len(given) + K) / shares
    found = np.ones(len(values)) if weights is None else weights.copy()
    found[train] *= ratio[values[train]]
    return found
