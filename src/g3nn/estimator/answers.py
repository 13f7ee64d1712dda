"""Answers: from trained replicas and a graph to calibrated answers, with and without edges."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from g3nn.calibrate import Scaling, conformal_intervals, conformal_sets
from g3nn.estimator.inferring import infer_scores
from g3nn.estimator.judging import CLASSES, Judge, NumberJudge, judge_of
from g3nn.inputs import Inputs
from g3nn.model import BOTH, POSTERIOR, PRIOR, GenerativeModel
from g3nn.outcomes import Outcome
from g3nn.posteriors import LabelPosterior
from g3nn.task import NodeTask


@dataclass(frozen=True, eq=False)
class Answers:
    """log_prob: (n, K) of the averaged replicas, before scaling; with another outcome than classes (n, width), in its
    form. has_edges: (n,). fresh: (n,) nodes that training did not know, so that it gave them no score of their own, or
    None if that makes no difference. inferred: (n,) those of them whose score was found afterwards, or None."""

    log_prob: np.ndarray
    has_edges: np.ndarray
    fresh: np.ndarray | None = None
    inferred: np.ndarray | None = None

    def at(self, nodes: np.ndarray) -> Answers:
        parts = (self.log_prob, self.has_edges, self.fresh, self.inferred)
        return Answers(*(None if part is None else part[nodes] for part in parts))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What validation nodes taught: a scaling, and how strange true labels are (sorted, for conformal answers)."""

    scaling: Scaling = field(default_factory=Scaling)
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(cls, log_prob: np.ndarray, labels: np.ndarray, judge: Judge = CLASSES) -> Calibration:
        scaling = judge.scaling(log_prob, labels)
        return cls(scaling, np.sort(judge.strangeness(judge.scaled(log_prob, scaling), labels), axis=0))


@dataclass(frozen=True, eq=False)
class Calibrations:
    """One calibration for nodes with edges, one for nodes without, and, where that makes a difference, one for nodes
    with edges that training did not know and one for those of them whose own scores were inferred."""

    linked: Calibration
    alone: Calibration
    fresh: Calibration | None = None
    inferred: Calibration | None = None

    def each(self, answers: Answers) -> Iterator[tuple[np.ndarray, Calibration]]:
        """Masks (n,) that share out the nodes, with the calibration that holds there."""
        left = answers.has_edges
        for nodes, calibration in ((answers.inferred, self.inferred), (answers.fresh, self.fresh)):
            if nodes is not None and calibration is not None:
                yield left & nodes, calibration
                left = left & ~nodes
        yield left, self.linked
        yield ~answers.has_edges, self.alone

    def scaled(self, answers: Answers, judge: Judge = CLASSES) -> np.ndarray:
        """(n, width)"""
        found = np.empty(answers.log_prob.shape)
        for nodes, calibration in self.each(answers):
            found[nodes] = judge.scaled(answers.log_prob[nodes], calibration.scaling)
        return found

    def probabilities(self, answers: Answers) -> np.ndarray:
        """(n, K)"""
        return np.exp(self.scaled(answers))

    def sets(self, answers: Answers, alpha: float) -> np.ndarray:
        """(n, K) booleans: the classes that cannot be excluded at level alpha."""
        probabilities = self.probabilities(answers)
        found = np.zeros(probabilities.shape, dtype=bool)
        for nodes, calibration in self.each(answers):
            found[nodes] = conformal_sets(probabilities[nodes], calibration.scores, alpha)
        return found

    def intervals(self, answers: Answers, judge: NumberJudge, level: float) -> np.ndarray:
        """(2, n, T): the lowest and the highest value that cannot be excluded, of each column by its own scores."""
        mean, deviation = judge.in_units(self.scaled(answers, judge))
        found = np.empty((2, *mean.shape))
        for nodes, calibration in self.each(answers):
            for t, scores in enumerate(calibration.scores.T):
                known = scores[~np.isnan(scores)]
                found[:, nodes, t] = conformal_intervals(mean[nodes, t], deviation[nodes, t], known, 1 - level)
        return found


@dataclass(frozen=True, eq=False)
class Answerer:
    """Trained replicas, and who answers for nodes without edges: the prior, the posterior, which then has but the
    features to go by, or both together. infers: whether nodes that training did not know get scores of their own from
    their edges."""

    model: GenerativeModel
    device: torch.device
    isolated_answer: str = POSTERIOR
    infers: bool = False

    @property
    def outcome(self) -> Outcome:
        """In whose form and unit the model answers."""
        return self.model.posterior.sizes.outcome

    @property
    def refined(self) -> bool:
        """Whether nodes that training knew have scores of their own."""
        return self.model.posterior.nodes is not None

    @classmethod
    def choose(
        cls, model: GenerativeModel, task: NodeTask, device: torch.device, infers: bool = False
    ) -> tuple[Answerer, Calibrations]:
        """Calibrated on the validation nodes: as they are, and again with their edges taken away; if nodes have scores
        of their own, also as if the validation nodes were new.

        What has the lower loss without edges, after a scaling of its own, answers for nodes without edges.
        """
        val, labels = task.val, task.labels[task.val]
        judge = judge_of(model.posterior.sizes.outcome)
        apart = task.without_edges_of(val)
        losses: dict[str, float] = {}
        without: dict[str, Calibration] = {}
        for who in (PRIOR, POSTERIOR, BOTH) if model.prior is not None else (POSTERIOR,):
            log_prob = cls(model, device, who)(apart).log_prob[val]
            without[who] = Calibration.fit(log_prob, labels, judge)
            losses[who] = judge.loss(judge.scaled(log_prob, without[who].scaling), labels)
        chosen = min(losses, key=lambda who: losses[who])
        answerer = cls(model, device, chosen)
        answers = answerer(task).at(val)
        linked = answers.has_edges
        if not linked.any():
            return answerer, Calibrations(without[chosen], without[chosen])
        seen = Calibration.fit(answers.log_prob[linked], labels[linked], judge)
        if not answerer.refined:
            return answerer, Calibrations(seen, without[chosen])
        as_new = np.isin(np.arange(task.num_nodes), val)
        new = answerer(task, as_new).at(val[linked])
        calibrations = Calibrations(seen, without[chosen], Calibration.fit(new.log_prob, labels[linked], judge))
        if not infers:
            return answerer, calibrations
        answerer = replace(answerer, infers=True)
        new = answerer(task, as_new).at(val)
        found = Calibration.fit(new.log_prob[new.inferred], labels[new.inferred], judge)
        return answerer, replace(calibrations, inferred=found)

    def __call__(self, task: NodeTask, fresh: np.ndarray | None = None) -> Answers:
        """For all nodes of a graph. Labels of its training nodes are known to a posterior that looks at labels.

        fresh: (n,) nodes that training did not know. Neither they nor nodes without edges have scores of their own,
        unless they can be inferred.
        """
        has_edges = np.zeros(task.num_nodes, dtype=bool)
        has_edges[task.edges.ravel()] = True
        if self.refined and fresh is None:
            fresh = np.zeros(task.num_nodes, dtype=bool)
        model, inputs = self.model.to(self.device), Inputs.of(task, self.device, outcome=self.outcome)
        judge = judge_of(self.outcome)
        posterior = model.posterior if fresh is None else without_own_scores(model.posterior, fresh | ~has_edges)
        inferred = None
        if self.infers and fresh is not None:
            inferred = infer_scores(model, posterior, inputs, fresh)
        with torch.no_grad():
            warm = posterior.log_prob(inputs, None)
            log_prob = judge.averaged(warm)
            if self.isolated_answer != POSTERIOR and model.prior is not None and not has_edges.all():
                cold = model.prior.log_prob(inputs, None)
                cold = torch.cat([warm, cold]) if self.isolated_answer == BOTH else cold
                log_prob[~has_edges] = judge.averaged(cold)[~has_edges]
        return Answers(log_prob, has_edges, fresh if self.refined else None, inferred)


def without_own_scores(posterior: LabelPosterior, where: np.ndarray) -> LabelPosterior:
    """A copy for a graph of n nodes, in which the nodes `where` (n,) have no scores of their own."""
    if posterior.nodes is None:
        return posterior
    made = copy.deepcopy(posterior)
    assert made.nodes is not None
    own = made.nodes.own.data
    missing = len(where) - own.shape[1]
    own = torch.nn.functional.pad(own, (0, 0, 0, missing)) if missing else own
    kept = torch.from_numpy(~where).to(own).view(1, -1, 1)
    made.nodes.own = torch.nn.Parameter(own * kept, requires_grad=False)
    return made
