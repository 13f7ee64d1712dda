"""A fitted model: what a fit learned, how it came about, and its answers for old and new nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from g3nn.audit import MergedGroups
from g3nn.errors import G3NNWarning, Problems, TrainingError
from g3nn.estimator.answers import Answerer, Answers
from g3nn.estimator.features import FeatureTable, as_kind, read_features
from g3nn.estimator.inferring import can_infer
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.panel import PanelEntry, Search
from g3nn.estimator.request import Request, fingerprint
from g3nn.model import ModelSpec
from g3nn.outcomes import Outcome, unlabelled
from g3nn.parse import Matrix, distinct, read_edges
from g3nn.posteriors.label_propagation import LabelPropagation
from g3nn.task import NodeTask
from g3nn.training import FitResult
from g3nn.training.plan import Plan
from g3nn.training.progress import Course
from g3nn.training.result import history_names

FEW_VALIDATION_NODES = 30


@dataclass(frozen=True, eq=False)
class Fitted:
    """A chosen and trained model with its graph, calibration and training record.

    columns:  the names of the K classes or T columns. flat: whether labels came as (n,), so that answers of one column
              do too.
    seen:     the nodes whose labels were trained on.
    answers:  those for the fitted nodes, before calibration.
    features: the names of the feature columns. means: of the feature columns, where missing values are filled in.
    key:      the fingerprint of the graph.
    epochs:   how long the chosen model trained. history: (epochs, terms, R), its learning curves.
    hyperparameters: every option of the model, defaults included.
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
    means: np.ndarray | None
    key: str

    @property
    def outcome(self) -> Outcome:
        return self.answerer.outcome

    @property
    def history_names(self) -> tuple[str, ...]:
        return history_names(self.outcome)

    @classmethod
    def fit(cls, request: Request, parameters: Mapping[str, Any], progress: Course) -> Fitted:
        """Train the panel, choose, calibrate, refit if asked to, and answer for all nodes."""
        whole, training, seen, means = _tasks(request, parameters["inductive"], parameters["missing"] == "impute")
        tried = request.candidates
        if not training.num_edges:
            # Without a single edge all models of a panel are the same one.
            tried = tried[:1]
        if len(tried) > 1:
            _warn_of_few(len(request.val))
        search = Search(training, request.common, parameters["device"], request.seeds, progress)
        chosen, result, panel = search.run(tried)
        plan = chosen.plan(request.common, result.seeds, parameters["device"])
        infers = result.model.posterior.nodes is not None and can_infer(result.model, plan.objective)
        answerer = Answerer.choose(result.model, training, plan.device, infers)
        epochs, labelled = int(result.epochs.max()), request.train
        if parameters["refit"]:
            epochs, labelled = int(np.median(result.best_epoch)), request.labels.labelled
            progress.stage("training on all labels", 1.0, 1)
            refit = _refit(plan, training, epochs, progress)
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
            means=means,
            key=fingerprint(request.features, request.edges),
        )

    def ask(self, X: Any, edges: Any) -> Answers:
        """Nothing given: the fitted nodes. `Nodes`: those nodes. Otherwise features and edges of new nodes."""
        problems = Problems()
        if X is None:
            if edges is not None:
                problems.add("edges", "edges without X", "both, or neither", "X holds the features of the new nodes.")
                problems.raise_if_any()
            return self.answers
        if not isinstance(X, Nodes):
            return self._new_nodes(X, edges)
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
            problems.raise_if_any()
        return self._nodes(X)

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
        pairs = read_edges(nodes.edges, features.num_nodes, self.task.directed, problems)
        problems.raise_if_any()
        if fingerprint(features, pairs) == self.key:
            return self.answers.at(nodes.index)
        self._check_can_transfer()
        features = features if self.means is None else features.filled(pairs, self.means)
        nobody = np.zeros(0, dtype=np.int64)
        task = self._graph(as_kind(features.matrix, self.task.features), pairs, nobody)
        return self.answerer(task, np.ones(task.num_nodes, dtype=bool)).at(nodes.index)

    def _new_nodes(self, X: Any, edges: Any) -> Answers:
        """The fitted graph is enlarged by the new nodes, and the trained replicas answer there."""
        problems = Problems()
        features = self._read(X, problems)
        n, total = self.task.num_nodes, self.task.num_nodes + features.num_nodes
        pairs = read_edges(edges, total, self.task.directed, problems)
        problems.raise_if_any()
        self._check_can_transfer()
        codes = [part[0] * total + part[1] for part in (self.task.edges, pairs)]
        union = distinct(np.concatenate(codes))
        merged = np.stack([union // total, union % total])
        table = FeatureTable(self.task.features, self.features).above(features)
        table = table if self.means is None else table.filled(merged, self.means)
        task = self._graph(table.matrix, merged, self.seen)
        return self.answerer(task, np.arange(total) >= n).at(np.arange(n, total))

    def _graph(self, features: Matrix, edges: np.ndarray, seen: np.ndarray) -> NodeTask:
        """A graph to be answered, with the labels of these nodes."""
        labels = self._labels_of(seen, features.shape[0])
        return replace(self.task, features=features, edges=edges, labels=labels, train=seen, val=seen[:0])

    def _read(self, X: Any, problems: Problems) -> FeatureTable:
        features = read_features(X, "error" if self.means is None else "impute", problems)
        if features is not None:
            features = features.aligned(self.features, self.task.num_features, problems)
        problems.raise_if_any()
        assert features is not None
        return features

    def _check_can_transfer(self) -> None:
        if isinstance(self.answerer.model.posterior, LabelPropagation):
            problems = Problems()
            advice = "Fit again with the new nodes in the graph, without labels."
            problems.add("model", "label-propagation, which learns nothing", "a model with parameters", advice)
            problems.raise_if_any()


def _tasks(request: Request, inductive: bool, impute: bool) -> tuple[NodeTask, NodeTask, np.ndarray, np.ndarray | None]:
    """The task on the whole graph; the part that is trained on, in inductive use the labelled nodes alone; the numbers
    of its nodes in the whole graph; and the means of the feature columns where missing values are filled in."""
    n = request.features.num_nodes
    seen = request.labels.labelled if inductive else np.arange(n)
    number = np.full(n, -1, dtype=np.int64)
    number[seen] = np.arange(len(seen))
    inside = number[request.edges[:, np.isin(request.edges, seen).all(axis=0)]]
    features, means = _filled(request, seen, inside) if impute else (request.features, None)
    whole = NodeTask.build(
        features.matrix,
        request.edges,
        request.labels.values,
        request.train,
        request.val,
        num_classes=len(request.labels.names),
        directed=request.directed,
        outcome=request.outcome.name,
    )
    if len(seen) == n:
        return whole, whole, seen, means
    own = {"features": whole.features[seen], "edges": inside, "labels": whole.labels[seen]}
    return whole, replace(whole, **own, train=number[whole.train], val=number[whole.val]), seen, means


def _filled(request: Request, seen: np.ndarray, inside: np.ndarray) -> tuple[FeatureTable, np.ndarray]:
    """Nodes that are trained on are filled in from each other first, then the rest from all."""
    part, problems = replace(request.features, matrix=request.features.matrix[seen]), Problems()
    means = part.column_means(problems)
    problems.raise_if_any()
    part = part.filled(inside, means)
    if len(seen) == request.features.num_nodes:
        return part, means
    rest = np.setdiff1d(np.arange(request.features.num_nodes), seen)
    rows = part.above(replace(part, matrix=request.features.matrix[rest]))
    order = np.argsort(np.concatenate([seen, rest]))
    return replace(rows, matrix=rows.matrix[order]).filled(request.edges, means), means


def _refit(plan: Plan, task: NodeTask, epochs: int, progress: Course) -> FitResult:
    """Replicas trained on the labels of training and validation nodes alike."""
    result = plan.for_all_labels(epochs).fit(replace(task, train=np.union1d(task.train, task.val)), progress)
    sound = [trial for trial, status in enumerate(result.status) if status != "diverged"]
    if not sound:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    return result.select(sound)


def _warn_of_few(count: int) -> None:
    if count < FEW_VALIDATION_NODES:
        warnings.warn(
            f"{count} validation nodes serve both to choose a model and to calibrate it: both will be rough. "
            f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model",
            G3NNWarning,
            stacklevel=4,
        )
