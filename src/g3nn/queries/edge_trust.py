"""How far each observed edge is to be trusted: the probability that it is genuine, by features and by labels of other
nodes than its ends, as weights of edges for networks that train on labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from g3nn.base.threads import enough_for
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome
from g3nn.graph.outcomes.labels import without_labels_of
from g3nn.graph.task import NodeTask
from g3nn.queries.genuine import Evidence, GenuineEdges
from g3nn.queries.messages import beliefs_in_groups, merged_groups
from g3nn.queries.scores import ObservedEdges
from g3nn.training.plan import Plan
from g3nn.training.room import near_labels

SHARES = (0.5, 0.8, 0.35)
"""Shares of the edges that may be genuine; validation decides between them, and believing all. The first is the one to
begin with."""
NONE = 0.0
"""The share where edges are always doubted and all of them may be false."""
_FOLDS, _EPOCHS = 3, 100
_PARTS, _NO_PART, _EVERY_PART = 2, -1, -2
"""Parts of the training nodes, for judging edges; other nodes are in none."""
_LEAST = 1e-3
"""Weights are at least this, so that no node becomes isolated."""


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
    """By share. task: with features for a perceptron. featureless: whether they say nothing, or only what edges say.

    Networks train on labels and use edges, so no edge is weighed by a label of its own ends: training nodes are in
    parts, and an edge is judged without the labels of the parts that its ends are in. The parts do not depend on
    labels either.
    """
    part = np.full(task.num_nodes, _NO_PART)
    part[task.train] = np.random.default_rng([seed % 2**32, 1]).permutation(len(task.train)) % _PARTS
    first, second = np.sort(part[task.edges], axis=0)
    # Two different parts are judged without any label: such edges are few, and there are many pairs of parts.
    hidden = np.where((first == second) | (first == _NO_PART), second, _EVERY_PART)
    evidence = Evidence(task, featureless, seed % 2**32)
    probability = np.empty((len(shares), task.num_edges))
    for one in np.unique(hidden):
        kept = (part[task.train] != one) & (one != _EVERY_PART)
        found = _judged(evidence, task.train[kept], shares, seed, device)
        probability[:, hidden == one] = [judged.probability[hidden == one] for judged in found]
    return {
        share: EdgeTrust(share, task.edges, np.maximum(one, _LEAST))
        for share, one in zip(shares, probability, strict=True)
    }


def judged_edges(task: NodeTask, share: float, featureless: bool, seed: int, device: str) -> GenuineEdges:
    """By type, and the labels of all training nodes: to be looked at, not to train on. task: as for `edge_trust`."""
    return _judged(Evidence(task, featureless, seed % 2**32, by_type=True), task.train, (share,), seed, device)[0]


def _judged(
    evidence: Evidence, train: np.ndarray, shares: Sequence[float], seed: int, device: str
) -> list[GenuineEdges]:
    prior = _beliefs(replace(evidence.task, train=train), evidence.featureless, seed, device)
    with enough_for(evidence.task.extent):
        return evidence.judge(prior, shares)


def _beliefs(task: NodeTask, featureless: bool, seed: int, device: str) -> np.ndarray:
    """(n, groups): what features and training labels say about each node; nothing at all without such labels."""
    if not len(task.train):
        return np.full((task.num_nodes, 2), 0.5)
    outcome = task.outcome_model()
    if featureless and outcome.exclusive:
        beliefs = known_classes(task)
    else:
        answer = _by_features(task, outcome, seed, device)
        _, beliefs = outcome.groups(answer, _training_labels(task))
    return beliefs_in_groups(beliefs, merged_groups(beliefs, task.edges))


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
    if not outcome.exclusive:
        result = plan.fit(replace(task, val=task.val[:0], beliefs=None), progress=False)
        return outcome.averaged(result.answers)
    order, answers, unseen = np.random.default_rng(seed % 2**32).permutation(task.train), [], []
    for fold in range(_FOLDS):
        rest = np.sort(order[fold::_FOLDS])
        own = np.setdiff1d(task.train, rest)
        part = replace(task, train=own, val=own, beliefs=None)
        result = (near_labels(plan, part) or plan).fit(replace(part, val=own[:0]), progress=False)
        answers.append(outcome.averaged(result.answers))
        unseen.append(rest)
    asked = np.concatenate([answer[rest] for answer, rest in zip(answers, unseen, strict=True)])
    scaling = Scaling(outcome.temperature(asked, task.labels[np.concatenate(unseen)]))
    return outcome.weighted([outcome.scaled(answer, scaling) for answer in answers], np.full(_FOLDS, 1 / _FOLDS))
