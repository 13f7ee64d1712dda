"""The scores that scikit-learn asks for. Labels that are not known do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from g3nn.base.errors import Problems
from g3nn.base.parse import UNKNOWN
from g3nn.graph.outcomes.classes import is_unknown
from g3nn.graph.outcomes.labels import flat_values, is_missing, table_values


def share_of_classes(answers: np.ndarray, y: Any, classes: np.ndarray, weight: Any) -> float:
    """The share of right classes. -1 is unknown unless it is one of the classes."""
    values = flat_values([] if y is None else y)
    ordinary = UNKNOWN in classes.tolist()
    unknown = np.array([is_missing(value) for value in values.tolist()]) if ordinary else is_unknown(values)
    weight = _checked(answers, values, ~unknown, weight)
    right = [given == wanted for given, wanted in zip(answers.tolist(), values.tolist(), strict=True)]
    return float(np.average(right, weights=weight))


def share_of_tag_sets(answers: np.ndarray, y: Any, weight: Any) -> float:
    """The share of nodes whose known tags are all right."""
    values = _numbers(y)
    weight = _checked(answers, values, ~np.isnan(values).all(axis=1), weight)
    return float(np.average(((answers == values) | np.isnan(values)).all(axis=1), weights=weight))


def explained(answers: np.ndarray, y: Any, weight: Any) -> float:
    """The share of the variance that is explained (R squared), the mean over columns."""
    values, answers = _numbers(y), answers.reshape(len(answers), -1)
    weight = _checked(answers, values, ~np.isnan(values).all(axis=1), weight)
    columns = zip(values.T, answers.T, (~np.isnan(values)).T, strict=True)
    return float(np.mean([r2_score(v[known], a[known], sample_weight=weight[known]) for v, a, known in columns]))


def _checked(answers: np.ndarray, values: np.ndarray, known: np.ndarray, weight: Any) -> np.ndarray:
    """(n,): the weight of each node, 0 where nothing is known."""
    problems = Problems()
    weights = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    if values.shape != answers.shape:
        problems.add("y", f"shape {values.shape}", f"a label for each of the nodes of X, shape {answers.shape}")
    elif weights.shape != (len(values),):
        problems.add("sample_weight", f"shape {weights.shape}", f"a weight for each of the {len(values)} nodes")
    elif not known.any():
        problems.add("y", "no known label", "the label of at least one node, to judge by")
    problems.raise_if_any()
    return weights * known


def _numbers(y: Any) -> np.ndarray:
    """(n, T) with NaN where nothing is known."""
    table = table_values(y)
    raw = table[0] if table is not None else flat_values([] if y is None else y)
    if raw.dtype.kind not in "biuf":
        raw = np.array([np.nan if is_missing(value) else value for value in raw.ravel().tolist()]).reshape(raw.shape)
    return raw.astype(np.float64).reshape(len(raw), -1)
