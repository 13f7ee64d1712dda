"""Models without a graph: their input columns, scikit-learn's estimators by name, and what these learned as plain
arrays, which can be saved, and read without running any code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from g3nn.base.errors import Problems, any_of
from g3nn.base.parse import Matrix
from g3nn.graph.outcomes import Outcome
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import neighbour_mean, neighbourhoods

_NARROW = 128
"""The number of features up to which two steps are taken, otherwise one."""

_MOST_CELLS, _COMPONENTS = 100_000_000, 64
"""Where features and means would have more numbers than that, features are reduced first."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """How features of nodes become columns. basis: (d, r), what they are multiplied by; None: they stay. hops: how many
    steps are taken. extremes: whether the largest and smallest values among neighbours are columns, too. directed:
    whether arcs that come and go are counted apart."""

    basis: np.ndarray | None
    hops: int
    extremes: bool = False
    directed: bool = False

    @classmethod
    def fit(cls, task: NodeTask, seed: int = 0) -> Neighbourhood:
        """The basis are the leading singular vectors of the features."""
        features, edges, directed = task.features, task.edges, task.directed
        n, d = features.shape
        if d <= _NARROW:
            return cls(None, 2, extremes=not sp.issparse(features), directed=directed)
        # A mean over neighbours has no more entries than they have together.
        cells = features.nnz / n * (n + 2 * edges.shape[1]) if sp.issparse(features) else 2 * n * d
        if cells <= _MOST_CELLS:
            return cls(None, 1, directed=directed)
        svd = sklearn.decomposition.TruncatedSVD(min(_COMPONENTS, n), random_state=seed).fit(features)
        return cls(svd.components_.T.astype(np.float32), 2, directed=directed)

    def apply(self, task: NodeTask) -> Matrix:
        """(n, D): x, its mean over the neighbours, the mean of that over the neighbours and so on, extremes, and
        log(1 + degree); sparse if x is. What a node without neighbours has of them is 0."""
        features, edges, weights = task.features, task.edges, task.weights
        n, parts = task.num_nodes, [features if self.basis is None else features @ self.basis]
        mean = neighbour_mean(edges, n, weights)
        for _ in range(self.hops):
            parts.append(mean @ parts[-1])
        if self.extremes:
            parts += neighbour_extremes(parts[0], edges)
        counted = [np.asarray(neighbourhoods(edges, n, weights).sum(axis=1)).ravel() - 1]
        if self.directed:
            counted += [np.bincount(ends, weights, minlength=n) for ends in edges]
        parts.append(np.log1p(np.stack(counted, axis=1)))
        if sp.issparse(parts[0]):
            return sp.csr_array(sp.hstack(parts), dtype=np.float32)
        return np.concatenate(parts, axis=1, dtype=np.float32)


def neighbour_extremes(features: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
    """(n, d) twice: the largest and the smallest value of each feature among the neighbours, 0 where there are none."""
    rows = neighbourhoods(edges, len(features), loops=False)
    linked = np.flatnonzero(np.diff(rows.indptr))
    found = [np.zeros_like(features), np.zeros_like(features)]
    for column in range(features.shape[1] if len(linked) else 0):
        around = features[rows.indices, column]
        for extreme, largest in zip(found, (np.maximum, np.minimum), strict=True):
            extreme[linked, column] = largest.reduceat(around, rows.indptr[linked])
    return found


_ITERATIONS = 1000
"""Scikit-learn warns where its 100 are too few."""


def boosted_trees(outcome: type[Outcome]) -> BaseEstimator:
    return _boosted()[outcome.learner](max_leaf_nodes=15, l2_regularization=1.0, max_features=0.3, early_stopping=False)


def linear(outcome: type[Outcome], penalty: float = 1.0, labels: int = 1) -> BaseEstimator:
    """penalty: of the squares of coefficients, as a multiple of the usual one, beside the summed loss of the labels. Of
    real values it is the least one: up to a thousand times as much is taken, by labels left out one by one."""
    if outcome.learner == "classifier":
        return sklearn.linear_model.LogisticRegression(C=1 / penalty, max_iter=_ITERATIONS)
    if outcome.of_rates:
        # Its loss is a mean.
        return sklearn.linear_model.PoissonRegressor(alpha=penalty / max(labels, 1), max_iter=_ITERATIONS)
    return sklearn.linear_model.RidgeCV(alphas=penalty * np.logspace(0, 3, 7))


def scaled_linear(outcome: type[Outcome], penalty: float = 1.0, labels: int = 1) -> BaseEstimator:
    """On standardised columns."""
    last = linear(outcome, penalty, labels)
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), last)


def base_rate(outcome: type[Outcome]) -> BaseEstimator:
    """The same for all nodes: how frequent classes are, or the mean."""
    dummy = sklearn.dummy
    return dummy.DummyClassifier(strategy="prior") if outcome.learner == "classifier" else dummy.DummyRegressor()


NAMED: dict[str, Callable[[type[Outcome]], BaseEstimator]] = {"trees": boosted_trees, "linear-model": scaled_linear}


_CHUNK = 2**22
"""Values of a feature matrix that are made dense at a time."""

_LARGEST = 700.0
"""The exponential of more overflows."""


def _of_two(scores: np.ndarray) -> np.ndarray:
    second = expit(scores)
    return np.concatenate([1 - second, second], axis=1)


_INVERSE_LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda scores: scores,
    "log": lambda scores: np.exp(np.minimum(scores, _LARGEST)),
    "logit": _of_two,
    "softmax": lambda scores: softmax(scores, axis=1),
}
"""From scores (n, w) to means (n, 1), to the probabilities of two classes (n, 2), or to those of several (n, w)."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Means g(x W + b). coef: W (d, w). intercept: b (w,). link: the name of the inverse of g."""

    coef: np.ndarray
    intercept: np.ndarray
    link: str

    @classmethod
    def constant(cls, d: int, values: np.ndarray) -> Linear:
        """The same for all rows."""
        return cls(np.zeros((d, len(values))), values, "identity")

    def predict(self, X: Matrix) -> np.ndarray:
        """(n, C) probabilities or (n, 1) means of the rows of X (n, d)."""
        return _INVERSE_LINKS[self.link](_by_rows(X, len(self.coef), lambda rows: rows @ self.coef + self.intercept))

    def standardised(self, mean: np.ndarray, scale: np.ndarray) -> Linear:
        """The model whose features are (x - mean) / scale of this one's."""
        coef = self.coef / scale[:, None]
        return replace(self, coef=coef, intercept=self.intercept - mean @ coef)

    def within(self, columns: np.ndarray, d: int) -> Linear:
        """The same model for matrices with d columns, of which these are its own."""
        coef = np.zeros((d, self.coef.shape[1]))
        coef[columns] = self.coef
        return replace(self, coef=coef)


@dataclass(frozen=True, eq=False)
class Trees:
    """Sums of decision trees: tree t adds to score t % w.

    columns: those of the features that trees look at. The arrays from `feature` to `value` have an entry for each node
    of all trees, one tree after the other. feature: a place in `columns`, -1 in a leaf. threshold: rows up to it go
    `left`, others `right`, and those without a value left where `missing_left`. starts: (T,), the roots. baseline:
    (w,), what the trees add to.
    """

    columns: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray
    starts: np.ndarray
    baseline: np.ndarray
    link: str

    def __post_init__(self) -> None:
        """Walking through the trees is unchecked, and a file may hold anything: every step has to lead forward to
        another node."""
        size, inner = len(self.feature), np.flatnonzero(self.feature >= 0)
        nodes = (self.threshold, self.left, self.right, self.missing_left, self.value)
        sound = all(part.shape == (size,) for part in nodes) and self.baseline.ndim == 1 and len(self.baseline) > 0
        sound = sound and bool((self.feature < len(self.columns)).all())
        sound = sound and bool(((self.starts >= 0) & (self.starts < size)).all())
        if not sound or any(((side[inner] <= inner) | (side[inner] >= size)).any() for side in (self.left, self.right)):
            raise ValueError("nodes that are no trees")

    @classmethod
    def of(cls, trees: list[np.ndarray], baseline: np.ndarray, link: str) -> Trees:
        """trees: the records of the nodes of each, as `HistGradientBoostingClassifier` keeps them."""
        sizes = np.array([len(tree) for tree in trees])
        starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        nodes = np.concatenate(trees)
        inner, offset = nodes["is_leaf"] == 0, np.repeat(starts, sizes)
        feature = np.full(len(nodes), -1, dtype=np.int32)
        columns, feature[inner] = np.unique(nodes["feature_idx"][inner], return_inverse=True)
        left, right = (nodes[side].astype(np.int32) + offset for side in ("left", "right"))
        threshold, value = (nodes[name].astype(np.float64) for name in ("num_threshold", "value"))
        missing_left = nodes["missing_go_to_left"].astype(np.bool_)
        return cls(columns, feature, threshold, left, right, missing_left, value, starts, baseline, link)

    def predict(self, X: Matrix) -> np.ndarray:
        """(n, C) probabilities or (n, 1) means of the rows of X (n, d)."""
        return _INVERSE_LINKS[self.link](_by_rows(X, len(self.columns), self._scores))

    def _scores(self, rows: Matrix) -> np.ndarray:
        from g3nn.model.tabular.walk import add_leaves  # numba takes long to import.

        rows = rows[:, self.columns]
        dense = np.ascontiguousarray(rows.toarray() if sp.issparse(rows) else rows)
        nodes = self.feature, self.threshold, self.left, self.right, self.missing_left, self.value
        scores = np.tile(self.baseline, (len(dense), 1))
        add_leaves(dense, *nodes, self.starts, scores)
        return scores

    def within(self, columns: np.ndarray, d: int) -> Trees:
        """The same model for matrices with d columns, of which these are its own."""
        return replace(self, columns=columns[self.columns])


FeatureModel = Linear | Trees


def _by_rows(X: Matrix, width: int, scores: Callable[[Any], np.ndarray]) -> np.ndarray:
    """The scores of all rows, of which some are looked at together. width: the values of a row that are needed."""
    X = sp.csr_array(X) if sp.issparse(X) else X
    size = max(1, _CHUNK // max(1, width))
    return np.concatenate([scores(X[first : first + size]) for first in range(0, max(1, X.shape[0]), size)])


def _boosted() -> dict[str, type]:
    trees = sklearn.ensemble
    return {"classifier": trees.HistGradientBoostingClassifier, "regressor": trees.HistGradientBoostingRegressor}


def _linear() -> dict[str, tuple[type, ...]]:
    kinds = sklearn.linear_model
    ridge = (kinds.Ridge, kinds.RidgeCV)
    regressors = (*ridge, kinds.LinearRegression, kinds.ElasticNet, kinds.Lasso, kinds.PoissonRegressor)
    return {"classifier": (kinds.LogisticRegression,), "regressor": regressors}


_LOGARITHMIC = ("poisson", "gamma")
"""Losses of boosted trees whose scores are logarithms of means."""

_COLUMNWISE: dict[str, tuple[type, ...]] = {
    "categorical_features": (),
    "monotonic_cst": (),
    "interaction_cst": (str,),
}
"""Arguments of boosted trees that name columns, and values of them that do not, besides the default."""


def check_feature_model(estimator: object, outcome: type[Outcome], problems: Problems) -> None:
    """Record why an estimator cannot learn such labels from features, or why it could not be saved afterwards."""
    wanted = outcome.learner
    allowed = f"a {wanted} of scikit-learn, such as HistGradientBoosting{wanted.capitalize()}()"
    if isinstance(estimator, type):
        problems.add("prior", f"the class {estimator.__name__}", allowed, f"Call it: {estimator.__name__}().")
        return
    if not isinstance(estimator, BaseEstimator):
        problems.add("prior", f"{estimator!r}, which is no estimator", allowed)
        return
    name = type(estimator).__name__
    if not (is_classifier if wanted == "classifier" else is_regressor)(estimator):
        problems.add("prior", f"{name}, which is no {wanted}", f"{allowed}, for {outcome.values_title}")
    elif wanted == "classifier" and not hasattr(estimator, "predict_proba"):
        advice = "Its answers have no probabilities; LogisticRegression() has them."
        problems.add("prior", f"{name} without predict_proba", allowed, advice)
    if is_boosted(estimator):
        given = estimator.get_params()
        for option, harmless in _COLUMNWISE.items():
            if not (given[option] is None or given[option] == "from_dtype" or isinstance(given[option], harmless)):
                advice = (
                    "Columns that never change are left out, so columns cannot be named. Encode categories instead."
                )
                problems.add("prior", f"{name} with {option}", f"{option} at its default", advice)
    elif not _is_linear(estimator):
        kept = [kind.__name__ for kind in _linear()[wanted]]
        names = any_of([f"HistGradientBoosting{wanted.capitalize()}", *kept])
        advice = "A model is saved as plain arrays, which are known for these only."
        given = " and ".join(type(step).__name__ for step in _steps(estimator)) or "nothing"
        given = f"a pipeline of {given}" if isinstance(estimator, sklearn.pipeline.Pipeline) else given
        allowed = f"{names}, or a pipeline of StandardScaler and {any_of(kept)}"
        problems.add("prior", f"{given}, which cannot be saved without pickle", allowed, advice)


def is_boosted(estimator: BaseEstimator) -> bool:
    return type(estimator) in _boosted().values()


def centres(estimator: BaseEstimator) -> bool:
    """Whether it subtracts the mean of each column, so that nothing stays sparse."""
    return any(isinstance(step, sklearn.preprocessing.StandardScaler) and step.with_mean for step in _steps(estimator))


def estimator_name(estimator: BaseEstimator) -> str:
    """The class of what learns: of a pipeline that is its last step."""
    return type((_steps(estimator) or [estimator])[-1]).__name__


def _steps(estimator: BaseEstimator) -> list[Any]:
    return [step for _, step in estimator.steps] if isinstance(estimator, sklearn.pipeline.Pipeline) else [estimator]


def _is_linear(estimator: BaseEstimator) -> bool:
    """A linear model, on its own or after scalers."""
    *scalers, last = _steps(estimator) or [None]
    scaled = all(type(step) is sklearn.preprocessing.StandardScaler for step in scalers)
    return scaled and type(last) in sum(_linear().values(), ())


def converted(estimator: BaseEstimator) -> FeatureModel:
    """What a fitted estimator that passed `check_feature_model` has learned. It predicts the same."""
    if is_boosted(estimator):
        # Scikit-learn has no public access to trees, and formats that keep its objects need the same version to read
        # them. Each model is compared with scikit-learn's predictions when it is made, so a change there is an error.
        trees = [tree.nodes for iteration in estimator._predictors for tree in iteration]
        baseline = np.array(estimator._baseline_prediction, dtype=np.float64).ravel()
        link = "log" if estimator.loss in _LOGARITHMIC else "identity"
        return Trees.of(trees, baseline, _classifier_link(baseline) if is_classifier(estimator) else link)
    if isinstance(estimator, sklearn.dummy.DummyClassifier | sklearn.dummy.DummyRegressor):
        classifies = is_classifier(estimator)
        return Linear.constant(
            estimator.n_features_in_, np.ravel(estimator.class_prior_ if classifies else estimator.constant_)
        )
    *scalers, last = _steps(estimator)
    coef = np.array(last.coef_, dtype=np.float64, ndmin=2).T
    intercept = np.zeros(coef.shape[1]) + last.intercept_
    link = "log" if isinstance(last, sklearn.linear_model.PoissonRegressor) else "identity"
    model = Linear(coef, intercept, _classifier_link(intercept) if is_classifier(last) else link)
    for scaler in reversed(scalers):
        d = scaler.n_features_in_
        mean = scaler.mean_ if scaler.with_mean else np.zeros(d)
        model = model.standardised(mean, scaler.scale_ if scaler.with_std else np.ones(d))
    return model


def _classifier_link(intercept: np.ndarray) -> str:
    return "logit" if len(intercept) == 1 else "softmax"
