from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from g3nn.base.errors import Problems
from g3nn.graph.outcomes import OUTCOMES
from g3nn.model.tabular import models
from g3nn.model.tabular.models import check_feature_model, converted, scaled_linear

BOOSTED = {"max_iter": 12, "min_samples_leaf": 3, "random_state": 0}
CLASSIFIERS = [
    HistGradientBoostingClassifier(**BOOSTED),
    LogisticRegression(),
    LogisticRegression(fit_intercept=False),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(with_mean=False), LogisticRegression()),
]
REGRESSORS = [
    HistGradientBoostingRegressor(**BOOSTED),
    HistGradientBoostingRegressor(loss="poisson", **BOOSTED),
    HistGradientBoostingRegressor(loss="gamma", **BOOSTED),
    HistGradientBoostingRegressor(loss="absolute_error", **BOOSTED),
    Ridge(),
    RidgeCV(),
    LinearRegression(fit_intercept=False),
    ElasticNet(alpha=0.1),
    Lasso(alpha=0.1),
    PoissonRegressor(),
    make_pipeline(StandardScaler(), StandardScaler(with_std=False), Ridge()),
]


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    """Seven columns: 14 rows at a time."""
    monkeypatch.setattr(models, "_CHUNK", 100)


@pytest.fixture(name="X")
def features():
    """Seven columns of very different size, the last constant; half of the values are zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 7)) * (rng.random((90, 7)) < 0.5) * [1, 1, 1, 2, 0.1, 3, 0]
    X[:, 6] = 4.0
    return X


def predictions(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.predict(X)[:, None]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_a_converted_classifier_predicts_the_same(estimator, classes, X):
    y = (np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.0, 0.5]) * classes) // 4
    model = converted(estimator.fit(X, y))
    theirs = predictions(estimator, X)
    assert theirs.std() > 0.05
    for form in (X, sp.csr_array(X), sp.coo_array(X), sp.csc_matrix(X)):
        np.testing.assert_allclose(model.predict(form), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_a_converted_regressor_predicts_the_same(estimator, X):
    y = np.exp(X[:, 0] + X[:, 1])
    model = converted(estimator.fit(X, y))
    theirs = predictions(estimator, X)
    assert theirs.std() > 0.05
    for form in (X, sp.csr_array(X)):
        np.testing.assert_allclose(model.predict(form), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", [CLASSIFIERS[0], REGRESSORS[0]], ids=str)
def test_missing_values_take_the_same_way(estimator, X):
    y = np.where(X[:, 0] > 0, 2, (X[:, 1] > 0).astype(int))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    model = converted(estimator.fit(X, y))
    assert len(np.unique(model.missing_left[model.feature >= 0])) == 2
    empty = np.full((1, 7), np.nan)
    for rows in (X, sp.csr_array(X), empty):
        dense = rows.toarray() if sp.issparse(rows) else rows
        np.testing.assert_allclose(model.predict(rows), predictions(estimator, dense), rtol=1e-9, atol=1e-9)


def test_trees_make_only_the_columns_dense_that_they_use(X):
    """25 rows at a time would take 20 MB."""
    wide = sp.csr_array((200, 100_000))
    estimator = CLASSIFIERS[0].fit(X, X[:, 0] > 0)
    model = converted(estimator).within(np.arange(7) * 10_000, wide.shape[1])
    model.predict(wide[:1])  # compiles
    tracemalloc.start()
    given = model.predict(wide)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6
    np.testing.assert_allclose(given, estimator.predict_proba(np.zeros((200, 7))), atol=1e-9)


def test_a_linear_model_knows_its_columns_in_a_wider_matrix(X):
    model = converted(Ridge().fit(X[:, [2, 5]], X[:, 0])).within(np.array([2, 5]), 7)
    np.testing.assert_allclose(model.predict(X), Ridge().fit(X[:, [2, 5]], X[:, 0]).predict(X[:, [2, 5]])[:, None])


def test_columns_that_say_nothing_are_penalised_more():
    rng = np.random.default_rng(1)
    x, signal = rng.standard_normal((1000, 50)), np.arange(50) == 0
    y = x @ signal + rng.standard_normal(1000)
    usual = make_pipeline(StandardScaler(), Ridge()).fit(x[:80], y[:80]).score(x[80:], y[80:])
    assert scaled_linear(OUTCOMES["real"]).fit(x[:80], y[:80]).score(x[80:], y[80:]) > usual + 0.2
    clear = scaled_linear(OUTCOMES["real"]).fit(x[:, :1], x[:, 0])
    np.testing.assert_allclose(clear.predict(x[:, :1]), x[:, 0], atol=0.01)


@pytest.mark.parametrize("labels", [2, 3])
def test_a_linear_model_needs_two_labels(labels):
    x = np.arange(labels * 4.0).reshape(labels, 4) ** 2
    assert np.isfinite(scaled_linear(OUTCOMES["real"]).fit(x, np.arange(labels)).predict(x)).all()


def found(estimator, outcome):
    problems = Problems()
    check_feature_model(estimator, OUTCOMES[outcome], problems)
    assert all(problem.argument == "prior" for problem in problems.found)
    return [str(problem) for problem in problems.found]


@pytest.mark.parametrize("outcome", ["classes", "tags"])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_these_classifiers_are_taken(estimator, outcome):
    assert found(estimator, outcome) == []


@pytest.mark.parametrize("outcome", ["real", "counts"])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_these_regressors_are_taken(estimator, outcome):
    assert found(estimator, outcome) == []


UNSAVED = "cannot be saved without pickle"
REFUSED = [
    (LogisticRegression, "classes", ["Call it: LogisticRegression()"]),
    ("logistic", "classes", ["'logistic', which is no estimator"]),
    (StandardScaler(), "classes", ["no classifier", UNSAVED]),
    (Ridge(), "classes", ["Ridge, which is no classifier"]),
    (Ridge(), "tags", ["for tags"]),
    (LogisticRegression(), "real", ["LogisticRegression, which is no regressor"]),
    (make_pipeline(StandardScaler(), LogisticRegression()), "counts", ["no regressor"]),
    (LinearSVC(), "classes", ["LinearSVC without predict_proba", UNSAVED]),
    (SVC(), "tags", ["SVC without predict_proba", UNSAVED]),
    (GaussianNB(), "classes", [UNSAVED]),
    (RandomForestRegressor(), "classes", ["no classifier", UNSAVED]),
    (make_pipeline(MinMaxScaler(), Ridge()), "real", ["a pipeline of MinMaxScaler and Ridge, which " + UNSAVED]),
    (make_pipeline(StandardScaler(), HistGradientBoostingRegressor()), "real", [UNSAVED]),
    (HistGradientBoostingClassifier(categorical_features=[0]), "classes", ["with categorical_features"]),
    (HistGradientBoostingRegressor(monotonic_cst=[1, 0]), "real", ["with monotonic_cst"]),
    (HistGradientBoostingRegressor(interaction_cst=[{0, 1}]), "real", ["with interaction_cst"]),
]


@pytest.mark.parametrize(("estimator", "outcome", "parts"), REFUSED, ids=str)
def test_every_reason_against_an_estimator_is_said(estimator, outcome, parts):
    messages = found(estimator, outcome)
    assert len(messages) == len(parts)
    assert all(part in message for part, message in zip(parts, messages, strict=True)), messages


def test_the_message_names_what_can_be_saved():
    (message,) = found(RandomForestClassifier(), "classes")
    assert "expected HistGradientBoostingClassifier or LogisticRegression, or a pipeline" in message
    (message,) = found(RandomForestRegressor(), "real")
    kinds = (Ridge, RidgeCV, LinearRegression, ElasticNet, Lasso, PoissonRegressor)
    assert all(kind.__name__ in message for kind in kinds)
    assert "LogisticRegression" not in message


def test_a_pipeline_without_steps_is_refused():
    assert UNSAVED in found(Pipeline([]), "classes")[-1]


def test_interactions_may_be_limited_without_naming_columns():
    assert found(HistGradientBoostingRegressor(interaction_cst="no_interactions"), "real") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda trees: {"left": np.zeros_like(trees.left)},
        lambda trees: {"right": trees.right + len(trees.right)},
        lambda trees: {"feature": trees.feature + len(trees.columns)},
        lambda trees: {"starts": trees.starts - 1},
        lambda trees: {"value": trees.value[1:]},
        lambda trees: {"baseline": trees.baseline[:0]},
    ],
)
def test_nodes_that_lead_in_a_circle_or_nowhere_are_no_trees(change):
    x = np.random.default_rng(0).normal(size=(60, 3))
    trees = converted(HistGradientBoostingClassifier(**BOOSTED).fit(x, x[:, 0] > 0))
    with pytest.raises(ValueError, match="no trees"):
        replace(trees, **change(trees))
