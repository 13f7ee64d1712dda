"""Which estimators of scikit-learn can be kept without pickle, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from g3nn.base.errors import Problems, any_of
from g3nn.graph.outcomes import Outcome
from g3nn.model.tabular.models import FeatureModel, Linear, Trees

_BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_LINEAR: dict[str, tuple[type, ...]] = {
    "classifier": (LogisticRegression,),
    "regressor": (Ridge, LinearRegression, ElasticNet, Lasso, PoissonRegressor),
}
_LOGARITHMIC = ("poisson", "gamma")
"""Losses of boosted trees whose scores are logarithms of means."""

_COLUMNWISE: dict[str, tuple[type, ...]] = {
    "categorical_features": (),
    "monotonic_cst": (),
    "interaction_cst": (str,),
}
"""Arguments of boosted trees that name columns, and values of them that do not, besides the default."""


def check_feature_model(estimator: Any, outcome: type[Outcome], problems: Problems, argument: str = "prior") -> None:
    """Record why an estimator cannot learn such labels from features, or why it could not be saved afterwards."""
    wanted = outcome.learner
    allowed = f"a {wanted} of scikit-learn, such as HistGradientBoosting{wanted.capitalize()}()"
    if isinstance(estimator, type):
        problems.add(argument, f"the class {estimator.__name__}", allowed, f"Call it: {estimator.__name__}().")
        return
    if not isinstance(estimator, BaseEstimator):
        problems.add(argument, f"{estimator!r}, which is no estimator", allowed)
        return
    name = type(estimator).__name__
    if not (is_classifier if wanted == "classifier" else is_regressor)(estimator):
        problems.add(argument, f"{name}, which is no {wanted}", f"{allowed}, for {outcome.values_title}")
    elif wanted == "classifier" and not hasattr(estimator, "predict_proba"):
        advice = "Its answers have no probabilities; LogisticRegression() has them."
        problems.add(argument, f"{name} without predict_proba", allowed, advice)
    if is_boosted(estimator):
        given = estimator.get_params()
        for option, harmless in _COLUMNWISE.items():
            if not (given[option] is None or given[option] == "from_dtype" or isinstance(given[option], harmless)):
                advice = (
                    "Columns that never change are left out, so columns cannot be named. Encode categories instead."
                )
                problems.add(argument, f"{name} with {option}", f"{option} at its default", advice)
    elif not _is_linear(estimator):
        kept = [kind.__name__ for kind in _LINEAR[wanted]]
        names = any_of([f"HistGradientBoosting{wanted.capitalize()}", *kept])
        advice = "A model is saved as plain arrays, which are known for these only."
        given = " and ".join(type(step).__name__ for step in _steps(estimator)) or "nothing"
        given = f"a pipeline of {given}" if isinstance(estimator, Pipeline) else given
        allowed = f"{names}, or a pipeline of StandardScaler and {any_of(kept)}"
        problems.add(argument, f"{given}, which cannot be saved without pickle", allowed, advice)


def is_boosted(estimator: Any) -> bool:
    return type(estimator) in _BOOSTED


def centres(estimator: Any) -> bool:
    """Whether it subtracts the mean of each column, so that nothing stays sparse."""
    return any(isinstance(step, StandardScaler) and step.with_mean for step in _steps(estimator))


def estimator_name(estimator: Any) -> str:
    """The class of what learns: of a pipeline that is its last step."""
    return type((_steps(estimator) or [estimator])[-1]).__name__


def _steps(estimator: Any) -> list[Any]:
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]


def _is_linear(estimator: Any) -> bool:
    """A linear model, on its own or after scalers."""
    *scalers, last = _steps(estimator) or [None]
    return type(last) in sum(_LINEAR.values(), ()) and all(type(step) is StandardScaler for step in scalers)


def converted(estimator: Any) -> FeatureModel:
    """What a fitted estimator that passed `check_feature_model` has learned. It predicts the same."""
    if is_boosted(estimator):
        trees = [tree.nodes for iteration in estimator._predictors for tree in iteration]
        baseline = np.array(estimator._baseline_prediction, dtype=np.float64).ravel()
        link = "log" if estimator.loss in _LOGARITHMIC else "identity"
        return Trees.of(trees, baseline, _classifier_link(baseline) if is_classifier(estimator) else link)
    *scalers, last = _steps(estimator)
    coef = np.array(last.coef_, dtype=np.float64, ndmin=2).T
    intercept = np.zeros(coef.shape[1]) + last.intercept_
    link = "log" if isinstance(last, PoissonRegressor) else "identity"
    model = Linear(coef, intercept, _classifier_link(intercept) if is_classifier(last) else link)
    for scaler in reversed(scalers):
        d = scaler.n_features_in_
        mean = scaler.mean_ if scaler.with_mean else np.zeros(d)
        model = model.standardised(mean, scaler.scale_ if scaler.with_std else np.ones(d))
    return model


def _classifier_link(intercept: np.ndarray) -> str:
    return "logit" if len(intercept) == 1 else "softmax"
