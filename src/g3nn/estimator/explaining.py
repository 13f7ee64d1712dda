"""Why a node was answered as it was: what its neighbours and its features contribute."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from g3nn.estimator.members import Member, Network
from g3nn.graph.outcomes import Classes, Outcome
from g3nn.model.inputs import Features, Inputs

if TYPE_CHECKING:
    from g3nn.estimator.fitted import Fitted

MOST_NEIGHBOURS = 24
"""Of a node with more, those whose edges weigh most are looked at."""
_MOST_CELLS = 200_000_000
"""Features are made dense to take gradients; larger matrices are not."""


class Neighbour(NamedTuple):
    """node: its number. change: how much lower the answer would be without the edge. exact: always, since the model
    answers again without it."""

    node: int
    change: float
    exact: bool = True


class Explanation(NamedTuple):
    """What pulled the answer up or down, the strongest first.

    The answer is the log-probability of the likeliest class, the probability of the likeliest tag, or the expected
    number. neighbours: by leaving out one edge at a time. features: (name, gradient times value) of the node itself, a
    first-order estimate.
    """

    neighbours: list[Neighbour]
    features: list[tuple[str, float]]


def explain(fitted: Fitted, nodes: np.ndarray) -> list[Explanation]:
    """For some nodes of the fitted graph; each takes as many passes through the network as it has neighbours."""
    pulls = _features(fitted, nodes)
    return [Explanation(_neighbours(fitted, int(node)), pull) for node, pull in zip(nodes, pulls, strict=True)]


def _neighbours(fitted: Fitted, node: int) -> list[Neighbour]:
    task, outcome = replace(fitted.task, train=fitted.seen), fitted.outcome
    own = np.flatnonzero((task.edges == node).any(axis=0))
    if task.weights is not None:
        own = own[np.argsort(-task.weights[own], kind="stable")]
    answer = fitted.answerer(task, fitted.answers.new).answer[node]
    column, found = _column(outcome, answer), []
    for edge in own[:MOST_NEIGHBOURS]:
        kept = np.arange(task.num_edges) != edge
        without = fitted.answerer(task.with_edges(kept), fitted.answers.new).answer[node]
        change = _value(outcome, answer, column) - _value(outcome, without, column)
        found.append(Neighbour(int(task.edges[:, edge].sum() - node), change))
    return sorted(found, key=lambda one: -abs(one.change))


def _column(outcome: Outcome, answer: np.ndarray) -> int:
    """The likeliest class or tag; of several numbers the first."""
    mean = outcome.moments(answer[None])[0][0]
    return int(mean.argmax()) if outcome.pooled else 0


def _value(outcome: Outcome, answer: np.ndarray, column: int) -> float:
    return float(answer[column] if isinstance(outcome, Classes) else outcome.moments(answer[None])[0][0, column])


def _features(fitted: Fitted, nodes: np.ndarray) -> list[list[tuple[str, float]]]:
    """Gradient of the answer of the networks times value, for the features of each node that are not zero."""
    outcome, shape = fitted.outcome, fitted.task.features.shape
    pulls = np.zeros((len(nodes), shape[1]))
    if shape[0] * shape[1] <= _MOST_CELLS:
        for member in fitted.answerer.members:
            if isinstance(member.learned, Network) and member.weight:
                pulls += member.weight * _pulls(fitted, member, member.learned, nodes, outcome)
    names, found = fitted.features or tuple(map(str, range(shape[1]))), []
    for pull in pulls:
        order = np.argsort(-np.abs(pull), kind="stable")
        found.append([(names[place], float(pull[place])) for place in order if pull[place]])
    return found


def _pulls(fitted: Fitted, member: Member, network: Network, nodes: np.ndarray, outcome: Outcome) -> np.ndarray:
    """(|nodes|, d): gradient times value of what one network looks at, without what a prior makes of it."""
    task = member.seen(replace(fitted.task, train=fitted.seen), outcome)
    seen = task.features
    device = fitted.answerer.device
    inputs, model = Inputs.of(task, device, outcome=outcome), network.model.to(device)
    x = torch.from_numpy(seen.toarray() if sp.issparse(seen) else seen).to(inputs.device, inputs.dtype).requires_grad_()
    mean = outcome.mean(outcome.mixture(model.posterior.log_prob(replace(inputs, x=Features(x)), None)))[0]
    values = mean.log() if isinstance(outcome, Classes) else mean * torch.tensor(outcome.scale or (1.0,)).to(mean)
    pulls = np.zeros((len(nodes), fitted.task.num_features))
    if not values.requires_grad:
        # Some models do not look at features.
        return pulls
    for place, node in enumerate(nodes):
        column = _column(outcome, fitted.answers.answer[node])
        (slope,) = torch.autograd.grad(values[node, column], x, retain_graph=True)
        pulls[place] = (slope[node] * x.detach()[node]).cpu().numpy()[: pulls.shape[1]]
    return pulls
