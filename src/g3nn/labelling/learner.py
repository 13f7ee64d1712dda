"""Learning from people's labels. The rest of this package depends on models only through `Learner`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from g3nn.base.errors import G3NNError, G3NNWarning
from g3nn.base.folders import swapped
from g3nn.graph.tables.graph import TableGraph
from g3nn.labelling.project import Json
from g3nn.labelling.tables import Known, with_labels

if TYPE_CHECKING:
    from g3nn.estimator import G3NNClassifier

AHEAD, SUGGESTED = 500, 24
"""How many nodes are put in order after each fit, and how many of these are chosen by a strategy."""

GROWN = 1.25
"""With this many times the labels of the last fit a new model is fitted; until then the last one is updated."""

MOST_WORK = 5_000_000
"""Reasons take an answer for each edge of a node; more than this many nodes and edges in all take too long."""

DOUBTED = 0.15
"""The share of all labels that a person is asked to look at again, at most."""

MOST_REASONS = 6
MOST_EDGES = 12


Doubt = tuple[str, str, float]


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a model predicts. classes: names. probabilities: (n, K). order: rows worth asking about, the best first.
    learned_from: the number of its labels. doubted: by row, a label that other labels contradict,
    the class that they say instead, and how probably the label is wrong; the most doubtful first."""

    classes: list[str]
    probabilities: np.ndarray
    order: np.ndarray
    learned_from: int
    doubted: Mapping[int, Doubt] = field(default_factory=dict)

    def guess(self, row: int) -> tuple[str, float]:
        best = int(self.probabilities[row].argmax())
        return self.classes[best], float(self.probabilities[row, best])


@dataclass(frozen=True)
class Why:
    """What moves a prediction up (above 0) or down: (row, change) of neighbours, (name, change) of features. too_large:
    whether the graph is too large to compute it."""

    neighbours: list[tuple[int, float]] = field(default_factory=list)
    features: list[tuple[str, float]] = field(default_factory=list)
    too_large: bool = False


Doubts = dict[str, list[tuple[int, int, float]]]
"""(row, row, probability) of `suspicious` edges, and of pairs that are probably `missing` one."""


class Learner(Protocol):
    """Learns in a process of its own, one thing at a time."""

    def learn(self, known: Known) -> Beliefs: ...
    def why(self, row: int) -> Why: ...
    def doubts(self) -> Doubts: ...
    def write(self, known: Known, out: Path, effort: str) -> Json: ...


class ClassifierLearner:
    """A `G3NNClassifier` on the tables of a project. Models are loaded in the process that learns, when they are
    needed."""

    def __init__(self, graph: TableGraph, column: str, device: str = "auto", seed: int = 0) -> None:
        self.graph, self.column, self.device, self.seed = graph, column, device, seed
        self.classifier: G3NNClassifier | None = None
        self._known = self._fitted = Known({})

    def _fit(self, known: Known, effort: str, as_text: bool) -> tuple[G3NNClassifier, TableGraph]:
        from g3nn.estimator import G3NNClassifier

        graph = with_labels(self.graph, self.column, known, as_text)
        classifier = G3NNClassifier(effort=effort, directed=graph.directed, device=self.device, random_state=self.seed)
        # What is unusual about few labels need not be said after every few answers.
        with warnings.catch_warnings(action="ignore", category=G3NNWarning):
            classifier.fit(graph)
        return classifier, graph

    def learn(self, known: Known) -> Beliefs:
        if not self._goes_on(known):
            self.classifier, _ = self._fit(known, "quick", as_text=True)
            self._fitted = known
        self._known = known
        assert self.classifier is not None
        probabilities = self.classifier.predict_proba().astype(np.float32)
        classes = self.classifier.classes_.tolist()
        labelled = np.fromiter(known.labels, np.int64, len(known.labels))
        order = _order(self.classifier, probabilities, labelled)
        most = max(1, int(DOUBTED * len(known.labels)))
        found = self.classifier.suggest_labels(most)
        doubted = {one.number: (str(one.label), str(one.instead), one.score) for one in found}
        return Beliefs(classes, probabilities, order, len(known.labels), doubted)

    def _goes_on(self, known: Known) -> bool:
        """Take in a few more labels without a new fit, where the model can."""
        before = self._known
        if self.classifier is None or len(known.labels) > GROWN * len(self._fitted.labels):
            return False
        new, taken_back = known.new_labels(before), before.labels.keys() - known.labels.keys()
        unheard = set(new.values()) - set(self.classifier.classes_.tolist())
        if not new or taken_back or unheard or not known.same_edges(before):
            return False
        try:
            with warnings.catch_warnings(action="ignore", category=G3NNWarning):
                self.classifier.update([self.graph.nodes.ids[row].as_py() for row in new], list(new.values()))
        except G3NNError:
            # Some models cannot go on; all can be fitted.
            return False
        return True

    def why(self, row: int) -> Why:
        if self.classifier is None:
            return Why()
        task = self.classifier.task_
        edges = int((task.edges == row).any(axis=0).sum())
        if (1 + edges) * (1_000 + task.num_nodes + task.num_edges) > MOST_WORK:
            return Why(too_large=True)
        (found,) = self.classifier.explain([row], ids=False)
        neighbours = [(one.node, one.change) for one in found.neighbours[:MOST_REASONS]]
        return Why(neighbours, found.features[:MOST_REASONS])

    def doubts(self) -> Doubts:
        """Edges to check first, and pairs without one, the likeliest first; none where there are too few edges."""
        found: Doubts = {"suspicious": [], "missing": []}
        with suppress(G3NNError):
            if self.classifier is not None:
                missing = self.classifier.audit(MOST_EDGES, ids=False).missing[:MOST_EDGES]
                edges = self.classifier.suggest_edges(MOST_EDGES)
                found["suspicious"] = [(*one.numbers, 1 - one.probability) for one in edges]
                found["missing"] = missing[["source", "target", "probability"]].tolist()
        return found

    def write(self, known: Known, out: Path, effort: str) -> Json:
        """A folder as `g3nn fit` writes one, in the place of what was there before."""
        from g3nn.estimator.showing import write_results

        classifier, graph = self._fit(known, effort, as_text=False)
        with swapped(out) as draft:
            write_results(classifier, graph, draft)
        return {"out": str(out), "labels": len(known.labels), "model": classifier.model_}


def _order(classifier: G3NNClassifier, probabilities: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Rows without a label, those that teach most first, and then those that the model is least sure of."""
    entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-12))).sum(1)
    entropy[labelled] = -np.inf
    unsure = np.argpartition(-entropy, min(AHEAD, len(entropy) - 1))[:AHEAD]
    unsure = unsure[np.argsort(-entropy[unsure], kind="stable")]
    unsure = unsure[np.isfinite(entropy[unsure])]
    first = np.array([one.number for one in classifier.suggest(SUGGESTED)], dtype=np.int64)
    return np.concatenate([first, unsure[~np.isin(unsure, first)]])
