"""What the edges of each type say about labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from g3nn.graph.relations import forwards
from g3nn.graph.task import NodeTask
from g3nn.model.tabular import CrossFitted
from g3nn.model.tabular.models import base_rate, linear
from g3nn.model.tabular.paths import Paths

_PENALTIES, _FOLDS = (1.0, 10.0, 100.0), 3
_MOST_JUDGED = 50
"""Of more types the most frequent are judged."""
_MOST_LABELS, _DIRECTIONS = 1000, 128


class EdgeType(NamedTuple):
    """A type of edges. source, target: the kinds of nodes at its ends. evidence: how much more likely labels are where
    these edges are known, too, beside those that lead to them from nodes with labels, as a logarithm for each labelled
    node, in nats; None where that was not looked at. Without others the likelihood is that of the frequencies."""

    name: str
    edges: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    directed: bool
    evidence: float | None


def edge_types(task: NodeTask, seed: int = 0) -> list[EdgeType]:
    """The types of a task's edges, those that say most first."""
    relations = task.relations
    if relations is None:
        return []
    evidence = _Evidence(task, Paths.fit(task, seed), seed).all()
    counts = np.bincount(relations.types, minlength=len(relations.names))
    found = []
    for type, (name, directed) in enumerate(relations.directions):
        source, target = (relations.kinds_among(end) for end in relations.of(type).pairs)
        found.append(EdgeType(name, int(counts[type]), source, target, directed, evidence.get(name)))
    return sorted(found, key=lambda one: (-(one.evidence or 0), -one.edges))


@dataclass(frozen=True, eq=False)
class _Evidence:
    """By linear models of the columns of paths that use some types alone. Of several the best one counts, of which the
    most cautious know little more than frequencies; no label is predicted by one that has seen it."""

    task: NodeTask
    paths: Paths
    seed: int

    def all(self) -> dict[str, float]:
        """Of the most frequent types, by name."""
        names, known, found = self._frequent(), set[str](), dict[str, float]()
        while reached := {name for name in names if name not in known and self._leads_on(known, name)}:
            before = self._loss(known)
            found |= {name: max(before - self._loss({*known, name}), 0.0) for name in sorted(reached)}
            known |= reached
        return found

    def _frequent(self) -> list[str]:
        relations = self.task.relations
        assert relations is not None
        counts = np.bincount(relations.types, minlength=len(relations.names))
        return [relations.names[type] for type in np.argsort(-counts, kind="stable")[:_MOST_JUDGED]]

    def _leads_on(self, known: set[str], name: str) -> bool:
        """Whether a path of known types and this one has it."""
        return any(name in types and types <= {*known, name} for types in self._types)

    @cached_property
    def _types(self) -> list[set[str]]:
        return [{forwards(arcs) for arcs in one.path} for one in self.paths.paths]

    def _loss(self, names: set[str]) -> float:
        outcome, labels, losses = self.task.outcome_model(), self.task.labels[self._judging], list[float]()
        of, columns, rows = type(outcome), self._columns(names), np.arange(len(labels))
        for estimator in (base_rate(of), *(linear(of, penalty, len(labels)) for penalty in _PENALTIES if names)):
            _, answer = CrossFitted.fit(estimator, columns, labels, rows, outcome, folds=_FOLDS, seed=self.seed)
            losses.append(outcome.loss_and_score(answer, labels)[0])
        return min(losses)

    @cached_property
    def _judging(self) -> np.ndarray:
        """Some labelled nodes."""
        labelled = np.union1d(self.task.train, self.task.val)
        few = np.random.default_rng(self.seed).permutation(labelled)[:_MOST_LABELS]
        return np.sort(few)

    def _columns(self, names: set[str]) -> np.ndarray:
        """(m, r), the leading directions of the columns, which are all that a linear model sees of them."""
        if not names:
            return np.zeros((len(self._judging), 1))
        columns = sp.csr_array(self.paths.of_types(names).apply(self.task)[self._judging], dtype=np.float64)
        sizes, directions = np.linalg.eigh((columns @ columns.T).toarray())
        leading = slice(-1, -1 - min(_DIRECTIONS, len(sizes)), -1)
        return np.asarray(directions[:, leading] * np.sqrt(sizes[leading].clip(0)))
