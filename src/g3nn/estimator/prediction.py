"""Answers of a fitted model: for its own nodes, for new ones, and for the nodes of another graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from g3nn.errors import Problems
from g3nn.estimator.answers import Answerer, Answers
from g3nn.estimator.missing import impute
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.reading import Features, align, as_kind, below, read_edges, read_features
from g3nn.estimator.request import fingerprint
from g3nn.parse import UNKNOWN, Matrix, distinct
from g3nn.posteriors.label_propagation import LabelPropagation
from g3nn.task import NodeTask


@dataclass(frozen=True, eq=False)
class Known:
    """A fitted graph and what answers for it.

    seen: nodes whose labels were trained on. means: of the columns, where missing values are filled in. key: the
    fingerprint of the graph.
    """

    task: NodeTask
    seen: np.ndarray
    answerer: Answerer
    answers: Answers
    names: tuple[str, ...] | None
    means: np.ndarray | None
    key: str

    def ask(self, X: Any, edges: Any) -> Answers:
        """Nothing: the fitted nodes. `Nodes`: those nodes. Else features and edges of new nodes."""
        problems = Problems()
        if X is None:
            if edges is not None:
                problems.add("edges", "edges without X", "both, or neither", "X holds the features of the new nodes.")
                problems.raise_if_any()
            return self.answers
        if not isinstance(X, Nodes):
            return self._new(X, edges)
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
            problems.raise_if_any()
        return self._of_nodes(X)

    def _of_nodes(self, nodes: Nodes) -> Answers:
        """Of the fitted graph, or of another one, which is then answered as a whole."""
        problems = Problems()
        features = self._features(nodes.X, problems)
        pairs = read_edges(nodes.edges, features.num_nodes, self.task.directed, problems)
        problems.raise_if_any()
        if fingerprint(features, pairs) == self.key:
            return self.answers.at(nodes.index)
        self._check_can_transfer()
        matrix = features.matrix if self.means is None else impute(features, pairs, self.means)
        none = np.zeros(0, dtype=np.int64)
        task = self._graph(as_kind(matrix, self.task.features), pairs, none)
        return self._asked(task, 0).at(nodes.index)

    def _new(self, X: Any, edges: Any) -> Answers:
        """The fitted graph is enlarged by the new nodes, and the trained replicas answer there."""
        problems = Problems()
        features = self._features(X, problems)
        n, total = self.task.num_nodes, self.task.num_nodes + features.num_nodes
        pairs = read_edges(edges, total, self.task.directed, problems)
        problems.raise_if_any()
        self._check_can_transfer()
        codes = [part[0] * total + part[1] for part in (self.task.edges, pairs)]
        union = distinct(np.concatenate(codes))
        merged = np.stack([union // total, union % total])
        matrix = below(self.task.features, features.matrix)
        if self.means is not None:
            matrix = impute(Features(matrix, self.names), merged, self.means)
        return self._asked(self._graph(matrix, merged, self.seen), n).at(np.arange(n, total))

    def _asked(self, task: NodeTask, known: int) -> Answers:
        """Of a graph whose first `known` nodes are those of the fit."""
        fresh = np.arange(task.num_nodes) >= known
        return self.answerer(task, fresh if self.answerer.refined else None)

    def _graph(self, features: Matrix, edges: np.ndarray, seen: np.ndarray) -> NodeTask:
        """A graph to be answered, with the labels of these nodes."""
        unknown = UNKNOWN if self.task.outcome == "classes" else np.nan
        shape = features.shape[0], *self.task.labels.shape[1:]
        labels = np.full(shape, unknown, dtype=self.task.labels.dtype)
        labels[seen] = self.task.labels[seen]
        return replace(self.task, features=features, edges=edges, labels=labels, train=seen, val=seen[:0])

    def _features(self, X: Any, problems: Problems) -> Features:
        features = read_features(X, "error" if self.means is None else "impute", problems)
        if features is not None:
            features = align(features, self.names, self.task.num_features, problems)
        problems.raise_if_any()
        assert features is not None
        return features

    def _check_can_transfer(self) -> None:
        if isinstance(self.answerer.model.posterior, LabelPropagation):
            problems = Problems()
            advice = "Fit again with the new nodes in the graph, without labels."
            problems.add("model", "label-propagation, which learns nothing", "a model with parameters", advice)
            problems.raise_if_any()
