"""A fitted model: what a fit learned, how it came about, and its answers for old and new nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from g3nn.audit import MergedGroups
from g3nn.calibrate import FEW_VALIDATION_NODES
from g3nn.data.tables.fitted_tables import FittedTables
from g3nn.data.tables.new_nodes import NewNodes
from g3nn.errors import G3NNWarning, Problems, TrainingError
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.estimator.features import FeatureTable, as_kind, read_features
from g3nn.estimator.forms import Form
from g3nn.estimator.inferring import can_infer
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.panel import PanelEntry, Search
from g3nn.estimator.preparing import tasks_of
from g3nn.estimator.request import Request, fingerprint
from g3nn.estimator.tables import asked_of, features_of, is_table
from g3nn.estimator.weights import repeated
from g3nn.model import ModelSpec
from g3nn.outcomes import Outcome, unlabelled
from g3nn.parse import Edges, Matrix, read_edges, read_weighted_edges
from g3nn.posteriors.label_propagation import LabelPropagation
from g3nn.task import NodeTask
from g3nn.training import FitResult
from g3nn.training.plan import Plan
from g3nn.training.progress import Course
from g3nn.training.result import history_names


@dataclass(frozen=True, eq=False)
class Fitted:
    """A chosen and trained model with its graph, calibration and training record.

    columns:  the names of the K classes or T columns. flat: whether labels came as (n,), so that answers of one column
              do too.
    seen:     the nodes whose labels were trained on.
    answers:  those for the fitted nodes, before calibration.
    features: the names of the feature columns. form: what is done to their values before a model sees them. means: of
              the columns in this form, where missing values are filled in.
    key:      the fingerprint of the features as they came. structural: whether they were made from the edges.
    epochs:   how long the chosen model trained. history: (epochs, terms, R), its learning curves.
    hyperparameters: every option of the model, defaults included.
    unit:     the mean of the weights of the edges, as they came; 1 without weights.
    tables:   what is to be remembered of the tables of the fit, if there were any.
    """

    columns: np.ndarray
    flat: bool
    spec: ModelSpec
    objective: str
    hyperparameters: dict[str, Any]
    seeds: tuple[int, ...]
    panel: tuple[PanelEntry, ...]
    epochs: int
    history: np.ndarray
    task: NodeTask
    seen: np.ndarray
    answerer: Answerer
    answers: Answers
    features: tuple[str, ...] | None
    form: Form
    means: np.ndarray | None
    key: str
    structural: bool
    unit: float
    tables: FittedTables | None = None

    @property
    def outcome(self) -> Outcome:
        return self.answerer.outcome

    @property
    def history_names(self) -> tuple[str, ...]:
        return history_names(self.outcome)

    @classmethod
    def fit(cls, request: Request, parameters: Mapping[str, Any], progress: Course) -> Fitted:
        """Train the panel, choose, calibrate, refit if asked to, and answer for all nodes."""
        whole, training, seen, form, means = tasks_of(
            request, parameters["inductive"], request.structural or parameters["missing"] == "impute"
        )
        tried = request.candidates
        if not training.num_edges:
            # Without a single edge all models of a panel are the same one.
            tried = tried[:1]
        if len(tried) > 1 and len(request.val):
            _warn_of_few(len(request.val))
        weights = None if request.weights is None else request.weights[seen]
        if weights is not None:
            training = replace(training, val=repeated(training.val, weights))
        search = Search(training, request.common, parameters["device"], request.seeds, progress, weights)
        if len(request.val):
            chosen, result, panel = search.run(tried)
        else:
            chosen, result, panel = search.unvalidated(tried)
            _note_unvalidated(panel[0], len(request.candidates) > 1)
        plan = chosen.plan(request.common, result.seeds, parameters["device"])
        infers = result.model.posterior.nodes is not None and can_infer(result.model, plan.objective)
        if len(request.val):
            answerer = Answerer.choose(result.model, training, plan.device, infers)
        else:
            nothing = Calibration(scores=np.zeros((0, *training.labels.shape[1:])))
            answerer = Answerer(result.model, plan.device, Calibrations(nothing, nothing), infers=infers)
        epochs, labelled = int(result.epochs.max()), request.train
        if parameters["refit"] and len(request.val):
            epochs, labelled = int(np.median(result.best_epoch)), request.labels.labelled
            progress.stage("training on all labels", 1.0, 1)
            refit = _refit(plan, training, epochs, progress, weights)
            answerer, plan = replace(answerer, model=refit.model), replace(plan, seeds=refit.seeds)
        own = answerer.model.posterior.nodes
        new = ~np.isin(np.arange(whole.num_nodes), seen)
        if own is not None and new.any():
            own.renumber(torch.from_numpy(seen).to(own.own.device), whole.num_nodes)
        return cls(
            columns=request.labels.names,
            flat=request.labels.flat,
            spec=plan.spec,
            objective=plan.objective_name,
            hyperparameters=plan.hyperparameters(request.outcome.name),
            seeds=plan.seeds,
            panel=panel,
            epochs=epochs,
            history=result.history,
            task=whole,
            seen=labelled,
            answerer=answerer,
            answers=answerer(replace(whole, train=labelled), new),
            features=request.features.names,
            form=form,
            means=means,
            key=fingerprint(request.features),
            structural=request.structural,
            unit=1.0 if request.edge_weights is None else float(request.edge_weights.mean()),
        )

    def ask(self, X: Any, edges: Any) -> Answers:
        """Nothing, or the features of the fit: the fitted nodes. `Nodes`: those nodes. Otherwise features and edges of
        new nodes."""
        problems = Problems()
        if X is None:
            if self.structural and edges is not None:
                return self._structural(edges)
            if edges is not None:
                problems.add("edges", "edges without X", "both, or neither", "X holds the features of the new nodes.")
                problems.raise_if_any()
            return self.answers
        if self.tables is not None and is_table(X):
            return self._rows(asked_of(self.tables, X, edges))
        if not isinstance(X, Nodes):
            features = self._read(X, problems)
            if fingerprint(features) != self.key:
                return self._new_nodes(features, edges)
            self._check_edges(edges)
            return self.answers
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
            problems.raise_if_any()
        return self._nodes(X)

    def _rows(self, asked: NewNodes) -> Answers:
        """Rows of a table: nodes of the fit, new ones, or both."""
        if not asked.count:
            return self.answers.at(asked.numbers)
        features = features_of(asked.features)
        if features is None:
            features = FeatureTable(np.full((asked.count, self.task.num_features), np.nan, np.float32))
        elif not asked.known and fingerprint(features) == self.key:
            self._check_edges(tuple(asked.edges) if asked.edges.size else None)
            return self.answers
        new = self._new_nodes(features, Edges(asked.edges, asked.weights))
        if asked.count == len(asked.numbers):
            return new
        return Answers.joined(self.answers, new).at(asked.numbers)

    def calibrated(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n, width): calibrated answers, for nodes as in `ask`."""
        return self.answerer.calibrated(self.ask(X, edges))

    def evaluate(self, nodes: np.ndarray, labels: np.ndarray, alpha: float) -> dict[str, Any]:
        """How good the answers for some fitted nodes are, given their labels."""
        answers = self.answers.at(nodes)
        answer, region = self.answerer.calibrated(answers), self.answerer.conformal(answers, alpha)
        return {**self.outcome.evaluate(answer, labels, region, self.columns, self.flat), "nodes": len(nodes)}

    def groups(self) -> tuple[NodeTask, np.ndarray]:
        """What may explain the edges: a task with groups of labels as classes, and beliefs (n, G) about them."""
        codes, beliefs, merged = self._merged_groups()
        return self.task.with_classes(merged.codes(codes), merged.count), merged.beliefs(beliefs)

    def drawn_labels(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,): labels out of the groups (n,) that were drawn for the nodes."""
        _, beliefs, merged = self._merged_groups()
        return merged.members(groups, beliefs, rng)

    def _merged_groups(self) -> tuple[np.ndarray, np.ndarray, MergedGroups]:
        """Labels (n,) and beliefs (n, K) as the outcome has them, and which of the K are merged."""
        labelled = np.concatenate([self.task.train, self.task.val])
        labels = self._labels_of(labelled, self.task.num_nodes)
        codes, beliefs = self.outcome.groups(self.calibrated(), labels)
        return codes, beliefs, MergedGroups.of(beliefs, self.task.edges)

    def _labels_of(self, nodes: np.ndarray, n: int) -> np.ndarray:
        """The labels of these nodes of the fit, and none of the other nodes of a graph with n nodes."""
        labels = unlabelled((n, *self.task.labels.shape[1:]), self.task.labels.dtype)
        labels[nodes] = self.task.labels[nodes]
        return labels

    def _nodes(self, nodes: Nodes) -> Answers:
        """Of the fitted graph, or of another one, which is then answered as a whole."""
        problems = Problems()
        features = self._read(nodes.X, problems)
        how = (features.num_nodes, self.task.directed, problems)
        pairs, weights = self._weighted(read_weighted_edges(nodes.edges, *how, nodes.weights))
        problems.raise_if_any()
        same = np.array_equal(pairs, self.task.edges) and _equal(weights, self.task.weights)
        if same and fingerprint(features) == self.key:
            return self.answers.at(nodes.index)
        self._check_can_transfer()
        features = self._treated(features, problems)
        features = features if self.means is None else features.filled(pairs, self.means)
        nobody = np.zeros(0, dtype=np.int64)
        task = self._graph(as_kind(features.matrix, self.task.features), pairs, weights, nobody)
        return self.answerer(task, np.ones(task.num_nodes, dtype=bool)).at(nodes.index)

    def _structural(self, edges: Any) -> Answers:
        """Of a model without features: the fitted nodes if the edges are those of the fit, otherwise new ones, whose
        features are filled in from their neighbours."""
        n, scratch, problems = self.task.num_nodes, Problems(), Problems()
        pairs = read_edges(edges, n, self.task.directed, scratch)
        if not scratch.found and np.array_equal(pairs, self.task.edges):
            return self.answers
        pairs = read_edges(edges, np.iinfo(np.int32).max, self.task.directed, problems)
        problems.raise_if_any()
        count = max(int(pairs.max(initial=-1)) + 1 - n, 1)
        return self._new_nodes(FeatureTable(np.full((count, self.task.num_features), np.nan, np.float32)), tuple(pairs))

    def _check_edges(self, edges: Any) -> None:
        """Edges beside the features of the fit must be those of the fit."""
        if edges is None:
            return
        problems, scratch = Problems(), Problems()
        pairs = read_edges(edges, self.task.num_nodes, self.task.directed, scratch)
        if scratch.found or not np.array_equal(pairs, self.task.edges):
            advice = "Leave edges out for the fitted nodes; Nodes(X, edges) asks about the same nodes in another graph."
            problems.add("edges", "other edges than in the fit, with the X of the fit", "the edges of the fit", advice)
            problems.raise_if_any()

    def _weighted(self, edges: Edges) -> Edges:
        """With weights in the unit of the fit, if edges had weights there; unknown ones are as large as the mean."""
        if self.task.weights is None:
            return Edges(edges.pairs)
        weights = np.ones(edges.pairs.shape[1]) if edges.weights is None else edges.weights / self.unit
        return Edges(edges.pairs, weights)

    def _new_nodes(self, features: FeatureTable, edges: Any) -> Answers:
        """The fitted graph is enlarged by the new nodes, and the trained replicas answer there. An edge that was in the
        fit keeps its weight."""
        problems = Problems()
        n, total = self.task.num_nodes, self.task.num_nodes + features.num_nodes
        given, own = (tuple(edges.pairs), edges.weights) if isinstance(edges, Edges) else (edges, None)
        pairs, weights = self._weighted(read_weighted_edges(given, total, self.task.directed, problems, own))
        if pairs.size and pairs.max() < n:
            advice = f"The j-th new node has the number {n} + j; the fitted nodes are those below."
            problems.add("edges", "edges among fitted nodes alone", f"edges of the new nodes {n}..{total - 1}", advice)
        problems.raise_if_any()
        self._check_can_transfer()
        features = self._treated(features, problems)
        alone = features.num_nodes - np.unique(pairs[pairs >= n]).size
        if alone and self.task.num_edges:
            words = f"{alone} of {features.num_nodes} new nodes have no edge: only their features speak for them"
            warnings.warn(words, G3NNWarning, stacklevel=5)
        codes = [part[0] * total + part[1] for part in (self.task.edges, pairs)]
        union, first = np.unique(np.concatenate(codes), return_index=True)
        merged = np.stack([union // total, union % total])
        if weights is not None:
            weights = np.concatenate([self.task.weights, weights])[first]
        table = FeatureTable(self.task.features, self.features).above(features)
        table = table if self.means is None else table.filled(merged, self.means)
        task = self._graph(table.matrix, merged, weights, self.seen)
        return self.answerer(task, np.arange(total) >= n).at(np.arange(n, total))

    def _graph(self, features: Matrix, edges: np.ndarray, weights: np.ndarray | None, seen: np.ndarray) -> NodeTask:
        """A graph to be answered, with the labels of these nodes."""
        parts = {"features": features, "edges": edges, "weights": weights}
        labels = self._labels_of(seen, features.shape[0])
        return replace(self.task, **parts, labels=labels, train=seen, val=seen[:0])

    def _read(self, X: Any, problems: Problems) -> FeatureTable:
        if self.structural:
            advice = "Give the edges of new nodes alone: predict(edges=...)."
            problems.add("X", "features, for a model that was fitted without", "nothing", advice)
            problems.raise_if_any()
        features = read_features(X, "error" if self.means is None else "impute", problems)
        if features is not None:
            features = features.aligned(self.features, self.task.num_features, problems)
        problems.raise_if_any()
        assert features is not None
        return features

    def _treated(self, features: FeatureTable, problems: Problems) -> FeatureTable:
        features = self.form.apply(features, problems)
        problems.raise_if_any()
        return features

    def _check_can_transfer(self) -> None:
        if isinstance(self.answerer.model.posterior, LabelPropagation):
            problems = Problems()
            advice = "Fit again with the new nodes in the graph, without labels."
            problems.add("model", "label-propagation, which learns nothing", "a model with parameters", advice)
            problems.raise_if_any()


def _equal(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    """Whether two sets of weights are the same."""
    return first is second or (first is not None and second is not None and np.allclose(first, second, rtol=1e-12))


def _refit(plan: Plan, task: NodeTask, epochs: int, progress: Course, weights: np.ndarray | None) -> FitResult:
    """Replicas trained on the labels of training and validation nodes alike."""
    result = plan.for_all_labels(epochs).fit(replace(task, train=np.union1d(task.train, task.val)), progress, weights)
    sound = [trial for trial, status in enumerate(result.status) if status != "diverged"]
    if not sound:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    return result.select(sound)


def _note_unvalidated(entry: PanelEntry, automatic: bool) -> None:
    model = f"{entry.model}, which suits few labels," if automatic else entry.model
    warnings.warn(
        f"no labelled node is left to validate on: {model} was trained for {entry.epochs} epochs. Its probabilities "
        "are rough, and no class or value can be excluded with certainty. Label more nodes, or give val",
        G3NNWarning,
        stacklevel=4,
    )


def _warn_of_few(count: int) -> None:
    if count < FEW_VALIDATION_NODES:
        warnings.warn(
            f"{count} validation nodes serve both to choose a model and to calibrate it: both will be rough. "
            f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model",
            G3NNWarning,
            stacklevel=4,
        )
