"""Answers: from trained replicas and a graph to calibrated probabilities, with and without edges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from g3nn.calibrate import Scaling, conformal_scores, conformal_sets, fit_scaling, negative_log_likelihood
from g3nn.inputs import Inputs
from g3nn.model import GenerativeModel
from g3nn.task import NodeTask

PRIOR, POSTERIOR = "prior", "posterior"
"""Who answers for a node without edges."""


@dataclass(frozen=True, eq=False)
class Answers:
    """log_prob: (n, K) of the averaged replicas, before scaling. has_edges: (n,)."""

    log_prob: np.ndarray
    has_edges: np.ndarray

    def at(self, nodes: np.ndarray) -> Answers:
        return Answers(self.log_prob[nodes], self.has_edges[nodes])


@dataclass(frozen=True, eq=False)
class Calibration:
    """What validation nodes taught: a scaling, and how strange true labels are (sorted, for conformal sets)."""

    scaling: Scaling = field(default_factory=Scaling)
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(cls, log_prob: np.ndarray, labels: np.ndarray) -> Calibration:
        scaling = fit_scaling(log_prob, labels)
        return cls(scaling, np.sort(conformal_scores(np.exp(scaling(log_prob)), labels)))


@dataclass(frozen=True, eq=False)
class Calibrations:
    """One calibration for nodes with edges, one for nodes without."""

    linked: Calibration
    alone: Calibration

    def probabilities(self, answers: Answers) -> np.ndarray:
        """(n, K)"""
        found = np.exp(self.linked.scaling(answers.log_prob))
        without = ~answers.has_edges
        found[without] = np.exp(self.alone.scaling(answers.log_prob[without]))
        return found

    def sets(self, answers: Answers, alpha: float) -> np.ndarray:
        """(n, K) booleans: the classes that cannot be excluded at level alpha."""
        probabilities = self.probabilities(answers)
        found = conformal_sets(probabilities, self.linked.scores, alpha)
        without = ~answers.has_edges
        found[without] = conformal_sets(probabilities[without], self.alone.scores, alpha)
        return found


@dataclass(frozen=True, eq=False)
class Answerer:
    """Trained replicas, and who answers for nodes without edges: the prior, or the posterior, which then has but the
    features to go by."""

    model: GenerativeModel
    device: torch.device
    cold_start: str = POSTERIOR

    @classmethod
    def choose(cls, model: GenerativeModel, task: NodeTask, device: torch.device) -> tuple[Answerer, Calibrations]:
        """Calibrated on the validation nodes: as they are, and again with their edges taken away.

        What has the lower loss without edges, after a scaling of its own, answers for nodes without edges.
        """
        val, labels = task.val, task.labels[task.val]
        apart = task.with_edges(task.edges[:, ~np.isin(task.edges, val).any(axis=0)])
        losses: dict[str, float] = {}
        without: dict[str, Calibration] = {}
        for who in (PRIOR, POSTERIOR) if model.prior is not None else (POSTERIOR,):
            log_prob = cls(model, device, who)(apart).log_prob[val]
            without[who] = Calibration.fit(log_prob, labels)
            losses[who] = negative_log_likelihood(without[who].scaling(log_prob), labels)
        chosen = min(losses, key=lambda who: losses[who])
        answerer = cls(model, device, chosen)
        answers = answerer(task).at(val)
        linked = answers.has_edges
        if not linked.any():
            return answerer, Calibrations(without[chosen], without[chosen])
        return answerer, Calibrations(Calibration.fit(answers.log_prob[linked], labels[linked]), without[chosen])

    def __call__(self, task: NodeTask) -> Answers:
        """For all nodes of a graph. Labels of its training nodes are known to a posterior that looks at labels."""
        has_edges = np.zeros(task.num_nodes, dtype=bool)
        has_edges[task.edges.ravel()] = True
        model, inputs = self.model.to(self.device), Inputs.of(task, self.device)
        with torch.no_grad():
            log_prob = _averaged(model.posterior.log_prob(inputs, None))
            if self.cold_start == PRIOR and model.prior is not None and not has_edges.all():
                log_prob[~has_edges] = _averaged(model.prior.log_prob(inputs, None))[~has_edges]
        return Answers(log_prob, has_edges)


def _averaged(log_prob: Tensor) -> np.ndarray:
    """(n, K): log of the mean probability over the replicas, from (R, n, K)."""
    log_prob = log_prob.double()
    mean = log_prob.logsumexp(0) - np.log(log_prob.shape[0])
    return np.asarray(mean.cpu().numpy())
