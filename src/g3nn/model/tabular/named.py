"""Estimators of scikit-learn that have a name: which one it is depends on what labels are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from g3nn.graph.outcomes import Counts, Outcome

_ITERATIONS = 1000
"""Scikit-learn warns where its 100 are too few."""


def boosted_trees(outcome: type[Outcome]) -> Any:
    kind = HistGradientBoostingClassifier if outcome.learner == "classifier" else HistGradientBoostingRegressor
    return kind(max_leaf_nodes=15, l2_regularization=1.0, max_features=0.3, early_stopping=False)


def scaled_linear(outcome: type[Outcome]) -> Any:
    if outcome.learner == "classifier":
        last = LogisticRegression(max_iter=_ITERATIONS)
    else:
        last = PoissonRegressor(max_iter=_ITERATIONS) if outcome is Counts else Ridge()
    return make_pipeline(StandardScaler(), last)


NAMED: dict[str, Callable[[type[Outcome]], Any]] = {"trees": boosted_trees, "linear-model": scaled_linear}
