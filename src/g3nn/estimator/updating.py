"""Quick updates: new or corrected labels for a fitted model, which goes on from where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from g3nn.errors import Problems
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.suggesting import numbers_of
from g3nn.outcomes.labels import quoted
from g3nn.training.progress import Course


def update(fitted: Fitted, parameters: Mapping[str, Any], nodes: Any, labels: Any, progress: Course) -> Fitted:
    """See `GraphEstimator.update`."""
    problems = Problems()
    chosen, values = new_labels(fitted, nodes, labels, problems)
    if fitted.begun is None:
        advice = "Fit again, with the new labels."
        problems.add("update", "a model that was loaded", "one that was fitted in this process", advice)
    problems.raise_if_any()
    assert fitted.begun is not None
    request = fitted.begun[0]
    known = request.labels.values.copy()
    known[chosen] = values
    request = replace(request, labels=replace(request.labels, values=known))
    again = Fitted.fit(request, parameters, progress)
    return replace(again, tables=fitted.tables)


def new_labels(fitted: Fitted, nodes: Any, labels: Any, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the nodes, each once, and their labels. Raises with everything that is wrong."""
    chosen = numbers_of(fitted, "nodes", nodes, problems)
    own = Problems()
    values = fitted.outcome.encode(labels, fitted.columns, own)
    for problem in own.found:
        problems.add("labels", problem.given, problem.allowed, problem.advice)
    if chosen is not None and values is not None and len(chosen) != len(values):
        problems.add("labels", f"{len(values)} labels", f"one for each of the {len(chosen)} nodes")
    elif chosen is not None and not len(chosen):
        problems.add("nodes", "none", "at least one node")
    problems.raise_if_any()
    assert chosen is not None
    assert values is not None
    once, first, place = np.unique(chosen, return_index=True, return_inverse=True)
    same = np.asarray(values[first][place] == values).reshape(len(values), -1).all(1)
    if not same.all():
        twice = np.unique(chosen[~same]).tolist()
        problems.add("nodes", f"node {quoted(twice)} with different labels", "one label for each node")
        problems.raise_if_any()
    return once, values[first]
