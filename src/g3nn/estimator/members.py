"""Those who answer together: replicas of a network, trees, or belief propagation, each on its own view of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor

from g3nn.estimator.beliefs import with_belief_columns
from g3nn.estimator.inferring import infer_scores
from g3nn.estimator.trust import EdgeTrust, known_classes
from g3nn.estimator.views import View
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome
from g3nn.graph.task import NodeTask
from g3nn.model.generative import BOTH, POSTERIOR, GenerativeModel, ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.tabular import CrossFitted, Neighbourhood
from g3nn.queries.genuine import Evidence

PROPAGATION = "propagation"


@dataclass(frozen=True, eq=False)
class Answers:
    """answer: (n, width) of all who answer, in the form of the outcome, before calibration. isolated: (n,).

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
class Network:
    """Trained replicas of a model.

    hyperparameters: every option, defaults included. isolated_answer: who answers for isolated nodes: the prior, the
    posterior, which then has only the features to go by, or both together. infers: whether nodes that training did not
    know get scores of their own from their edges. history: (epochs, terms, R), the learning curves.
    held_out: (R, n), which nodes of the fitted graph each replica had for validation, where they had different ones;
    about those only these replicas are asked. sharpness: the temperature at which all replicas together are as certain
    as each of them.
    """

    spec: ModelSpec
    objective: str
    hyperparameters: dict[str, Any]
    seeds: tuple[int, ...]
    epochs: int
    history: np.ndarray
    model: GenerativeModel
    isolated_answer: str = POSTERIOR
    infers: bool = False
    held_out: np.ndarray | None = None
    sharpness: float = 1.0

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def refined(self) -> bool:
        """Whether nodes that training knew have scores of their own."""
        return self.model.posterior.nodes is not None

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        """new: (n,) nodes that training did not know. Nothing was learned for each of them; neither they nor isolated
        nodes have scores of their own, unless those can be inferred."""
        isolated, inferred, model = task.isolated, None, self.model.to(device)
        outcome = model.posterior.sizes.outcome
        inputs = Inputs.of(task, device, outcome=outcome)
        new = np.zeros(task.num_nodes, dtype=bool) if new is None else new
        posterior = model.posterior.without_own(torch.from_numpy(new | isolated).to(device))
        if self.infers:
            inferred = infer_scores(model, posterior, inputs, new)
        answers = posterior.log_prob(inputs, None)
        answer = self._averaged(answers, outcome)
        if self.isolated_answer != POSTERIOR and isolated.any():
            assert model.prior is not None
            prior = model.prior.log_prob(inputs, None)
            both = torch.cat([answers, prior]) if self.isolated_answer == BOTH else prior
            answer[isolated] = self._averaged(both, outcome)[isolated]
        return Answers(answer, isolated, new if self.refined else None, inferred)

    def _averaged(self, answers: Tensor, outcome: Outcome) -> np.ndarray:
        """(n, width) of answers (R or 2 R, n, width)."""
        answer = outcome.averaged(answers)
        if self.sharpness != 1:
            answer = outcome.scaled(answer, Scaling(self.sharpness))
        if self.held_out is not None:
            asked = np.tile(self.held_out, (len(answers) // len(self.held_out), 1))
            for who in np.unique(asked.T, axis=0):
                if who.any():
                    nodes = (who == asked.T).all(1)
                    answer[nodes] = outcome.averaged(answers[torch.from_numpy(who).to(answers.device)])[nodes]
        return answer


def sharpness(answers: Tensor, outcome: Outcome) -> float:
    """The temperature at which replicas together, on average over nodes, are as certain as each by itself.

    Their mean is less certain than any of them, though not less often right. Where each node of a calibration was
    answered by one replica, that would count twice. answers: (R, n, width) about nodes that no replica was trained on.
    """

    def certainty(answer: np.ndarray) -> float:
        return float(np.exp(answer.max(1)).mean())

    each = np.mean([certainty(outcome.averaged(answers[[r]])) for r in range(len(answers))])
    together = outcome.averaged(answers)
    low, high = 0.2, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if certainty(outcome.scaled(together, Scaling(middle))) > each else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, eq=False)
class Tabular:
    """A model of scikit-learn that looks at one node at a time: at its own features, or also at the mean of those of
    its neighbours."""

    name: str
    fitted: CrossFitted
    neighbourhood: Neighbourhood | None
    infers: bool = False
    refined: ClassVar[bool] = False

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        columns = task.features
        if self.neighbourhood is not None:
            columns = self.neighbourhood.apply(columns, task.edges, task.weights)
        return Answers(self.fitted.answers(columns), task.isolated)


@dataclass(frozen=True, eq=False)
class Propagation:
    """Belief propagation over labels and false edges, where nodes have no features. It learns from scratch whenever it
    is asked: labels are those of the task's training nodes. share: of the edges that is taken to be genuine."""

    share: float
    seed: int
    infers: bool = False
    refined: ClassVar[bool] = False
    name: ClassVar[str] = PROPAGATION

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        known = known_classes(task)
        beliefs = np.full_like(known, 1 / task.num_classes)
        if task.num_edges:
            beliefs = Evidence(task, True, self.seed % 2**32).judge(known, (self.share,))[0].around
        # What many neighbours say is counted as if it were independent: that certainty is not to be taken at its word.
        scores = np.log(np.maximum(beliefs, np.finfo(np.float32).tiny), dtype=np.float64)
        behind = scores.max(1, keepdims=True) - scores
        return Answers(log_softmax(-np.log1p(behind), axis=1), task.isolated)


@dataclass(frozen=True, eq=False)
class Member:
    """One of those who answer. weight: in the mixture for nodes with edges; isolated_weight: in that for isolated ones.
    temperature: makes it more or less certain before it is mixed. place: where its candidate stands in the panel.
    beliefs: whether it sees those of a task as additional columns. trust: how far it believes edges, None: all."""

    view: View
    learned: Network | Tabular | Propagation
    place: int = 0
    weight: float = 1.0
    isolated_weight: float = 1.0
    temperature: float = 1.0
    beliefs: bool = False
    trust: EdgeTrust | None = None

    @property
    def name(self) -> str:
        return self.learned.name

    @property
    def believes(self) -> bool:
        """Whether it believes any edge."""
        if isinstance(self.learned, Tabular):
            return self.learned.neighbourhood is not None
        return self.trust is None or self.trust.share > 0

    def seen(self, task: NodeTask, outcome: Outcome, new: np.ndarray | None = None) -> NodeTask:
        """The task with the features that it looks at, and edges that count as much as it believes them."""
        task = replace(task, features=self.view.apply(task.features))
        task = task if self.trust is None else self.trust.weigh(task, new)
        return with_belief_columns(task, outcome) if self.beliefs else task

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device, outcome: Outcome) -> Answers:
        """For all nodes of a graph. A posterior that looks at labels sees those of the task's training nodes."""
        found = self.learned.answers(self.seen(task, outcome, new), new, device)
        # Who has edges is not isolated, even if nobody believes them.
        return replace(found, answer=outcome.scaled(found.answer, Scaling(self.temperature)), isolated=task.isolated)
