"""Answers: from trained replicas and a graph to calibrated answers, also for isolated and for new nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from g3nn.calibrate import Scaling
from g3nn.estimator.inferring import infer_scores
from g3nn.inputs import Inputs
from g3nn.model import BOTH, POSTERIOR, PRIOR, GenerativeModel
from g3nn.outcomes import Outcome
from g3nn.task import NodeTask
from g3nn.threads import enough_for


@dataclass(frozen=True, eq=False)
class Answers:
    """answer: (n, width) of the averaged replicas, in the form of the outcome, before calibration. isolated: (n,).

    new: (n,) nodes that training did not know, so that it gave them no score of their own, or None if that makes no
    difference. inferred: (n,) those of them whose own score was inferred afterwards, or None.
    """

    answer: np.ndarray
    isolated: np.ndarray
    new: np.ndarray | None = None
    inferred: np.ndarray | None = None

    def at(self, nodes: np.ndarray) -> Answers:
        parts = (self.answer, self.isolated, self.new, self.inferred)
        return Answers(*(None if part is None else part[nodes] for part in parts))  # type: ignore[arg-type]

    @classmethod
    def joined(cls, first: Answers, second: Answers) -> Answers:
        """Those of all nodes; where one of them makes no difference between nodes, none of its nodes is different."""

        def both(name: str) -> np.ndarray | None:
            parts = [getattr(answers, name) for answers in (first, second)]
            if all(part is None for part in parts):
                return None
            lengths = (len(first.isolated), len(second.isolated))
            filled = [np.zeros(n, dtype=bool) if part is None else part for part, n in zip(parts, lengths, strict=True)]
            return np.concatenate(filled)

        answer = np.concatenate([first.answer, second.answer])
        return cls(answer, np.concatenate([first.isolated, second.isolated]), both("new"), both("inferred"))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What validation nodes taught: a scaling, and the sorted conformal scores of their labels."""

    scaling: Scaling = field(default_factory=Scaling)
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(cls, outcome: Outcome, answer: np.ndarray, labels: np.ndarray, nodes: np.ndarray) -> Calibration:
        """By answers and labels of `nodes`, of which some may count more than once in the scaling."""
        scaling = outcome.fit_scaling(answer, labels)
        once = np.unique(nodes, return_index=True)[1]
        scaled = outcome.scaled(answer[once], scaling)
        return cls(scaling, np.sort(outcome.conformal_scores(scaled, labels[once]), axis=0))


@dataclass(frozen=True, eq=False)
class Calibrations:
    """One calibration for nodes with edges, one for isolated nodes, and, where that makes a difference, one for new
    nodes with edges and one for those of them whose own scores were inferred."""

    linked: Calibration
    isolated: Calibration
    new: Calibration | None = None
    inferred: Calibration | None = None

    def shared_out(self, answers: Answers) -> Iterator[tuple[np.ndarray, Calibration]]:
        """Masks (n,) that divide the nodes, with the calibration that holds there."""
        left = ~answers.isolated
        for nodes, calibration in ((answers.inferred, self.inferred), (answers.new, self.new)):
            if nodes is not None and calibration is not None:
                yield left & nodes, calibration
                left = left & ~nodes
        yield left, self.linked
        yield answers.isolated, self.isolated


@dataclass(frozen=True, eq=False)
class Answerer:
    """Trained replicas with their calibration.

    isolated_answer: who answers for isolated nodes: the prior, the posterior, which then has only the features to go
    by, or both together. infers: whether nodes that training did not know get scores of their own from their edges.
    """

    model: GenerativeModel
    device: torch.device
    calibrations: Calibrations
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
    def choose(cls, model: GenerativeModel, task: NodeTask, device: torch.device, infers: bool = False) -> Answerer:
        """Calibrated on the validation nodes: with their edges, and again without; if nodes have scores of their own,
        also as if the validation nodes were new.

        What has the lowest loss without edges, after a scaling of its own, answers for isolated nodes.
        """
        val, labels = task.val, task.labels[task.val]
        uncalibrated = cls(model, device, Calibrations(Calibration(), Calibration()))
        outcome, without_edges = uncalibrated.outcome, task.without_edges_of(val)
        losses: dict[str, float] = {}
        isolated: dict[str, Calibration] = {}
        for who in (PRIOR, POSTERIOR, BOTH) if model.prior is not None else (POSTERIOR,):
            answer = replace(uncalibrated, isolated_answer=who)(without_edges).answer[val]
            isolated[who] = Calibration.fit(outcome, answer, labels, val)
            losses[who], _ = outcome.loss_and_score(outcome.scaled(answer, isolated[who].scaling), labels)
        chosen = min(losses, key=lambda who: losses[who])
        answerer = replace(uncalibrated, isolated_answer=chosen)

        def calibration(answerer: Answerer, where: np.ndarray, new: np.ndarray | None = None) -> Calibration:
            """By the validation nodes `where`."""
            return Calibration.fit(outcome, answerer(task, new).at(val[where]).answer, labels[where], val[where])

        linked = ~task.isolated[val]
        if not linked.any():
            return replace(answerer, calibrations=Calibrations(isolated[chosen], isolated[chosen]))
        calibrations = Calibrations(calibration(answerer, linked), isolated[chosen])
        if answerer.refined:
            as_new = np.isin(np.arange(task.num_nodes), val)
            calibrations = replace(calibrations, new=calibration(answerer, linked, as_new))
            if infers:
                answerer = replace(answerer, infers=True)
                inferred = answerer(task, as_new).at(val).inferred
                assert inferred is not None
                calibrations = replace(calibrations, inferred=calibration(answerer, inferred, as_new))
        return replace(answerer, calibrations=calibrations)

    @torch.no_grad()
    def __call__(self, task: NodeTask, new: np.ndarray | None = None) -> Answers:
        """For all nodes of a graph. A posterior that looks at labels sees those of the task's training nodes.

        new: (n,) nodes that training did not know. Neither they nor isolated nodes have scores of their own, unless
        those can be inferred.
        """
        with enough_for(task.extent):
            return self._answers(task, new)

    def _answers(self, task: NodeTask, new: np.ndarray | None) -> Answers:
        isolated, inferred, model = task.isolated, None, self.model.to(self.device)
        inputs, posterior = Inputs.of(task, self.device, outcome=self.outcome), model.posterior
        if self.refined:
            new = np.zeros(task.num_nodes, dtype=bool) if new is None else new
            posterior = posterior.without_own_scores(torch.from_numpy(new | isolated).to(self.device))
            if self.infers:
                inferred = infer_scores(model, posterior, inputs, new)
        answers = posterior.log_prob(inputs, None)
        answer = self.outcome.averaged(answers)
        if self.isolated_answer != POSTERIOR and isolated.any():
            assert model.prior is not None
            prior = model.prior.log_prob(inputs, None)
            both = torch.cat([answers, prior]) if self.isolated_answer == BOTH else prior
            answer[isolated] = self.outcome.averaged(both)[isolated]
        return Answers(answer, isolated, new if self.refined else None, inferred)

    def calibrated(self, answers: Answers) -> np.ndarray:
        """(n, width)"""
        scaled = np.empty(answers.answer.shape)
        for nodes, calibration in self.calibrations.shared_out(answers):
            scaled[nodes] = self.outcome.scaled(answers.answer[nodes], calibration.scaling)
        return scaled

    def conformal(self, answers: Answers, alpha: float) -> np.ndarray:
        """(n, K) booleans or (n, T, 2): what cannot be excluded at level alpha, by nodes like the one asked about."""
        calibrated = self.calibrated(answers)
        parts = [
            (nodes, self.outcome.conformal(calibrated[nodes], calibration.scores, alpha))
            for nodes, calibration in self.calibrations.shared_out(answers)
        ]
        regions = np.empty((len(calibrated), *parts[0][1].shape[1:]), dtype=parts[0][1].dtype)
        for nodes, region in parts:
            regions[nodes] = region
        return regions
