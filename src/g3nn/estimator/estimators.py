"""`G3NNClassifier` for classes and tags, `G3NNRegressor` for real values and counts, and `load_model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sklearn  # Its parts are imported where they are used: they take long.
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags as SklearnTags
from sklearn.utils.validation import check_is_fitted

from g3nn.base.errors import DataError, G3NNError, Problems
from g3nn.base.parse import UNKNOWN
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.curve import learning_curve
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Parameters
from g3nn.estimator.problem import check_share
from g3nn.estimator.saving import AUDIT, GRAPH, PARAMETERS, Json, read_archive, restored
from g3nn.graph.outcomes import OUTCOMES, Classes, Labels, Outcome, Real, Tags
from g3nn.graph.outcomes.classes import is_unknown
from g3nn.graph.outcomes.labels import flat_values, is_missing, quoted, table_values
from g3nn.graph.rare import ASKED, Threshold
from g3nn.model.generative import REGISTRIES
from g3nn.queries import LearningCurve
from g3nn.queries.learning_curve import numbers_of_labels
from g3nn.training.progress import course


def share_of_classes(answers: np.ndarray, y: object, classes: np.ndarray, weight: npt.ArrayLike | None) -> float:
    """The share of right classes. -1 is unknown unless it is one of the classes."""
    values = flat_values([] if y is None else y)
    ordinary = UNKNOWN in classes.tolist()
    unknown = np.array([is_missing(value) for value in values.tolist()]) if ordinary else is_unknown(values)
    weight = _checked(answers, values, ~unknown, weight)
    right = [given == wanted for given, wanted in zip(answers.tolist(), values.tolist(), strict=True)]
    return float(np.average(right, weights=weight))


def share_of_tag_sets(answers: np.ndarray, y: object, weight: npt.ArrayLike | None) -> float:
    """The share of nodes whose known tags are all right."""
    values = _numbers(y)
    weight = _checked(answers, values, ~np.isnan(values).all(axis=1), weight)
    return float(np.average(((answers == values) | np.isnan(values)).all(axis=1), weights=weight))


def explained(answers: np.ndarray, y: object, weight: npt.ArrayLike | None) -> float:
    """The share of the variance that is explained (R squared), the mean over columns."""
    values, answers = _numbers(y), answers.reshape(len(answers), -1)
    weight = _checked(answers, values, ~np.isnan(values).all(axis=1), weight)
    columns = zip(values.T, answers.T, (~np.isnan(values)).T, strict=True)
    score = sklearn.metrics.r2_score
    return float(np.mean([score(v[known], a[known], sample_weight=weight[known]) for v, a, known in columns]))


def _checked(answers: np.ndarray, values: np.ndarray, known: np.ndarray, weight: npt.ArrayLike | None) -> np.ndarray:
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


def _numbers(y: object) -> np.ndarray:
    """(n, T) with NaN where nothing is known."""
    table = table_values(y)
    raw = table[0] if table is not None else flat_values([] if y is None else y)
    if raw.dtype.kind not in "biuf":
        raw = np.array([np.nan if is_missing(value) else value for value in raw.ravel().tolist()]).reshape(raw.shape)
    return raw.astype(np.float64).reshape(len(raw), -1)


@dataclass(eq=False, repr=False)
class G3NNClassifier(ClassifierMixin, GraphEstimator):
    """Labels the nodes of a partly labelled graph, with calibrated probabilities.

    By default many models for homophilous and for heterophilous graphs are tried on several forms of the features.
    Those whose mixture has the lowest validation loss answer together.

    y is (n,) classes as strings, whole numbers or booleans; -1, None or NaN where unknown. Or it is (n, T): a column of
    0 and 1 for each of T tags, of which a node may have any number; NaN or None where unknown.

    model:        "auto", a name such as "sbm-gcn" or "gcn" (`g3nn.available()` lists them), or a `ModelSpec`.
    objective:    "auto" ("elbo", unless the panel chooses), "elbo", "released", "laplacian" or an `Objective`. With
                  model="auto" also "none": of each joint model only its network is tried.
    prior:        the label prior p(y | x) of the joint models: "auto" (a perceptron), the name of another one, or a
                  classifier of scikit-learn such as HistGradientBoostingClassifier(). It is learned from the features
                  before anything else, cross-fitted, and never sees the label of a validation node. With model="auto"
                  it is also tried by itself, and its probabilities as additional features of networks. `load_model`
                  does not give the object back: prior is then its description, and to fit again it must be set.
    effort:       how much is tried: "quick", "default" or "thorough".
    budget:       seconds that trying may take, or None. One model is trained in any case.
    denoise:      whether edges may be doubted. "auto": networks that give less weight to edges which features and
                  labels do not explain are tried too, and validation decides; types whose edges join nodes by chance
                  are left out; a model that is named uses all edges. True: edges are always weighted, or none is
                  used, False: never.
    label_noise:  whether labels may be wrong. "auto": with a panel and at least 60 labels each label is judged by
                  models that have not seen it; if many are wrong, models are trained on what labels probably are,
                  and from 300 labels on folds of all of them validate, whatever was held back to do so. A model that
                  is named takes labels as given. True: always, False: never.
    ensemble:     number of replicas of a model that is named; in a panel, the most that any model gets.
    validation:   share of the labelled nodes, of each class alike, that is held back to stop, choose and calibrate by.
    refit:        train on all labels in the end, for as many epochs as were best before. The calibration is kept.
    missing:      "impute": features that are NaN are filled in from the neighbours (feature propagation), and with the
                  mean of the column where no neighbour has a value; or "error".
    inductive:    keep unlabelled nodes and their edges out of the training; they are answered with the whole graph.
    directed:     whether edges have a direction.
    hidden, lr, weight_decay, epochs, patience: as in `g3nn.fit`; options: any other option of the parts, by name.
    class_weight: None, "balanced" (rare classes count as much as frequent ones) or a mapping from classes to weights.
                  Probabilities are then those of a graph in which the classes have these weights.
    device:       "auto", "cpu" or "cuda".
    random_state: None, a number or a RandomState; the validation nodes and all training follow from it.
    verbose:      a progress bar on a terminal, and words in the log "g3nn" (on standard error where none is set up).

    After `fit`: classes_ (of tags: the columns of y), n_features_in_, feature_names_in_ (if the columns have names),
    model_ (the members: a name, or names with weights), panel_ (a `PanelEntry` for each model tried), temperature_,
    isolated_temperature_ (for isolated nodes), class_offsets_ (what calibration adds to the log-probability of each
    class; None if it adds nothing), isolated_answer_ ("prior", "posterior", "both" or "similar":
    what answers for isolated nodes), task_, val_nodes_, n_validation_, n_iter_ (epochs), history_ and history_names_
    (learning curves of the network with the largest weight: epochs, terms, replicas), and notes_ (a mapping of plain
    values, empty; whatever is put there is saved with the model).
    """

    _: KW_ONLY
    class_weight: str | Mapping[object, float] | None = None

    def __sklearn_tags__(self) -> SklearnTags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def outcome_for(self, y: object, problems: Problems) -> type[Outcome]:
        """Tags if y has columns, otherwise classes."""
        if isinstance(y, Labels):
            return Tags if y.values.ndim == 2 else Classes
        return Tags if y is not None and table_values(y) is not None else Classes

    def table_outcomes(self) -> tuple[str, ...]:
        return Classes.name, Tags.name

    def _name_labels(self, fitted: Fitted) -> None:
        self.classes_ = fitted.columns
        self.class_offsets_ = fitted.answerer.calibrations["linked"].scaling.offsets

    @property
    def _of_tags(self) -> bool:
        return self.fitted_.outcome.flags

    def predict_proba(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n, K) calibrated probabilities of the classes in `classes_`; of T tags (n, T), each for itself.

        Nothing given, or the X of the fit: all nodes of the fitted graph. Another X, with edges or without: new nodes,
        answered without a refit; in `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`:
        those nodes.
        """
        return self._moments(X, edges)[0]

    def predict(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n,) the likeliest class of each node; of tags (n, T), 1 where one is likelier than not, else 0.

        Nodes as in `predict_proba`.
        """
        probabilities = self.predict_proba(X, edges)
        if self._of_tags:
            return (probabilities > 0.5).astype(np.int64)
        labels: np.ndarray = self.classes_[probabilities.argmax(1)]
        return labels

    def score(self, X: object = None, y: object = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of nodes, as in `predict_proba`, that are answered right; of tags, of those with all tags right.

        Unknown labels (-1, None or NaN) do not count.
        """
        answers = self.predict(X)
        if self._of_tags:
            return share_of_tag_sets(answers, y, sample_weight)
        return share_of_classes(answers, y, self.classes_, sample_weight)

    def predict_entropy(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n,) entropy of the probabilities in nats: 0 for a certain answer, log K where nothing is known.

        Of tags it is the sum of their entropies, at most T log 2.
        """
        p = self.predict_proba(X, edges)
        if self._of_tags:
            p = np.concatenate([p, 1 - p], axis=1)
        return -(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny))).sum(1)

    def predict_set(
        self, alpha: float = 0.1, X: object = None, edges: object = None, *, by_class: bool = False
    ) -> np.ndarray:
        """(n, K) booleans: sets of classes that hold the true one with probability 1 - alpha (split conformal).

        A node is compared with the validation nodes, an isolated node with validation nodes without their edges. They
        have also served to choose and to stop, so the promise is a little optimistic.

        by_class: nodes of each class, rare ones too, are in sets that hold it with this probability. Then a class with
        fewer than 1 / alpha - 1 validation nodes is in every set.
        """
        problems = Problems()
        check_share("alpha", alpha, problems)
        self._check_classes("predict_set", problems)
        if by_class and hasattr(self, "fitted_"):
            scored = self.fitted_.answerer.calibrations.values()
            if any(one.scored is None and len(one.scores) for one in scored):
                advice = "Fit again, and save the model with this version of g3nn."
                problems.add("by_class", "a model that was saved without the classes of its scores", "False", advice)
        problems.raise_if_any()
        return self._conformal(float(alpha), X, edges, by_class)

    def threshold(self, label: object, *, recall: float | None = None, precision: float | None = None) -> Threshold:
        """From which probability of a class on a node is to be chosen, for a wanted recall or precision of the class.

            found = clf.threshold("fraud", recall=0.9)
            chosen = clf.predict_proba()[:, k] >= found.probability

        label: one of `classes_`. recall: the highest such probability; precision: the lowest one. Validation nodes
        decide; the `Threshold` has both figures on them, each with a 95 % interval, which is wide if few nodes have the
        class. What so few cannot support is refused.
        """
        check_is_fitted(self)
        problems, names = Problems(), self.classes_.tolist()
        asked = {name: share for name, share in zip(ASKED, (recall, precision), strict=True) if share is not None}
        for name, share in asked.items():
            check_share(name, share, problems)
        if len(asked) != 1:
            problems.add("recall and precision", "both" if asked else "neither", "one of them")
        self._check_classes("threshold", problems)
        if label not in names:
            problems.add("label", repr(label), f"one of the classes {quoted(names)}")
        self.fitted_.check_validation(problems)
        problems.raise_if_any()
        ((name, share),) = asked.items()
        return self.fitted_.threshold(names.index(label), name, float(share))

    def learning_curve(self, labels: object = None) -> LearningCurve:
        """How accurate answers may be expected to be with fewer and with more labels, and what ten more would give.

            curve = clf.learning_curve()
            print(curve.gain(10))  # ten more labels would probably give +2 points of accuracy (0 to +4)

        labels: numbers of labels to ask about, by default some fewer than the fit had, as many, ten more, and two and
        four times as many. When it is first asked, the network with the most weight is trained on some of the labels,
        nine times in all. A page that `report` writes afterwards has the sentence. A model that was loaded has no
        problem to train on; tags and numbers have no such curve.
        """
        check_is_fitted(self)
        problems, asked = Problems(), None if labels is None else numbers_of_labels(labels)
        self._check_classes("learning_curve", problems)
        problems.raise_if_any()
        if self.learning_curve_ is None:
            with course(self.verbose) as progress:
                self.learning_curve_ = learning_curve(self.fitted_, self.device, progress)
        return self.learning_curve_ if asked is None else self.learning_curve_.at(asked)

    def _check_classes(self, method: str, problems: Problems) -> None:
        if hasattr(self, "fitted_") and self._of_tags:
            advice = "predict_proba gives the probability of each tag."
            problems.add(method, "tags, of which a node may have several", "classes", advice)


@dataclass(eq=False, repr=False)
class G3NNRegressor(RegressorMixin, GraphEstimator):
    """Predicts numbers for the nodes of a partly labelled graph, with deviations and intervals that hold.

    y is (n,) or (n, T) numbers; NaN or None where unknown. By default many models are tried: networks alone, networks
    as posterior of a joint model in which nodes with close values are linked, and boosted trees. Those whose mixture
    gives the validation values the highest log-probability answer together.

    outcome:      "real", or "counts" for whole numbers from 0 on.
    model:        "auto", a name such as "near-gcn" or "gcn", or a `ModelSpec`.
    prior:        as for `G3NNClassifier`; an estimator is a regressor such as HistGradientBoostingRegressor().
    options:      any other option of the parts by name, such as noise="node" for deviations that differ between nodes.
    validation:   share of the labelled nodes that is held back to stop, choose and calibrate by.

    The other parameters are those of `G3NNClassifier`. After `fit`: target_names_ (the columns of y), n_features_in_,
    feature_names_in_ (if the columns have names), model_, panel_ (a `PanelEntry` for each model tried; its val_score
    is the share of the variance, for counts of the deviance, that is explained), temperature_ and isolated_temperature_
    (what variances are multiplied with, for nodes with and without edges), isolated_answer_, task_, val_nodes_,
    n_validation_, n_iter_, history_, history_names_ and notes_, all as for `G3NNClassifier`.
    """

    _: KW_ONLY
    outcome: str = Real.name

    def outcome_for(self, y: object, problems: Problems) -> type[Outcome]:
        if self.learns(self.outcome):
            return OUTCOMES[self.outcome]
        problems.name("outcome", self.outcome, filter(self.learns, OUTCOMES))
        return Real

    @staticmethod
    def learns(outcome: str) -> bool:
        """Whether this estimator is the one for an outcome."""
        return outcome in OUTCOMES and OUTCOMES[outcome].learner == "regressor"

    def table_outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    def _name_labels(self, fitted: Fitted) -> None:
        self.target_names_ = fitted.columns

    def predict(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n,) or (n, T): the expectation of each value.

        Nothing given, or the X of the fit: all nodes of the fitted graph. Another X, with edges or without: new nodes,
        answered without a refit; in `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`:
        those nodes.
        """
        return self._shaped(self._moments(X, edges)[0])

    def score(self, X: object = None, y: object = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of the variance of y that is explained (R squared), the mean over columns; nodes as in `predict`.

        Unknown values (None or NaN) do not count.
        """
        return explained(self.predict(X), y, sample_weight)

    def predict_std(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n,) or (n, T): the standard deviation of each value; nodes as in `predict`."""
        return self._shaped(self._moments(X, edges)[1])

    def predict_interval(self, level: float = 0.9, X: object = None, edges: object = None) -> np.ndarray:
        """(2, n) or (2, n, T): lowest and highest values that hold the true one with probability `level` (split
        conformal: as many deviations around the expectation as the validation nodes need).

        A node is compared with validation nodes, an isolated one with validation nodes without their edges, a new one
        with validation nodes as if they were new. They have also served to choose and to stop, so the promise is a
        little optimistic. With fewer than level / (1 - level) validation values no value can be excluded: intervals are
        infinite.
        """
        problems = Problems()
        check_share("level", level, problems)
        problems.raise_if_any()
        ends = self._conformal(1 - float(level), X, edges)
        return np.stack([self._shaped(ends[:, :, 0]), self._shaped(ends[:, :, 1])])

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.fitted_.flat else values


def load_model(folder: str | Path) -> G3NNClassifier | G3NNRegressor:
    """A fitted estimator from a folder that `save` or `g3nn fit` wrote: a `G3NNClassifier`, or a `G3NNRegressor`.

    No code from the folder is run. Parts that another package offered when the model was saved must be installed.
    """
    folder = Path(folder)
    record, tensors = read_archive(folder)
    try:
        _check_packages(record)
        parameters, fitted = restored(record, tensors[PARAMETERS], tensors[GRAPH])
        estimator = estimator_for(fitted.task.outcome, parameters)
        estimator.restore(fitted, record["notes"], tensors.get(AUDIT))
        return estimator
    except _MissingPackageError as error:
        raise DataError(f"{folder}: {error}") from None
    except (ArithmeticError, AttributeError, G3NNError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, G3NNError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{folder}: its parts do not fit together ({reason}). Fit and save the model again.") from error


def estimator_for(outcome: str, parameters: Parameters) -> G3NNClassifier | G3NNRegressor:
    """The estimator of an outcome, with these parameters."""
    if G3NNRegressor.learns(outcome):
        return G3NNRegressor(**{**parameters, "outcome": outcome})
    return G3NNClassifier(**parameters)


class _MissingPackageError(G3NNError):
    """A part of the model belongs to a package that is not installed."""


def _check_packages(record: Json) -> None:
    """Raise unless every part that other packages offered when the model was saved is here."""
    lacking = [one for one in record.get("packages", []) if one[1] not in REGISTRIES[one[0]]]
    if lacking:
        parts = ", ".join(f"the {kind} {name!r} of {package} {version}" for kind, name, package, version in lacking)
        needed = " ".join(sorted({package for _, _, package, _ in lacking}))
        raise _MissingPackageError(f"the model needs {parts}, not found here. Install it: pip install {needed}")
