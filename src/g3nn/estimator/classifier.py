"""`G3NNClassifier`: the scikit-learn estimator."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from g3nn.audit import AuditTables, GraphAudit, SampledGraph
from g3nn.calibrate import brier_score, expected_calibration_error, negative_log_likelihood
from g3nn.errors import Problems
from g3nn.estimator.answers import Answers
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.fitting import run
from g3nn.estimator.labels import encode
from g3nn.estimator.request import is_share, read_request
from g3nn.model import ModelSpec
from g3nn.objective import Objective
from g3nn.parse import to_numpy


class G3NNClassifier(ClassifierMixin, BaseEstimator):
    """Labels the nodes of a partly labelled graph, with calibrated probabilities.

    By default a panel of models is trained, for graphs whose edges join equals as well as for those whose edges join
    others, and the one with the lowest loss on the validation nodes answers, as the mean of `ensemble` replicas.

    model:        "auto", a name such as "sbm-gcn" or "gcn" (`g3nn.available()` lists them), or a `ModelSpec`.
    objective:    "auto" ("elbo", unless the panel chooses), "elbo", "released", "laplacian" or an `Objective`.
    ensemble:     number of replicas whose probabilities are averaged.
    validation:   share of the labelled nodes, of each class alike, that is held back to stop, choose and calibrate by.
    refit:        train on all labels in the end, for as many epochs as were best before. The calibration is kept.
    missing:      "error", or "impute": features that are NaN are filled in from the neighbours (feature propagation),
                  and with the mean of the column where no neighbour knows.
    inductive:    keep unlabelled nodes and their edges out of the training; they are answered with the whole graph.
    directed:     whether edges have a direction.
    hidden, lr, weight_decay, epochs, patience: as in `g3nn.fit`; options: any other option of the parts, by name.
    device:       "auto", "cpu" or "cuda".
    random_state: None, a number or a RandomState; the validation nodes and all training follow from it.
    verbose:      say what is going on.

    After `fit`: classes_, n_features_in_, feature_names_in_ (if the columns have names), model_ (the name of the chosen
    model), panel_ (a `PanelEntry` for each model tried), temperature_, cold_temperature_ (for nodes without edges),
    class_offsets_ (what calibration adds to the log-probability of each class; None if the validation nodes support no
    such thing), cold_start_ ("prior" or "posterior": who answers for nodes without edges), task_, val_nodes_,
    n_validation_, n_iter_ (epochs), history_ and history_names_ (learning curves of the chosen model: epochs, terms,
    replicas), and notes_ (a mapping of plain values, empty; whatever is put there is saved with the model).
    """

    def __init__(
        self,
        model: str | ModelSpec = "auto",
        *,
        objective: str | Objective = "auto",
        ensemble: int = 5,
        validation: float = 0.2,
        refit: bool = False,
        missing: str = "error",
        inductive: bool = False,
        directed: bool = False,
        hidden: int = 16,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        epochs: int = 1000,
        patience: int = 100,
        options: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.objective = objective
        self.ensemble = ensemble
        self.validation = validation
        self.refit = refit
        self.missing = missing
        self.inductive = inductive
        self.directed = directed
        self.hidden = hidden
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.options = options
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    def fit(self, X: Any, y: Any = None, edges: Any = None, *, val: Any = None) -> G3NNClassifier:
        """Train on the labelled nodes of a graph.

        X:     (n, d) features: an array, a scipy sparse matrix or any data frame; `Nodes`; or a PyG `Data` alone.
        y:     (n,) classes as strings, whole numbers or booleans; -1, None or NaN where unknown.
        edges: (2, E) or (E, 2) node numbers, a scipy adjacency matrix, a networkx graph, a data frame with two columns,
               or None for no edges at all.
        val:   mask or numbers of the labelled nodes to validate on, instead of a share split off.
        """
        parameters = self.get_params(deep=False)
        request = read_request(parameters, X, y, edges, val)
        self._say(f"{len(request.train)} training nodes and {len(request.val)} validation nodes")
        self.restore(run(request, parameters))
        self._say(f"chose {self.model_} [{self.fitted_.objective}], temperature {self.temperature_:.3g}")
        return self

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, file=sys.stderr)

    def restore(
        self,
        fitted: Fitted,
        notes: Mapping[str, Any] | None = None,
        audit: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Take over what a fit found out, now or before it was saved; audit: the state of a `GraphAudit`."""
        known, calibrations = fitted.known, fitted.calibrations
        self.fitted_ = fitted
        self.classes_ = fitted.classes
        self.n_features_in_ = fitted.task.num_features
        if known.names is not None:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.model_ = fitted.spec.name
        self.panel_ = list(fitted.panel)
        self.temperature_ = calibrations.linked.scaling.temperature
        self.cold_temperature_ = calibrations.alone.scaling.temperature
        self.class_offsets_ = calibrations.linked.scaling.offsets
        self.cold_start_ = known.answerer.cold_start
        self.task_ = fitted.task
        self.val_nodes_ = fitted.task.val
        self.n_validation_ = len(fitted.task.val)
        self.n_iter_ = fitted.epochs
        self.history_ = fitted.history
        self.history_names_ = fitted.history_names
        self.notes_: dict[str, Any] = dict(notes or {})
        self.graph_audit_: GraphAudit | None = None
        if audit is not None:
            self.graph_audit_ = GraphAudit.from_state(fitted.task, self._beliefs(), audit)

    def _ask(self, X: Any, edges: Any) -> Answers:
        check_is_fitted(self)
        return self.fitted_.known.ask(X, edges)

    def predict_proba(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n, K) calibrated probabilities of the classes in `classes_`.

        Nothing given: all nodes of the fitted graph. X alone or with edges: new nodes, answered without a refit; in
        `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`: those nodes.
        """
        answers = self._ask(X, edges)
        return self.fitted_.calibrations.probabilities(answers)

    def predict(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) the likeliest class of each node; nodes as in `predict_proba`."""
        probabilities = self.predict_proba(X, edges)
        labels: np.ndarray = self.classes_[probabilities.argmax(1)]
        return labels

    def predict_entropy(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) entropy of the probabilities in nats: 0 for a sure answer, log K where nothing is known."""
        p = self.predict_proba(X, edges)
        return -(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny))).sum(1)

    def predict_set(self, alpha: float = 0.1, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n, K) booleans: sets of classes that hold the true one with probability 1 - alpha (split conformal).

        The validation nodes are what a node is compared with; they have also served to choose and to stop, so the
        promise is a little optimistic. Nodes without edges are compared with validation nodes without theirs.
        """
        if not is_share(alpha):
            problems = Problems()
            problems.add("alpha", repr(alpha), "a number strictly between 0 and 1")
            problems.raise_if_any()
        answers = self._ask(X, edges)
        return self.fitted_.calibrations.sets(answers, alpha)

    def evaluate(self, nodes: Any, y: Any) -> dict[str, Any]:
        """How good the answers for these nodes of the fitted graph are (mask or numbers), given their labels.

        accuracy, nll (mean of - log p), ece (expected calibration error, 15 bins), brier, and the number of nodes.
        """
        check_is_fitted(self)
        problems = Problems()
        chosen = _node_numbers(nodes, self.task_.num_nodes, problems)
        labels = encode(y, self.classes_, problems)
        if len(labels) != len(chosen):
            problems.add("y", f"{len(labels)} labels", f"one for each of the {len(chosen)} nodes")
        if len(chosen) == 0:
            problems.add("nodes", "none", "at least one node")
        problems.raise_if_any()
        probabilities = self.predict_proba()[chosen]
        return {
            "accuracy": float((probabilities.argmax(1) == labels).mean()),
            "nll": negative_log_likelihood(np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)), labels),
            "ece": expected_calibration_error(probabilities, labels),
            "brier": brier_score(probabilities, labels),
            "nodes": len(chosen),
        }

    def edge_proba(self, pairs: Any, density: str = "balanced") -> np.ndarray:
        """(P,) the probability of an edge for each of pairs (2, P) of fitted nodes, averaged over beliefs about labels.

        density: "balanced" (0.5: as likely an edge as not, if there were as many of either), or "observed" (the
        probability in a graph as sparse as this one). An observed edge is judged by a model that did not see it.
        """
        return self._graph_audit().edge_proba(pairs, density)

    def audit(self, missing: int = 100) -> AuditTables:
        """Observed edges from the most suspicious on, and `missing` pairs that probably should have one."""
        return self._graph_audit().tables(missing)

    def sample_graph(self, seed: int = 0) -> SampledGraph:
        """A new graph as dense as the fitted one: labels drawn from the answers, then edges from p(G | X, Y)."""
        return self._graph_audit().sample(seed)

    def _graph_audit(self) -> GraphAudit:
        """Fitted when it is first asked for."""
        check_is_fitted(self)
        if self.graph_audit_ is None:
            seed = self.fitted_.seeds[0]
            self.graph_audit_ = GraphAudit.fit(self.task_, self._beliefs(), seed=seed, device=self.device)
        return self.graph_audit_

    def _beliefs(self) -> np.ndarray:
        """(n, K): the labels where they are known, and the answers elsewhere."""
        beliefs, known = self.predict_proba(), np.concatenate([self.task_.train, self.task_.val])
        beliefs[known] = np.eye(len(self.classes_))[self.task_.labels[known]]
        return beliefs

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a new folder, as safetensors and JSON. `g3nn.load_model` reads it back.

        What was learned about edges is written too if they have been asked for.
        """
        from g3nn.estimator.saving import save_model

        check_is_fitted(self)
        save_model(self.fitted_, self.get_params(deep=False), self.notes_, self.graph_audit_, Path(folder))


def _node_numbers(nodes: Any, n: int, problems: Problems) -> np.ndarray:
    """Numbers in the order given, or those that a mask marks."""
    raw = to_numpy(nodes)
    if raw.dtype == bool and raw.shape == (n,):
        return np.flatnonzero(raw)
    if raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iu" or raw.min() < 0 or raw.max() >= n:
        problems.add("nodes", f"shape {raw.shape} of type {raw.dtype}", f"a mask ({n},) or node numbers 0..{n - 1}")
        return np.zeros(0, dtype=np.int64)
    return raw.astype(np.int64)
