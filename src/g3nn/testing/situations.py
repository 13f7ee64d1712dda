"""One component in one situation: a small task, fresh replicas, and what comes out. All numbers are float64.

n nodes, d features, K classes or columns of numbers, R replicas, P pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.special import log_softmax
from torch import Tensor

from g3nn.base.errors import Problems
from g3nn.graph.outcomes import Classes, Counts, Labels, Outcome, Real, Tags
from g3nn.graph.task import NodeTask
from g3nn.model.channels import Channel, EdgeChannel, LabelChannel
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import LIKELIHOODS, ClassLikelihood, GraphLikelihood, Pairs
from g3nn.model.likelihoods.base import NodeState
from g3nn.model.posteriors import LabelPosterior
from g3nn.model.posteriors.mlp import MLPPosterior
from g3nn.model.priors import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes

CONTRACTS: dict[str, type] = {
    "likelihood": GraphLikelihood,
    "prior": LabelPrior,
    "posterior": LabelPosterior,
    "channel": Channel,
}

Component = GraphLikelihood | LabelPrior | LabelPosterior | Channel

n, d = 16, 5

Row = tuple[bool, int, int]
"""Directed, R and K."""
Rows = tuple[tuple[Row, ...], ...]
"""Lists of situations. Where many components are tested at once, each takes one list, in turn."""
SITUATIONS: Rows = (((False, 1, 2), (False, 3, 4), (True, 1, 4), (True, 3, 2)),)
"""An orthogonal array: each value meets each value of the other two."""
OPPOSITES: Rows = (((False, 3, 4), (True, 1, 2)), ((False, 1, 2), (True, 3, 4)))
DIRECTIONS: Rows = (((False, 3, 4), (True, 3, 4)),)
UNDIRECTED: Rows = (((False, 1, 4), (False, 3, 2)),)

LabelsOf = Callable[[int, int], npt.ArrayLike]
"""Makes labels of n nodes, of K classes or in K columns, as a caller may have them."""


def _columns(nodes: int, K: int) -> np.ndarray:
    """(n, K): 0 to 4, in an order of its own in each column."""
    return np.arange(nodes)[:, None] * (1 + np.arange(K)) % 5


EXAMPLES: dict[type[Outcome], LabelsOf] = {
    Classes: lambda nodes, K: np.array(["red", "green", "blue", "grey"])[np.arange(nodes) % K],
    Tags: lambda nodes, K: (_columns(nodes, K) < 2).astype(int),
    Real: lambda nodes, K: 40 - 42.0 * np.arange(K) + 4.5 * 0.1 ** np.arange(K) * _columns(nodes, K),
    Counts: lambda nodes, K: (1 + 9 * np.arange(K)) * _columns(nodes, K),
}
"""Labels of each outcome of g3nn."""


@dataclass(frozen=True)
class Case:
    """One component in one situation. make: its labels."""

    kind: str
    component: type[Component]
    outcome: type[Outcome]
    directed: bool
    R: int
    K: int
    make: LabelsOf = field(repr=False)

    def __str__(self) -> str:
        ends = "directed" if self.directed else "undirected"
        return f"{self.component.__name__}-{self.outcome.name}-{ends}-R{self.R}-K{self.K}"

    @property
    def of_classes(self) -> bool:
        return self.outcome.exclusive

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(3, 3 + self.R))

    def noise(self, step: int = 0) -> Noise:
        return Noise(torch.tensor(self.seeds), step)

    @property
    def inputs(self) -> Inputs:
        return self.other_inputs()

    def other_inputs(self, feature_seed: int = 0, edge_seed: int = 0) -> Inputs:
        """Those of the task, or with other features or other edges."""
        return _inputs(self.outcome, self.directed, self.K, self.make, feature_seed, edge_seed)

    def model(self, options: Mapping[str, float] | None = None) -> GenerativeModel:
        """Fresh replicas. Without options they are moved away from zero biases and from the symmetry of a start."""
        sizes, replicas = Sizes.of(self.inputs.task), Replicas(self.seeds)
        parts: dict[str, Any] = {"posterior": MLPPosterior(sizes, replicas.within("posterior"))}
        part = self.component(sizes, replicas.within(self.kind), self.component.Options(**(options or {})))
        model = GenerativeModel(
            **parts | ({"channels": [part]} if self.kind == "channel" else {self.kind: part})
        ).double()
        if options is not None:
            return model
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
        return model

    def declares(self, flag: str) -> bool:
        return bool(getattr(self.component, flag))

    def part(self, model: GenerativeModel) -> Component:
        found = model.label_channel or model.edge_channel if self.kind == "channel" else getattr(model, self.kind)
        assert isinstance(found, Component)
        return found

    def likelihood(self) -> tuple[GraphLikelihood, NodeState]:
        """A fresh likelihood and the state of the nodes."""
        part = self.part(self.model())
        assert isinstance(part, GraphLikelihood)
        return part, part.node_state(self.inputs, None)

    def channel(self, options: Mapping[str, float] | None = None) -> LabelChannel | EdgeChannel:
        """A fresh channel."""
        part = self.part(self.model(options))
        assert isinstance(part, LabelChannel | EdgeChannel)
        return part

    def output(self, model: GenerativeModel, inputs: Inputs, noise: Noise | None = None) -> Tensor:
        """(R, n, width), or for a likelihood its terms for all pairs: (R, P, K, K), or (R, P) at given numbers; for a
        channel its terms for nodes and pairs, with the same answers in all replicas."""
        part = self.part(model)
        if isinstance(part, Channel):
            return _through(part, inputs)
        if not isinstance(part, GraphLikelihood):
            return part.log_prob(inputs, noise)
        i, j = torch.triu_indices(n, n, 1)
        pairs = Pairs(i, j, present=True)
        state = part.node_state(inputs, noise)
        return self.table(part, state, pairs) if self.of_classes else part.log_odds(state, self.values(part), pairs)

    def table(self, likelihood: GraphLikelihood, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P, K, K): log-probabilities of what was observed of each pair."""
        assert isinstance(likelihood, ClassLikelihood), "a likelihood of classes derives from ClassLikelihood"
        return likelihood.log_prob(state, pairs).expand(-1, pairs.i.shape[-1], -1, -1)

    def values(self, part: torch.nn.Module) -> Tensor:
        """(R, n, T): values that the outcome can take, the same for each of the replicas that there are."""
        return self.inputs.targets.values.expand(next(part.parameters()).shape[0], n, self.K)

    def soft_labels(self) -> Tensor:
        """(R, n, K) with rows that sum to one."""
        generator = torch.Generator().manual_seed(0)
        return torch.randn(self.R, n, self.K, dtype=torch.float64, generator=generator).softmax(2)

    def beliefs(self) -> Tensor:
        """What enters the graph term for random answers, labelled nodes with their values."""
        outcome = Sizes.of(self.inputs.task).outcome
        return beliefs_of(outcome, random_answers(outcome, self.R), self.inputs)

    def pairs(self) -> Iterator[Pairs]:
        """Edges shared by the replicas, and non-edges of their own."""
        yield Pairs(self.inputs.edges[0], self.inputs.edges[1], present=True)
        i, j = torch.randint(n, (2, self.R, 20), generator=torch.Generator().manual_seed(1))
        yield Pairs(i, j, present=False)


def kind_of(component: object) -> str:
    """likelihood, prior, posterior, channel or outcome; a TypeError for anything else."""
    for kind, contract in {**CONTRACTS, "outcome": Outcome}.items():
        if isinstance(component, type) and issubclass(component, contract):
            return kind
    allowed = ", ".join(contract.__name__ for contract in CONTRACTS.values())
    raise TypeError(f"{component!r} is not a class derived from {allowed} or {Outcome.__name__}")


def listed_cases(
    component: type[Component],
    rows: Rows,
    makers: Mapping[type[Outcome], LabelsOf],
    turn: int | None = None,
    *,
    classes: bool | None = None,
    once: bool = False,
) -> list[Case]:
    """A component in situations. classes: with classes only, or with other outcomes only.

    A likelihood or channel meets every outcome that it declares in every row. Priors and posteriors share the last
    step, which is all that depends on the outcome, so they meet every outcome and every row, but not each of the one
    with each of the other. One column of numbers stands where there would be two classes, three where there are four.

    turn: of a component among many that are tested together. Then `once` means that a likelihood meets each outcome
    once and another component only one, with outcomes and rows in turn.
    """
    kind = kind_of(component)
    served = [one for one in makers if issubclass(one, component.outcomes)]
    served = [one for one in served if classes is None or one.exclusive == classes]
    own = [row for group in rows for row in group] if turn is None else list(rows[turn % len(rows)])
    if kind == "prior" or (kind == "posterior" and not getattr(component, "uses_graph", True)):
        own = [(False, R, K) for _, R, K in own]  # To such a component directions make no difference.
    first, once = turn or 0, once and turn is not None
    if not served:
        met = []
    elif kind in ("likelihood", "channel") and once:
        met = [(outcome, own[(first + place) % len(own)]) for place, outcome in enumerate(served)]
    elif kind in ("likelihood", "channel"):
        met = list(itertools.product(served, own))
    else:
        steps, row = (1, first // len(served)) if once else (max(len(served), len(own)), 0)
        met = [(served[(first + step) % len(served)], own[(row + step) % len(own)]) for step in range(steps)]
    cases = [
        Case(kind, component, outcome, directed, R, K if outcome.exclusive else K - 1, makers[outcome])
        for outcome, (directed, R, K) in met
    ]
    return list(dict.fromkeys(cases))


# Random answers, and other inputs of channels, which are the same for all replicas


def random_answers(outcome: Outcome, R: int, seed: int = 0, nodes: int = n) -> Tensor:
    """(R, nodes, width)"""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(R, nodes, outcome.num_scores, dtype=torch.float64, generator=generator)
    start = torch.tensor(outcome.start, dtype=torch.float64).expand(R, -1) if outcome.start else None
    return outcome.answer(scores, start)


def answers_of(channel: Channel, seed: int = 0) -> Tensor:
    """(R, n, width)"""
    return random_answers(channel.outcome, 1, seed).expand(next(channel.parameters()).shape[0], -1, -1)


def beliefs_of(outcome: Outcome, answers: Tensor, inputs: Inputs) -> Tensor:
    """(R, n, width): what enters the graph term."""
    return outcome.node_terms(answers, answers, inputs.targets, True, (1.0, 1.0))[1]


def likelihood_for(channel: Channel) -> GraphLikelihood:
    """The last likelihood of g3nn that serves the outcome and needs no features, and so no state of nodes."""
    outcome, R = channel.outcome, next(channel.parameters()).shape[0]
    kinds = [one for one in LIKELIHOODS.own.values() if isinstance(outcome, one.outcomes) and not one.uses_features]
    likelihood = kinds[-1](Sizes(d, outcome.columns, kind=outcome), Replicas((3,) * R)).double()
    return likelihood.requires_grad_(False)


def judged_pairs(R: int, first: int | None = None) -> Iterator[Pairs]:
    """Edges that the replicas share, and non-edges of their own. first: only among the five nodes from this one on."""
    i, j = torch.triu_indices(n, n, 1) if first is None else first + torch.tensor([[0, 1, 2, 0], [3, 2, 4, 3]])
    yield Pairs(i, j, present=True)
    yield Pairs(j.expand(R, -1), i.expand(R, -1), present=False)


def _through(channel: Channel, inputs: Inputs) -> Tensor:
    """(R, ...): all terms of a channel."""
    q, targets = answers_of(channel), inputs.targets
    if isinstance(channel, LabelChannel):
        sums, beliefs = channel.node_terms(q, answers_of(channel, 1), targets, True, (1.0, 1.0))
        return torch.cat([sums, channel.supervised(q, targets), beliefs.flatten(1)], dim=1)
    assert isinstance(channel, EdgeChannel)
    likelihood, beliefs = likelihood_for(channel), beliefs_of(channel.outcome, q, inputs)
    terms = (channel.expected_log_prob, channel.expected_edge)
    return torch.cat(
        [term(likelihood, None, beliefs, pairs) for term in terms for pairs in judged_pairs(len(q))], dim=1
    )


# The task


def read_labels(outcome: type[Outcome], given: npt.ArrayLike) -> Labels:
    """Labels of nodes as the outcome reads them."""
    with Problems() as problems:
        labels = outcome.read(given, len(np.asarray(given)), problems)
    assert labels is not None, "read gave None for good labels"
    return labels


@cache
def _inputs(
    outcome: type[Outcome], directed: bool, K: int, make: LabelsOf, feature_seed: int, edge_seed: int
) -> Inputs:
    labels = read_labels(outcome, make(n, K))
    rng = np.random.default_rng(feature_seed)
    x = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    # The distribution that a model of the features predicts: log-probabilities, log-odds, or means and log-variances.
    beliefs = x @ np.random.default_rng(9).standard_normal((d, K * outcome.numbers_per_column))
    task = NodeTask.build(
        sp.csr_array(x),
        _random_edges(directed, edge_seed),
        labels.values,
        train=np.arange(8),
        val=np.arange(8, n - 2),
        test=[n - 2, n - 1],
        directed=directed,
        outcome=outcome.name,
        beliefs=log_softmax(beliefs, axis=1) if outcome.exclusive else beliefs,
    )
    return Inputs.of(task, dtype=torch.float64)


def _random_edges(directed: bool, seed: int) -> np.ndarray:
    pairs = [(i, j) for i in range(n) for j in range(n) if (i != j if directed else i < j)]
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:30]
    return np.array(pairs)[np.sort(chosen)].T


def reweighted(inputs: Inputs, weights: np.ndarray) -> Inputs:
    return Inputs.of(replace(inputs.task, weights=weights), dtype=torch.float64)


def weighted(inputs: Inputs) -> Inputs:
    """Edges of random weights."""
    weights = np.random.default_rng(6).gamma(1.0, size=inputs.task.num_edges)
    return reweighted(inputs, weights / weights.mean())


def renumbered(inputs: Inputs) -> tuple[Inputs, Tensor]:
    """The same task with node v called place[v], and `place`."""
    place = np.random.default_rng(5).permutation(n)
    task = inputs.task
    assert task.beliefs is not None
    x, labels, beliefs = (np.empty_like(part) for part in (task.features.toarray(), task.labels, task.beliefs))
    x[place], labels[place], beliefs[place] = task.features.toarray(), task.labels, task.beliefs
    split: dict[str, Any] = {key: place[getattr(task, key)] for key in ("train", "val", "test")}
    how: dict[str, Any] = {"directed": task.directed, "outcome": task.outcome, "weights": task.weights}
    moved = NodeTask.build(sp.csr_array(x), place[task.edges], labels, **split, **how, beliefs=beliefs)
    return Inputs.of(moved, dtype=torch.float64), torch.from_numpy(place)
