"""Which of the given labels are wrong: each is judged by models that have not seen it, through a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from g3nn.base.threads import enough_for
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome, without_labels_of
from g3nn.graph.outcomes.labels import is_known
from g3nn.graph.task import NodeTask
from g3nn.model.channels.confusion import SKILL, fit_confusion, share_error, skill
from g3nn.training.plan import Plan
from g3nn.training.progress import Course
from g3nn.training.room import LARGE, near_labels

_FOLDS, EPOCHS = 5, 100
TRAININGS = {False: _FOLDS, True: 4 * _FOLDS}
"""Of each model that judges labels, once and twice."""
_RIDGE = 1e-3
_NO_TABLE = np.zeros((0, 0))
LEAST_LABELS, FEWEST_LABELS = 60, 20
"""With fewer labels nothing can be said about how many of them are wrong, or about single ones."""
_LEAST_WRONG, _LEAST_GAP, _LEAST_OUTLYING = 0.1, 0.35, 0.05
"""Labels are corrected if surely at least the first share of them is wrong, and models have the skill to say so, where
right and wrong labels differ enough to tell; numbers if the last share of them is. Where fewer are, there is less to
gain by correcting them than to lose where the surest predictions err."""


@dataclass(frozen=True, eq=False)
class JudgedLabels:
    """m known labels, of nodes (m,) in columns (m,), 0 for classes. seen: (m,): a class, 0 or 1, or a number.

    unseen: (m, K), log-probabilities by models that have not seen the label; empty for numbers. fold: (m,), those with
            the same number were held back together.
    answer: (m,), what the label probably is. sure: (m,), with what probability; wrong: (m,), that `seen` is wrong.
    table:  (K, K), T; empty for numbers.
    """

    nodes: np.ndarray
    columns: np.ndarray
    fold: np.ndarray
    unseen: np.ndarray
    seen: np.ndarray
    answer: np.ndarray
    sure: np.ndarray
    wrong: np.ndarray
    table: np.ndarray

    @classmethod
    def of(
        cls, nodes: np.ndarray, columns: np.ndarray, fold: np.ndarray, unseen: np.ndarray, seen: np.ndarray
    ) -> JudgedLabels:
        """Of classes or tags. The channel that judges the labels of a fold is fitted to those of the others."""
        codes, beliefs = seen.astype(np.int64), np.empty(unseen.shape)
        for own, rest in _parts(fold):
            confusion, temperature = fit_confusion(unseen[rest], codes[rest])
            beliefs[own] = confusion.posterior(Scaling(temperature)(unseen[own]), codes[own])
        table = fit_confusion(unseen, codes)[0].table
        # A class without a label outside its fold is unknown to the models that judge there: its labels stand.
        others = np.array([((codes == code) & (fold != own)).any() for code, own in zip(codes, fold, strict=True)])
        beliefs[~others] = np.eye(len(table))[codes[~others]]
        wrong = 1 - beliefs[np.arange(len(codes)), codes]
        answer = beliefs.argmax(1).astype(seen.dtype)
        return cls(nodes, columns, fold, unseen, seen, answer, beliefs.max(1), wrong, table)

    @property
    def contradicted(self) -> np.ndarray:
        """(m,) booleans: labels that are not what models that have not seen them say, or are probably outliers."""
        if not self.table.size:
            return np.asarray(self.wrong > 0.5)
        return np.asarray(self.unseen.argmax(1) != self.seen)

    @property
    def many(self) -> bool:
        """Whether so many labels are wrong, and so surely, that models should not train on them as they are."""
        if len(self.nodes) < LEAST_LABELS:
            return False
        if not self.table.size:
            return bool(self.wrong.mean() >= _LEAST_OUTLYING)
        share, K = 1 - float(np.diag(self.table).mean()), len(self.table)
        if share - share_error(share, len(self.nodes)) < _LEAST_WRONG or 1 - share - share / (K - 1) < _LEAST_GAP:
            return False
        return skill(self.unseen, self.seen.astype(np.int64), share) >= SKILL

    def corrected(self, task: NodeTask, weights: np.ndarray | None) -> tuple[NodeTask, np.ndarray]:
        """The task with what labels probably are, and weights (n,) of how probable that is. A number that is probably
        wrong has a low weight instead of another value."""
        labels, certainty = task.labels.copy(), np.ones(task.num_nodes)
        np.minimum.at(certainty, self.nodes, self.sure)
        if self.table.size:
            places = (self.nodes,) if labels.ndim == 1 else (self.nodes, self.columns)
            labels[places] = self.answer
        return replace(task, labels=labels), certainty if weights is None else certainty * weights

    def with_labels(self, labels: np.ndarray, answers: np.ndarray, outcome: Outcome) -> JudgedLabels | None:
        """After labels (n,) or (n, T) have come in or changed. answers: (n, width), given before the new ones were
        known, which judge them. Numbers are judged anew when that is needed."""
        if not self.table.size:
            return None
        nodes, columns, seen = rows_of(labels)
        place = {key: at for at, key in enumerate(zip(self.nodes.tolist(), self.columns.tolist(), strict=True))}
        old = np.array([place.get(key, -1) for key in zip(nodes.tolist(), columns.tolist(), strict=True)])
        unseen = np.where((old >= 0)[:, None], self.unseen[old], outcome.log_probs_of(answers, nodes, columns))
        fold = np.where(old >= 0, self.fold[old], np.arange(len(old)) % _FOLDS)
        return JudgedLabels.of(nodes, columns, fold, unseen, seen)


def known_labels(task: NodeTask, corrected: JudgedLabels | None) -> np.ndarray:
    """The labels of a task, or what they probably are."""
    return task.labels if corrected is None else corrected.corrected(task, None)[0].labels


def rows_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, columns and values (m,) of all known labels."""
    known = is_known(labels)
    if labels.ndim == 1:
        nodes = np.flatnonzero(known)
        return nodes, np.zeros_like(nodes), labels[nodes]
    nodes, columns = np.nonzero(known)
    return nodes, columns, labels[nodes, columns]


def judged_labels(
    task: NodeTask,
    plans: Sequence[Plan],
    seed: int,
    progress: Course,
    weights: np.ndarray | None = None,
    epochs: int = EPOCHS,
    twice: bool = False,
) -> tuple[JudgedLabels, tuple[JudgedLabels, ...]]:
    """Every label of training and validation nodes, judged by models that `plans` train without it. task: with features
    as these see them.

    Where many are wrong, or with `twice`, the second judgement counts, by models trained on what the other labels
    probably are. The latter are returned too, for each fold: all labels but its own, judged without it.
    """
    labelled = np.union1d(task.train, task.val)
    labels = without_labels_of(task.labels, np.setdiff1d(np.arange(task.num_nodes), labelled))
    task = replace(task, labels=labels, test=task.test[:0], beliefs=None)
    short = tuple(plan.for_all_labels(min(epochs, EPOCHS)) for plan in plans)
    by_folds = _ByFolds(short, task, labelled, _folds(len(labelled), seed), progress)
    first = by_folds.once(weights)
    if not first.table.size or not (twice or first.many):
        return first, ()
    return by_folds.again(weights)


@dataclass(frozen=True, eq=False)
class _ByFolds:
    """Models that judge the labels of a task, each trained without the folds that it judges. labelled: (m,), nodes;
    fold: (m,), that of each."""

    plans: tuple[Plan, ...]
    task: NodeTask
    labelled: np.ndarray
    fold: np.ndarray
    progress: Course

    def once(self, weights: np.ndarray | None) -> JudgedLabels:
        """By models trained on the other labels as they were given."""
        return self._judged([self._without((fold,), self.task, weights) for fold in range(_FOLDS)])

    def again(self, weights: np.ndarray | None) -> tuple[JudgedLabels, tuple[JudgedLabels, ...]]:
        """By models trained on what the other labels probably are; and, for each fold, what these are. That is judged
        without the labels of the fold, too: by models that have seen neither of two folds."""
        pairs = {pair: self._without(pair, self.task, weights) for pair in combinations(range(_FOLDS), 2)}
        answers, others = list[np.ndarray](), list[JudgedLabels]()
        for fold in range(_FOLDS):
            rest = [one for one in range(_FOLDS) if one != fold]
            others.append(self._judged([pairs[min(fold, one), max(fold, one)] for one in rest], rest))
            answers.append(self._without((fold,), *others[-1].corrected(self.task, weights)))
        return self._judged(answers), tuple(others)

    def _without(self, folds: Sequence[int], task: NodeTask, weights: np.ndarray | None) -> np.ndarray:
        """(M, m, width): the answers of all models for labelled nodes, trained without the labels of these folds."""
        own, outcome = self.labelled[~np.isin(self.fold, folds)], task.outcome_model()
        part = replace(task, train=own, val=own)
        # Nothing is chosen by validation, which would take a part of every epoch.
        blind = replace(part, val=own[:0])
        with enough_for(task.extent):
            results = [(near_labels(plan, part) or plan).fit(blind, self.progress, weights) for plan in self.plans]
        unit = part.outcome_model()
        answers = [unit.averaged(result.answers)[self.labelled] for result in results]
        return np.stack([_in_unit(answer, unit, outcome) for answer in answers])

    def _judged(self, answers: Sequence[np.ndarray], folds: Sequence[int] = range(_FOLDS)) -> JudgedLabels:
        """The labels of these folds, each by its answers (M, m, width)."""
        outcome, labels = self.task.outcome_model(), self.task.labels[self.labelled]
        places, columns, seen = rows_of(labels)
        some = np.isin(self.fold[places], folds)
        places, columns, seen = places[some], columns[some], seen[some]
        nodes, fold, unseen = self.labelled[places], self.fold[places], answers[0].copy()
        for one, answer in zip(folds, answers, strict=True):
            unseen[:, self.fold == one] = answer[:, self.fold == one]
        equal = outcome.weighted(list(unseen), np.full(len(unseen), 1 / len(unseen)))
        if (outliers := outcome.outliers(equal, labels)) is not None:
            answer, wrong = (values[places, columns] for values in outliers)
            return JudgedLabels(
                nodes, columns, fold, np.zeros((len(nodes), 0)), seen, answer, 1 - wrong, wrong, _NO_TABLE
            )
        rows, codes = np.stack([outcome.log_probs_of(one, places, columns) for one in unseen]), seen.astype(np.int64)
        pooled = np.empty(rows.shape[1:])
        for own, rest in _parts(fold):
            pooled[own] = Scaling()(np.tensordot(_pooling(rows[:, rest], codes[rest]), rows[:, own], 1))
        return JudgedLabels.of(nodes, columns, fold, pooled, seen)


def _parts(fold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(m,) booleans: the labels of each fold, and those of all others; the same if there is but one fold."""
    masks = [fold == one for one in np.unique(fold)]
    return [(own, ~own if len(masks) > 1 else own) for own in masks]


def can_judge(task: NodeTask) -> bool:
    """Whether labels are judged by default: there are enough of them, and the graph is not too large."""
    return len(np.union1d(task.train, task.val)) >= LEAST_LABELS and task.extent <= LARGE


def _folds(labelled: int, seed: int) -> np.ndarray:
    """(m,): the fold of each labelled node. It does not depend on the labels, which are to be judged."""
    found = np.empty(labelled, dtype=np.int64)
    found[np.random.default_rng(seed % 2**32).permutation(labelled)] = np.arange(labelled) % _FOLDS
    return found


def _in_unit(answer: np.ndarray, own: Outcome, other: Outcome) -> np.ndarray:
    """An answer (m, width) of one outcome in the unit of another, which other labels gave its unit."""
    if not own.scale:
        return answer
    mean, log_variance = np.split(answer, 2, axis=1)
    ratio = np.array(own.scale) / other.scale
    centre = mean * ratio + (np.array(own.location) - other.location) / other.scale
    return np.concatenate([centre, log_variance + 2 * np.log(ratio)], axis=1)


def _pooling(rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(M,): the weights, from 0 on, with which the log-probabilities (M, m, K) of M models together explain labels
    (m,) best. The loss is convex in them."""

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        pooled = Scaling()(np.tensordot(weights, rows, 1))
        expected = (np.exp(pooled) * rows).sum(2) - rows[:, np.arange(len(seen)), seen]
        loss = -pooled[np.arange(len(seen)), seen].mean() + _RIDGE * weights @ weights
        return float(loss), expected.mean(1) + 2 * _RIDGE * weights

    start = np.full(len(rows), 1 / len(rows))
    return np.asarray(minimize(cost, start, jac=True, bounds=[(0, None)] * len(rows), method="L-BFGS-B").x)
