"""`G3NNClassifier`: the scikit-learn estimator for classes and tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from g3nn.base.errors import Problems
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.request import check_share
from g3nn.estimator.scoring import share_of_classes, share_of_tag_sets
from g3nn.graph.outcomes import Classes, Labels, Outcome, Tags
from g3nn.graph.outcomes.labels import table_values


@dataclass(eq=False, repr=False)
class G3NNClassifier(ClassifierMixin, GraphEstimator):
    """Labels the nodes of a partly labelled graph, with calibrated probabilities.

    By default many models for homophilous and for heterophilous graphs are tried on several forms of the features.
    Those whose mixture has the lowest validation loss answer together.

    y is (n,) classes as strings, whole numbers or booleans; -1, None or NaN where unknown. Or it is (n, T): a column of
    0 and 1 for each of T tags, of which a node may have any number; NaN or None where unknown.

    model:        "auto", a name such as "sbm-gcn" or "gcn" (`g3nn.available()` lists them), or a `ModelSpec`.
    objective:    "auto" ("elbo", unless the panel chooses), "elbo", "released", "laplacian" or an `Objective`.
    prior:        the label prior p(y | x) of the joint models: "auto" (a perceptron), the name of another one, or a
                  classifier of scikit-learn such as HistGradientBoostingClassifier(). It is learned from the features
                  before anything else, cross-fitted, and never sees the label of a validation node. With model="auto"
                  it is also tried by itself, and its probabilities as additional features of networks. `load_model`
                  does not give the object back: prior is then its description, and to fit again it must be set.
    effort:       how much is tried: "quick", "default" or "thorough".
    budget:       seconds that trying may take, or None. One model is trained in any case.
    denoise:      whether edges may be doubted. "auto": networks that give less weight to edges which features and
                  labels do not explain are tried too, and validation decides; a model that is named believes all
                  edges. True: edges are always weighed, or none is believed, False: never.
    label_noise:  whether labels may be wrong. "auto": with a panel and at least 60 labels each label is judged by
                  models that have not seen it; if many are wrong, models are trained on what labels probably are,
                  and from 300 labels on folds of all of them validate, whatever was held back to do so. A model that
                  is named takes labels as given. True: always, False: never.
    ensemble:     number of replicas of a model that is named; in a panel, the most that any model gets.
    validation:   share of the labelled nodes, of each class alike, that is held back to stop, choose and calibrate by.
    refit:        train on all labels in the end, for as many epochs as were best before. The calibration is kept.
    missing:      "impute": features that are NaN are filled in from the neighbours (feature propagation), and with the
                  mean of the column where no neighbour knows; or "error".
    inductive:    keep unlabelled nodes and their edges out of the training; they are answered with the whole graph.
    directed:     whether edges have a direction.
    hidden, lr, weight_decay, epochs, patience: as in `g3nn.fit`; options: any other option of the parts, by name.
    class_weight: None, "balanced" (rare classes count as much as frequent ones) or a mapping from classes to weights.
                  Probabilities are then those of a graph in which the classes have these weights.
    device:       "auto", "cpu" or "cuda".
    random_state: None, a number or a RandomState; the validation nodes and all training follow from it.
    verbose:      a progress bar on a terminal, and words in the log "g3nn" (on standard error where none is set up).

    After `fit`: classes_ (of tags: the columns of y), n_features_in_, feature_names_in_ (if the columns have names),
    model_ (who answers: a name, or names with weights), panel_ (a `PanelEntry` for each model tried), temperature_,
    isolated_temperature_ (for isolated nodes), class_offsets_ (what calibration adds to the log-probability of each
    class; None if the validation nodes support no such thing), isolated_answer_ ("prior", "posterior" or "both": who
    answers for isolated nodes), task_, val_nodes_, n_validation_, n_iter_ (epochs), history_ and history_names_
    (learning curves of the network with the largest weight: epochs, terms, replicas), and notes_ (a mapping of plain
    values, empty; whatever is put there is saved with the model).
    """

    _: KW_ONLY
    class_weight: str | Mapping[Any, float] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def outcome_for(self, y: Any, problems: Problems) -> type[Outcome]:
        """Tags if y has columns, otherwise classes."""
        if isinstance(y, Labels):
            return Tags if y.values.ndim == 2 else Classes
        return Tags if y is not None and table_values(y) is not None else Classes

    def table_outcomes(self) -> tuple[str, ...]:
        return Classes.name, Tags.name

    def _name_labels(self, fitted: Fitted) -> None:
        self.classes_ = fitted.columns
        self.class_offsets_ = fitted.answerer.calibrations.linked.scaling.offsets

    @property
    def _of_tags(self) -> bool:
        return isinstance(self.fitted_.outcome, Tags)

    def predict_proba(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n, K) calibrated probabilities of the classes in `classes_`; of T tags (n, T), each for itself.

        Nothing given, or the X of the fit: all nodes of the fitted graph. Another X, with edges or without: new nodes,
        answered without a refit; in `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`:
        those nodes.
        """
        return self._moments(X, edges)[0]

    def predict(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) the likeliest class of each node; of tags (n, T), 1 where one is likelier than not, else 0.

        Nodes as in `predict_proba`.
        """
        probabilities = self.predict_proba(X, edges)
        if self._of_tags:
            return (probabilities > 0.5).astype(np.int64)
        labels: np.ndarray = self.classes_[probabilities.argmax(1)]
        return labels

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """The share of nodes, as in `predict_proba`, that are answered right; of tags, of those with all tags right.

        Unknown labels (-1, None or NaN) do not count.
        """
        answers = self.predict(X)
        if self._of_tags:
            return share_of_tag_sets(answers, y, sample_weight)
        return share_of_classes(answers, y, self.classes_, sample_weight)

    def predict_entropy(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) entropy of the probabilities in nats: 0 for a certain answer, log K where nothing is known.

        Of tags it is the sum of their entropies, at most T log 2.
        """
        p = self.predict_proba(X, edges)
        if self._of_tags:
            p = np.concatenate([p, 1 - p], axis=1)
        return -(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny))).sum(1)

    def predict_set(self, alpha: float = 0.1, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n, K) booleans: sets of classes that hold the true one with probability 1 - alpha (split conformal).

        A node is compared with the validation nodes, an isolated node with validation nodes without their edges. They
        have also served to choose and to stop, so the promise is a little optimistic.
        """
        problems = Problems()
        check_share("alpha", alpha, problems)
        if hasattr(self, "fitted_") and self._of_tags:
            advice = "predict_proba gives the probability of each tag."
            problems.add("predict_set", "tags, of which a node may have several", "classes", advice)
        problems.raise_if_any()
        return self._conformal(float(alpha), X, edges)
