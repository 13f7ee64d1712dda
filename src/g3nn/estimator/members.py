"""Those who answer together: replicas of a network, or trees, each on its own view of the features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from g3nn.calibrate import Scaling
from g3nn.estimator.beliefs import with_belief_columns
from g3nn.estimator.inferring import infer_scores
from g3nn.estimator.views import View
from g3nn.inputs import Inputs
from g3nn.model import BOTH, POSTERIOR, GenerativeModel, ModelSpec
from g3nn.outcomes import Outcome
from g3nn.tabular import CrossFitted, Neighbourhood
from g3nn.task import NodeTask


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
        answer = outcome.averaged(answers)
        if self.isolated_answer != POSTERIOR and isolated.any():
            assert model.prior is not None
            prior = model.prior.log_prob(inputs, None)
            both = torch.cat([answers, prior]) if self.isolated_answer == BOTH else prior
            answer[isolated] = outcome.averaged(both)[isolated]
        return Answers(answer, isolated, new if self.refined else None, inferred)


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
class Member:
    """One of those who answer. weight: in the mixture for nodes with edges; isolated_weight: in that for isolated ones.
    temperature: makes it more or less certain before it is mixed. place: where its candidate stands in the panel.
    beliefs: whether it sees those of a task as additional columns."""

    view: View
    learned: Network | Tabular
    place: int = 0
    weight: float = 1.0
    isolated_weight: float = 1.0
    temperature: float = 1.0
    beliefs: bool = False

    @property
    def name(self) -> str:
        return self.learned.name

    def seen(self, task: NodeTask, outcome: Outcome) -> NodeTask:
        """The task with the features that it looks at."""
        task = replace(task, features=self.view.apply(task.features))
        return with_belief_columns(task, outcome) if self.beliefs else task

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device, outcome: Outcome) -> Answers:
        """For all nodes of a graph. A posterior that looks at labels sees those of the task's training nodes."""
        found = self.learned.answers(self.seen(task, outcome), new, device)
        return replace(found, answer=outcome.scaled(found.answer, Scaling(self.temperature)))
