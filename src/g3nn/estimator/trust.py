"""How far the edges of a graph are believed, judged by training labels and features, never by validation labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from g3nn.audit.genuine import genuine_edges
from g3nn.audit.groups import MergedGroups
from g3nn.audit.scores import ObservedEdges
from g3nn.calibrate import Scaling
from g3nn.outcomes import Classes, Outcome
from g3nn.outcomes.labels import without_labels_of
from g3nn.task import NodeTask
from g3nn.threads import enough_for
from g3nn.training.plan import Plan
from g3nn.training.room import near_labels

SHARES = (0.8, 0.95, 0.5)
"""Shares of the edges that may be genuine; validation decides between them, and believing all. The first is the one to
begin with."""

NONE = 0.0
"""The share where edges are always doubted and all of them may be false."""

_FOLDS, _EPOCHS = 3, 100
_LEAST = 1e-3
"""No edge is forgotten altogether: who has edges is not isolated."""


@dataclass(frozen=True, eq=False)
class EdgeTrust:
    """The probability that each observed edge (2, E) is genuine, if a `share` of all edges was. If none was, no edge is
    looked at, not even those of new nodes."""

    share: float
    edges: np.ndarray
    probability: np.ndarray

    def weigh(self, task: NodeTask, new: np.ndarray | None = None) -> NodeTask:
        """The task with edges that count as much as they are believed. Edges that were not judged, such as those of
        nodes that are new (n,), are believed."""
        if not self.share:
            return task.with_edges(np.zeros(task.num_edges, dtype=bool))
        place = ObservedEdges(self.edges, task.num_nodes, task.directed).find(task.edges)
        judged = place >= 0 if new is None else (place >= 0) & ~new[task.edges].any(0)
        believed = np.where(judged, self.probability[place], 1.0)
        weights = believed if task.weights is None else task.weights * believed
        return replace(task, weights=weights)

    def within(self, nodes: np.ndarray) -> EdgeTrust:
        """The same, where `nodes` are the new numbers of the nodes."""
        return replace(self, edges=nodes[self.edges])


def edge_trust(
    task: NodeTask, shares: Sequence[float], featureless: bool, seed: int, device: str
) -> dict[float, EdgeTrust]:
    """By share. task: with features for a perceptron. featureless: whether they say nothing, or only what edges say."""
    outcome = task.outcome_model()
    if featureless and isinstance(outcome, Classes):
        beliefs = known_classes(task)
    else:
        answer = _by_features(task, outcome, seed, device)
        _, beliefs = outcome.groups(answer, _training_labels(task))
    beliefs = MergedGroups.of(beliefs, task.edges).beliefs(beliefs)
    features = None if featureless else task.features
    with enough_for(task.extent):
        found = genuine_edges(task.edges, features, beliefs, shares, directed=task.directed, seed=seed % 2**32)
    return {one.share: EdgeTrust(one.share, task.edges, np.maximum(one.probability, _LEAST)) for one in found}


def known_classes(task: NodeTask) -> np.ndarray:
    """(n, K): one-hot for training nodes, and all classes alike for the others."""
    anything = np.full((task.num_nodes, task.num_classes), -np.log(task.num_classes))
    return task.outcome_model().groups(anything, _training_labels(task))[1]


def _training_labels(task: NodeTask) -> np.ndarray:
    return without_labels_of(task.labels, np.setdiff1d(np.arange(task.num_nodes), task.train))


def _by_features(task: NodeTask, outcome: Outcome, seed: int, device: str) -> np.ndarray:
    """(n, width): what perceptrons say. For classes each is trained on two thirds of the training labels, and the other
    third says how certain they may be; no validation label is looked at."""
    plan = Plan.check("mlp", "elbo", 1, seed, "mlp", device, {"hidden": 64}).for_all_labels(_EPOCHS)
    if not isinstance(outcome, Classes):
        result = plan.fit(replace(task, val=task.train, beliefs=None), progress=False)
        return outcome.averaged(result.answers)
    order, answers, unseen = np.random.default_rng(seed % 2**32).permutation(task.train), [], []
    for fold in range(_FOLDS):
        rest = np.sort(order[fold::_FOLDS])
        own = np.setdiff1d(task.train, rest)
        part = replace(task, train=own, val=own, beliefs=None)
        result = (near_labels(plan, part) or plan).fit(part, progress=False)
        answers.append(outcome.averaged(result.answers))
        unseen.append(rest)
    asked = np.concatenate([answer[rest] for answer, rest in zip(answers, unseen, strict=True)])
    scaling = Scaling(outcome.temperature(asked, task.labels[np.concatenate(unseen)]))
    return outcome.weighted([outcome.scaled(answer, scaling) for answer in answers], np.full(_FOLDS, 1 / _FOLDS))
