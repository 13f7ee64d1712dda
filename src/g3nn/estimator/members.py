"""Those that answer together: replicas of a network, trees, or belief propagation, each on its own view of features
and with its own weights of edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import log_softmax
from torch import Tensor

from g3nn.base.parse import Matrix
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome
from g3nn.graph.outcomes.base import as_stack
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform
from g3nn.model.generative import BOTH, POSTERIOR, SIMILAR, GenerativeModel, ModelSpec
from g3nn.model.inferring import infer_scores
from g3nn.model.inputs import Inputs
from g3nn.model.similar import most_similar, with_features
from g3nn.model.tabular import CrossFitted, Neighbourhood, Paths
from g3nn.queries.edge_trust import EdgeTrust, known_classes
from g3nn.queries.genuine import Evidence
from g3nn.training.options import LAST

Parameters = Mapping[str, Any]
"""Values by name: options of a model, or parameters of an estimator before they are checked."""
Surroundings = Neighbourhood | Paths
"""What makes columns of what a node has around it: of paths of types, where edges have types."""


PATHS, DEGREES = "paths", "degrees"
"""What is read of it: everything, or the counts of arcs alone."""


def surroundings_of(task: NodeTask, what: str = PATHS) -> Surroundings:
    if what == DEGREES:
        return Paths.of_degrees(task)
    return Neighbourhood.fit(task) if task.relations is None else Paths.fit(task)


def beliefs_about(prior: CrossFitted, beliefs: np.ndarray, features: Matrix, known: np.ndarray) -> np.ndarray:
    """(n, width): what p(y | x), learned by an estimator, says about nodes with these features. beliefs: (m, width),
    about the nodes `known` that it was learned on: those about training nodes come from models that have not seen their
    labels."""
    new = np.setdiff1d(np.arange(features.shape[0]), known)
    found = np.empty((features.shape[0], beliefs.shape[1]))
    found[known] = beliefs[: len(known)]
    if new.size:
        found[new] = prior.answers(features[new].astype(np.float32))
    return found


def with_belief_columns(task: NodeTask, outcome: Outcome) -> NodeTask:
    """The task whose features have more columns: the beliefs as probabilities of classes or tags, as means of numbers,
    as log-rates of counts."""
    assert task.beliefs is not None
    if outcome.numbers_per_column == 1:
        columns = outcome.mean(as_stack(task.beliefs))[0].numpy()
    else:
        columns = task.beliefs[:, : outcome.columns]
    columns = columns.astype(np.float32)
    if sp.issparse(task.features):
        return replace(task, features=sp.csr_array(sp.hstack([task.features, sp.csr_array(columns)])))
    return replace(task, features=np.concatenate([task.features, columns], axis=1))


PROPAGATION, SPREADING = "propagation", "label-propagation"
_SIMILAR = 10
"""From how many nodes with similar features an isolated one hears."""
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Answers:
    """answer: (n, width) of all members together, in the form of the outcome, before calibration. isolated: (n,).

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Member(ABC):
    """A fitted model as one part of a mixture.

    view: the feature transform that it reads. place: of its candidate in the panel. weight: in the mixture for nodes
    with edges; isolated_weight: in that for isolated ones. temperature: makes it more or less certain before it is
    mixed. beliefs: whether it sees those of a task as additional columns. trust: how it weights edges, None: all alike.
    infers: whether nodes that training did not know get scores of their own from their edges. held_out: (R, n), which
    nodes of the fitted graph each of its replicas did not learn from, where these are different ones; only these
    replicas answer for those. neighbourhood: what it reads of a node's neighbourhood as columns, None: nothing. unused:
    types of edges that it leaves out.
    """

    view: FeatureTransform
    place: int = 0
    weight: float = 1.0
    isolated_weight: float = 1.0
    temperature: float = 1.0
    beliefs: bool = False
    trust: EdgeTrust | None = None
    infers: bool = False
    held_out: np.ndarray | None = None
    neighbourhood: Surroundings | None = None
    unused: tuple[str, ...] = ()
    name: ClassVar[str]
    refined: ClassVar[bool] = False
    """Whether nodes that training knew have scores of their own."""
    uses_edges: ClassVar[bool] = True
    learns_when_asked: ClassVar[bool] = False
    """Whether it learns from the training labels of the task that it is asked about."""

    @abstractmethod
    def _answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers: ...

    def fitted_answers(self, task: NodeTask, new: np.ndarray | None = None, device: torch.device = CPU) -> Answers:
        """For all nodes of a task as it is `seen`. new: (n,) nodes that training did not know. A member that learns
        when it is asked answers for nodes that were held out by the labels of all others."""
        found = self._answers(task, new, device)
        if self.learns_when_asked and self.held_out is not None:
            # Labels that no replica trains on are in no fold: nor does this one learn from them in the end.
            labelled = np.union1d(task.train, np.flatnonzero(self.held_out.any(0)))
            for nodes in self.held_out[self.held_out.any(1)]:
                others = replace(task, train=np.setdiff1d(labelled, np.flatnonzero(nodes)))
                found.answer[nodes] = self._answers(others, new, device).answer[nodes]
        return found

    def in_place_of(self, other: Member) -> Self:
        """With the part that another member has in a mixture, trained on all labels."""
        parts = {field.name: getattr(other, field.name) for field in fields(Member)}
        return replace(self, **parts | {"held_out": None})

    def asked_by_all(self) -> Self:
        """Every replica is asked about every node. What they say about nodes of their training is no honest answer, but
        other graphs have none of those."""
        return replace(self, held_out=None)

    def asked_as(self, judge: int) -> Self:
        """About every node those replicas are asked that answer for this one."""
        if self.held_out is None or self.learns_when_asked:
            return self
        return replace(self, held_out=np.repeat(self.held_out[:, [judge]], self.held_out.shape[1], axis=1))

    @property
    def held_back(self) -> np.ndarray:
        """(n,): nodes about which not everything that was learned is asked."""
        assert self.held_out is not None
        return np.asarray(self.held_out.any(0) & ~self.held_out.all(0))

    @property
    def believes(self) -> bool:
        """Whether it uses any edge."""
        return self.uses_edges and (self.trust is None or self.trust.share > 0)

    def seen(self, task: NodeTask, outcome: Outcome, new: np.ndarray | None = None) -> NodeTask:
        """The task with the features that it reads, and edges with its weights."""
        task = replace(task.without_types(self.unused), features=self.view.apply(task.features))
        if self.neighbourhood is not None:
            task = replace(task, features=self.neighbourhood.apply(task))
        task = task if self.trust is None else self.trust.weigh(task, new)
        return with_belief_columns(task, outcome) if self.beliefs else task

    def answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device, outcome: Outcome) -> Answers:
        """For all nodes of a graph. A posterior that looks at labels sees those of the task's training nodes."""
        task = task.without_types(self.unused)
        found = self.fitted_answers(self.seen(task, outcome, new), new, device)
        # A node with edges is not isolated, even if the weights of all of them are zero.
        return replace(found, answer=outcome.scaled(found.answer, Scaling(self.temperature)), isolated=task.isolated)


def _with_similar(answers: Tensor, task: NodeTask, outcome: Outcome) -> Tensor:
    """The answers (R, n, width) with those about isolated nodes mixed, half and half, with those of the same replica
    about linked nodes that have the most similar features."""
    nodes, linked = with_features(task.features, np.flatnonzero(task.isolated)), np.flatnonzero(~task.isolated)
    if len(linked) <= _SIMILAR:
        return answers
    near = torch.from_numpy(most_similar(task.features, nodes, linked, _SIMILAR)).to(answers.device)
    weights = answers.new_tensor([0.5] + [0.5 / _SIMILAR] * _SIMILAR, dtype=torch.float64)
    found, places = answers.clone(), torch.from_numpy(nodes).to(answers.device)
    for replica, one in enumerate(answers.double()):
        heard = torch.cat([one[places].unsqueeze(0), one[near.T]])
        found[replica, places] = outcome.mixture(heard, weights)[0].to(answers.dtype)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Network(Member):
    """Trained replicas of a model.

    hyperparameters: every option, defaults included. isolated_answer: what answers for isolated nodes: the prior, the
    posterior, which then has only the features to go by, or both together; or the posterior together with what it says
    about nodes with similar features. history: (epochs, terms, R), the learning
    curves. sharpness: in models of earlier versions, a temperature of all replicas together.
    """

    spec: ModelSpec
    objective: str
    hyperparameters: Parameters
    seeds: tuple[int, ...]
    epochs: int
    history: np.ndarray
    model: GenerativeModel
    isolated_answer: str = POSTERIOR
    sharpness: float = 1.0

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.spec.name

    @property
    def refined(self) -> bool:  # type: ignore[override]
        return self.model.posterior.nodes is not None

    @property
    def stops_early(self) -> bool:
        """Whether validation nodes chose when training ended."""
        return not self.learns_when_asked and self.hyperparameters.get("keep") != LAST

    @property
    def learns_when_asked(self) -> bool:  # type: ignore[override]
        return self.name == SPREADING

    def _answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        """Nothing was learned for each of the new nodes; neither they nor isolated nodes have scores of their own,
        unless those can be inferred."""
        isolated, inferred, model = task.isolated, None, self.model.to(device)
        outcome = model.posterior.sizes.outcome
        inputs = Inputs.of(task, device, outcome=outcome)
        new = np.zeros(task.num_nodes, dtype=bool) if new is None else new
        posterior = model.posterior.without_own(torch.from_numpy(new | isolated).to(device))
        if self.infers:
            inferred = infer_scores(model, posterior, inputs, new)
        answers = model.with_marks(posterior.log_prob(inputs, None), inputs)
        answer = self._averaged(answers, outcome)
        if self.isolated_answer == SIMILAR and isolated.any():
            answer[isolated] = self._averaged(_with_similar(answers, task, outcome), outcome)[isolated]
        elif self.isolated_answer != POSTERIOR and isolated.any():
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
            for replicas in np.unique(asked.T, axis=0):
                if replicas.any():
                    nodes = (replicas == asked.T).all(1)
                    answer[nodes] = outcome.averaged(answers[torch.from_numpy(replicas).to(answers.device)])[nodes]
        return answer


@dataclass(frozen=True, eq=False, kw_only=True)
class Tabular(Member):
    """A model of scikit-learn that looks at one node at a time: at its own features, or also at those of its
    neighbours in columns. Its replicas learned from different parts of the labels. whole: what it learned from all of
    them, by which it answers for nodes that no replica has seen; None: by all replicas."""

    name: str  # type: ignore[misc]
    fitted: CrossFitted
    whole: CrossFitted | None = None

    @property
    def uses_edges(self) -> bool:  # type: ignore[override]
        return self.neighbourhood is not None

    def _answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        columns = task.features
        answer = (self.whole or self.fitted).answers(columns)
        for part, nodes in enumerate(() if self.held_out is None else self.held_out):
            answer[nodes] = self.fitted.answers(columns[nodes], part)
        return Answers(answer, task.isolated)

    def asked_by_all(self) -> Self:
        return replace(super().asked_by_all(), fitted=self.whole or self.fitted, whole=None)

    @property
    def held_back(self) -> np.ndarray:
        assert self.held_out is not None
        return super().held_back if self.whole is None else np.asarray(self.held_out.any(0))

    def in_place_of(self, other: Member) -> Self:
        """How far numbers are from their means is known by nodes that the other has not seen."""
        assert isinstance(other, Tabular)
        again = replace(super().in_place_of(other), whole=None)
        return replace(again, fitted=replace(self.fitted, spread=other.fitted.spread))


@dataclass(frozen=True, eq=False, kw_only=True)
class Propagation(Member):
    """Belief propagation over labels and false edges, where nodes have no features. It learns from scratch whenever it
    is asked: labels are those of the task's training nodes. share: of the edges that is taken to be genuine."""

    share: float
    seed: int
    name: ClassVar[str] = PROPAGATION
    learns_when_asked: ClassVar[bool] = True

    def _answers(self, task: NodeTask, new: np.ndarray | None, device: torch.device) -> Answers:
        known = known_classes(task)
        beliefs = np.full_like(known, 1 / task.num_classes)
        if task.num_edges:
            beliefs = Evidence(task, True, self.seed % 2**32).judge(known, (self.share,))[0].around
        # What many neighbours say is counted as if it were independent: that certainty is not to be taken at its word.
        scores = np.log(np.maximum(beliefs, np.finfo(np.float32).tiny), dtype=np.float64)
        behind = scores.max(1, keepdims=True) - scores
        return Answers(log_softmax(-np.log1p(behind), axis=1), task.isolated)
