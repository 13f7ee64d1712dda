"""Models of labels given features, each learned without the nodes that it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.
from sklearn.base import BaseEstimator, clone
from sklearn.utils.sparsefuncs import min_max_axis

from g3nn.base.errors import G3NNError, InputError, Problem
from g3nn.base.parse import Matrix
from g3nn.graph.outcomes import Outcome, is_known
from g3nn.model.inputs import Part
from g3nn.model.tabular.models import FeatureModel, Linear, centres, converted, is_boosted

_MIXED = 1e-3
"""How much of the frequencies of the classes is mixed into probabilities, so that none is 0 or 1."""

_MOST_COLUMNS, _MOST_FOR_TREES = 2000, 500
"""Of a matrix that has to be dense. The best ones by their F score stay."""

_COMPARED = 32
"""Rows on which a model is compared with scikit-learn's."""


@dataclass(frozen=True, eq=False)
class FoldModel:
    """A model of one column of labels, learned from all folds but one.

    places: (C,), the column of the answer that each class known to the model goes to, -1 for none.
    share:  (w,), how frequent the classes are among the nodes that the model has learned from; empty for numbers.
    """

    model: FeatureModel
    places: np.ndarray
    share: np.ndarray

    def mean(self, X: Matrix) -> np.ndarray:
        """(n, w): the probability of each class, of the only tag, or the expected number."""
        mean = self.model.predict(X)
        if not len(self.share):
            return mean
        p, wanted = np.zeros((len(mean), len(self.share))), self.places >= 0
        p[:, self.places[wanted]] = mean[:, wanted]
        return (1 - _MIXED) * p + _MIXED * self.share


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """p(y | x) from several models, none of which has seen all labels.

    models: those of each fold, for each column; classes are one column.
    spread: (T,), how far numbers are from the means that have not seen them; empty for classes and tags.
    """

    outcome: Outcome
    models: tuple[tuple[FoldModel, ...], ...]
    spread: np.ndarray

    @classmethod
    def fit(
        cls,
        estimator: BaseEstimator,
        X: Matrix,
        labels: np.ndarray,
        train: np.ndarray,
        outcome: Outcome,
        *,
        folds: int = 5,
        seed: int = 0,
        weights: np.ndarray | None = None,
    ) -> tuple[CrossFitted, np.ndarray]:
        """The models, and the answers (n, width) of all nodes: those of training nodes come from the model that has not
        seen their label, those of others from all models. Only the spread of numbers, one for each column, follows
        from all training labels.

        labels: (n,) classes or (n, T), as in `NodeTask`; only those of `train` are looked at. weights: (|L|,).
        """
        learner = _Learner(estimator, X, train, weights, outcome, labels.ndim == 1, seed)
        columns = outcome.warped(labels[train]).reshape(len(train), -1)
        fitted = [learner.column(values, _folds(values, folds, learner.classes > 0, seed)) for values in columns.T]
        mean = np.concatenate([mean for _, mean in fitted], axis=1)
        model = cls(outcome, tuple(models for models, _ in fitted), outcome.spread_around(mean[train], columns))
        return model, outcome.around(mean, model.spread)

    @classmethod
    def apart(
        cls, estimator: BaseEstimator, X: Matrix, parts: Sequence[Part], outcome: Outcome, seed: int = 0
    ) -> CrossFitted:
        """A model for each part, learned from its training nodes. The spread of numbers follows from the validation
        nodes, each seen by the model of its own part."""
        found, means, labels = [], [], []
        for task, weights in parts:
            own = None if weights is None else weights[task.train]
            learner = _Learner(estimator, X, task.train, own, outcome, task.labels.ndim == 1, seed)
            columns = outcome.warped(task.labels[task.train]).reshape(len(task.train), -1)
            models = [learner.fold_model(values, np.flatnonzero(is_known(values))) for values in columns.T]
            found.append(models)
            means.append(np.concatenate([model.mean(X[task.val]) for model in models], axis=1))
            labels.append(outcome.warped(task.labels[task.val]).reshape(len(task.val), -1))
        spread = outcome.spread_around(np.concatenate(means), np.concatenate(labels))
        return cls(outcome, tuple(zip(*found, strict=True)), spread)

    def answers(self, X: Matrix, part: int | None = None) -> np.ndarray:
        """(n, width): those of all models together, for nodes that none of them has seen, or those of the models of
        one part."""
        asked = self.models if part is None else [(models[part],) for models in self.models]
        means = [sum(model.mean(X) for model in models) / len(models) for models in asked]
        return self.outcome.around(np.concatenate(means, axis=1), self.spread)


def _folds(values: np.ndarray, folds: int, stratify: bool, seed: int) -> np.ndarray:
    """The fold of each value, -1 where it is unknown. Folds are of equal size up to one, and if they are stratified so
    is each class in them; a class with fewer labels than folds is in some of them."""
    known = np.flatnonzero(is_known(values))
    drawn = np.random.default_rng(seed).permutation(known)
    order = drawn[np.argsort(values[drawn], kind="stable")] if stratify else drawn
    fold = np.full(len(values), -1)
    fold[order] = np.arange(len(order)) % folds
    return fold


@dataclass(frozen=True, eq=False)
class _Learner:
    """Learns columns of labels of the nodes `train` from X (n, d). single: whether labels are classes, of which each
    node has one; otherwise there may be several columns."""

    estimator: BaseEstimator
    X: Matrix
    train: np.ndarray
    weights: np.ndarray | None
    outcome: Outcome
    single: bool
    seed: int

    @property
    def classes(self) -> int:
        """How many there are in a column, 0 for numbers."""
        return (self.outcome.columns if self.single else 2) if self.outcome.learner == "classifier" else 0

    def column(self, values: np.ndarray, fold: np.ndarray) -> tuple[tuple[FoldModel, ...], np.ndarray]:
        """The model of each fold and the means (n, w), from values (|L|,) and their folds."""
        models: list[FoldModel] = []
        total, unseen = np.zeros(1), []
        for held_out in range(fold.max() + 1):
            models.append(self.fold_model(values, np.flatnonzero((fold >= 0) & (fold != held_out))))
            mean, nodes = models[-1].mean(self.X), self.train[fold == held_out]
            total = total + mean
            unseen.append((nodes, mean[nodes]))
        mean = total / len(models)
        for nodes, own in unseen:
            mean[nodes] = own
        return tuple(models), mean

    def fold_model(self, values: np.ndarray, seen: np.ndarray) -> FoldModel:
        """seen: places in `train`."""
        d, boosted, values = self.X.shape[1], is_boosted(self.estimator), values[seen]
        if not self.classes:
            places, share, constant = np.zeros(1, dtype=np.int64), np.zeros(0), values.mean(keepdims=True)
        else:
            values = values.astype(np.int64)
            count = np.bincount(values, minlength=self.classes)
            first = 0 if self.single else 1  # An answer says nothing about nodes without a tag.
            constant = share = ((count + 1) / (count + 1).sum())[first:]
            # Boosting may set labels of each class aside to stop early, so it needs two of each.
            taught = count > boosted
            places, seen, values = np.flatnonzero(taught) - first, seen[taught[values]], values[taught[values]]
        rows, columns = self.X[self.train[seen]], np.arange(d)
        varies = len(values) > 0 and values.min() < values.max()
        if varies and (boosted or (sp.issparse(rows) and centres(self.estimator))):
            columns = self._useful_columns(rows, values)
            rows = rows[:, columns].toarray() if sp.issparse(rows) else rows[:, columns]
        if not varies or not len(columns):
            return FoldModel(Linear.constant(d, constant), np.arange(len(constant)), share)
        weights = None if self.weights is None else self.weights[seen]
        return FoldModel(self._fitted(rows.astype(np.float64), values, weights).within(columns, d), places, share)

    def _useful_columns(self, rows: Matrix, values: np.ndarray) -> np.ndarray:
        low, high = min_max_axis(rows, 0) if sp.issparse(rows) else (rows.min(0), rows.max(0))
        columns = np.flatnonzero(low != high)
        most = _MOST_FOR_TREES if is_boosted(self.estimator) else _MOST_COLUMNS
        if len(columns) > most:
            with np.errstate(divide="ignore", invalid="ignore"):
                tests = sklearn.feature_selection
                score, _ = (tests.f_classif if self.classes else tests.f_regression)(rows[:, columns], values)
            best = np.argsort(-np.nan_to_num(score), kind="stable")[:most]
            columns = np.sort(columns[best])
        return columns

    def _fitted(self, rows: Matrix, values: np.ndarray, weights: np.ndarray | None) -> FeatureModel:
        estimator = clone(self.estimator)
        free = [
            name for name, value in estimator.get_params().items() if name.endswith("random_state") and value is None
        ]
        estimator.set_params(**dict.fromkeys(free, self.seed))
        prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, sklearn.pipeline.Pipeline) else ""
        try:
            estimator.fit(rows, values, **({} if weights is None else {f"{prefix}sample_weight": weights}))
        except Exception as error:
            given = f"{type(self.estimator).__name__}, whose fit failed ({type(error).__name__}: {error})"
            allowed = "an estimator that can learn these labels from these features"
            raise InputError([Problem("prior", given, allowed)]) from error
        model, some = converted(estimator), rows[:_COMPARED]
        theirs = estimator.predict_proba(some) if self.classes else estimator.predict(some)[:, None]
        if not np.allclose(model.predict(some), theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max()):
            raise G3NNError(f"prior: {type(estimator).__name__} of this scikit-learn predicts otherwise than g3nn")
        return model
