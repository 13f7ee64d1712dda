"""Local inference for new nodes: a score of each node's own, with everything that was fitted held fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.outcomes import NormalOutcome
from g3nn.graph.task import NodeTask
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import GraphLikelihood, Pairs
from g3nn.model.likelihoods.near import NearValues
from g3nn.model.objective import Objective
from g3nn.model.posteriors import LabelPosterior

_STEPS, _RATE = 100, 0.1
"""Steps of Adam, whose rate falls to zero: a score can move up to five standard deviations of the labels."""
_POINTS = 16
"""Number of points of q at which the expectation over both ends of an edge is taken."""
_STRANGERS = 128
"""Number of fitted nodes, each at one point of q, that stand for all those without an edge to a new node."""
_AT_ONCE = 1000
"""New nodes at a time. They do not depend on each other, so this only bounds memory."""


def can_infer(model: GenerativeModel, objective: Objective) -> bool:
    """Whether prior and likelihood of a model whose nodes have scores of their own were trained to judge them: with
    weights, and with as many non-edges as edges."""
    weights = (objective.graph_weight, objective.kl_weight, objective.prior_weight)
    trained = objective.reduction == "mean" and all(np.min(weight) > 0 for weight in weights)
    return trained and isinstance(model.likelihood, NearValues)


@torch.no_grad()
def infer_scores(model: GenerativeModel, posterior: LabelPosterior, inputs: Inputs, fresh: np.ndarray) -> np.ndarray:
    """Give scores of their own, in place, to those of the nodes `fresh` (n,) that have edges to fitted ones, and say
    which these are, (n,).

    Each maximises its part of the bound: E_q log p of its edges to fitted nodes and of as many non-edges as a node has
    in a step of training, less KL(q || p). Edges between new nodes enter through the network alone.
    """
    outcome = cast(NormalOutcome, inputs.outcome)
    nodes, likelihood, prior = posterior.nodes, model.likelihood, model.prior
    assert isinstance(likelihood, GraphLikelihood)
    assert nodes is not None
    assert likelihood is not None
    assert prior is not None
    around = _Surroundings.of(inputs.task, fresh)
    if not around.new.size:
        return np.zeros_like(fresh)
    scores, p = posterior.network_scores(inputs), prior.log_prob(inputs, None)
    beliefs = outcome.beliefs(posterior.log_prob(inputs, None), inputs.targets)

    def bound(scores: Tensor, p: Tensor, log_probs: list[PairTerm], own: Tensor) -> Tensor:
        """What the bound owes to new nodes, from scores of the network and answers of the prior."""
        q = posterior.head(scores + own)
        mean, log_variance = q.chunk(2, dim=2)
        graph = sum(log_prob(mean, log_variance.exp()) for log_prob in log_probs)
        return graph + (outcome.entropy(q) - outcome.cross_entropy(q, p)).sum()

    for part in around.parts():
        here = torch.from_numpy(part.new).to(inputs.device)
        log_probs = [_of_edges(part, beliefs, likelihood), _of_non_edges(part, beliefs, likelihood)]
        own = torch.zeros_like(scores[:, here])
        nodes.put(here, _highest(partial(bound, scores[:, here], p[:, here], log_probs), own))
    return np.isin(np.arange(inputs.n), around.new)


@dataclass(frozen=True, eq=False)
class _Surroundings:
    """new: (m,) nodes with edges to fitted nodes. owner, other: (P,) such edges, by place in `new` and node number.
    weight: (P,), how many edges each counts as.
    strangers: fitted nodes. expected: how many non-edges of a node training looks at in each step."""

    new: np.ndarray
    owner: np.ndarray
    other: np.ndarray
    weight: np.ndarray
    strangers: np.ndarray
    expected: float

    @classmethod
    def of(cls, task: NodeTask, fresh: np.ndarray) -> _Surroundings:
        one, two = task.edges
        mixed, fitted = fresh[one] != fresh[two], np.flatnonzero(~fresh)
        ends = np.where(fresh[one], one, two)[mixed], np.where(fresh[one], two, one)[mixed]
        new, owner = np.unique(ends[0], return_inverse=True)
        strangers = np.resize(np.random.default_rng(0).permutation(fitted), _STRANGERS if fitted.size else 0)
        inside = int((~fresh[one] & ~fresh[two]).sum())
        weight = np.ones(len(owner)) if task.weights is None else task.weights[mixed]
        return cls(new, owner, ends[1], weight, strangers, 2 * inside / max(fitted.size, 1))

    def parts(self) -> Iterator[_Surroundings]:
        """The same for a few new nodes at a time."""
        for start in range(0, len(self.new), _AT_ONCE):
            here = (self.owner >= start) & (self.owner < start + _AT_ONCE)
            new, owner = self.new[start : start + _AT_ONCE], self.owner[here] - start
            yield replace(self, new=new, owner=owner, other=self.other[here], weight=self.weight[here])


PairTerm = Callable[[Tensor, Tensor], Tensor]
"""The expected log-probability of some pairs, from mean and variance of q at new nodes, (R, m, T) each."""


def _drawn_pairs(
    likelihood: GraphLikelihood,
    present: bool,
    ends: tuple[np.ndarray, np.ndarray],
    weight: np.ndarray,
    points: Tensor,
    beliefs: Tensor,
) -> PairTerm:
    """Of pairs of new nodes and fitted ones, at points of q. ends: (P,) places of new nodes, and numbers of the others.
    weight: (P,), how much each counts. points: (P, 2T), of both ends, in deviations. The fitted nodes have values there
    and no variance."""
    i, j, counts = (torch.from_numpy(part).to(beliefs.device) for part in (*ends, weight))
    left, right = points.to(beliefs).chunk(2, dim=1)
    fitted_mean, fitted_variance = beliefs[:, j].chunk(2, dim=2)
    others, counts = _values(fitted_mean, fitted_variance, right), counts.to(beliefs.dtype)

    def log_prob(mean: Tensor, variance: Tensor) -> Tensor:
        both = torch.cat([_values(mean[:, i], variance[:, i], left), others], dim=1)
        one, two = torch.arange(both.shape[1], device=both.device).chunk(2)
        pairs = Pairs(one, two, present)
        return (counts * likelihood.expected_log_prob(None, both, pairs)).sum()

    return log_prob


def _of_edges(around: _Surroundings, beliefs: Tensor, likelihood: GraphLikelihood) -> PairTerm:
    """Every edge at several points."""
    ends = np.repeat(around.owner, _POINTS), np.repeat(around.other, _POINTS)
    points = _normal_points(_POINTS, beliefs.shape[2]).repeat(len(around.owner), 1)
    return _drawn_pairs(likelihood, True, ends, np.repeat(around.weight, _POINTS) / _POINTS, points, beliefs)


def _of_non_edges(around: _Surroundings, beliefs: Tensor, likelihood: GraphLikelihood) -> PairTerm:
    """Every stranger at a point of its own, unless there is an edge to it."""
    count, m, n = len(around.strangers), len(around.new), beliefs.shape[1]
    owner, other = np.repeat(np.arange(m), count), np.tile(around.strangers, m)
    apart = ~np.isin(owner * n + other, around.owner * n + around.other)
    each = around.expected / np.maximum(np.bincount(owner, weights=apart, minlength=m), 1)
    points = _normal_points(count, beliefs.shape[2]).repeat(m, 1)
    return _drawn_pairs(likelihood, False, (owner, other), apart * each[owner], points, beliefs)


def _highest(function: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """By Adam, which treats each number separately: no score depends on which other nodes are new."""
    found = start.clone().requires_grad_()
    adam = torch.optim.Adam([found], lr=_RATE, maximize=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, _STEPS)
    for _ in range(_STEPS):
        adam.zero_grad()
        with torch.enable_grad():
            function(found).backward()
        adam.step()
        schedule.step()
    return found.detach()


def _values(mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    """(R, P, 2T): values drawn from q, and no variance."""
    values = mean + variance.sqrt() * noise
    return torch.cat([values, torch.zeros_like(values)], dim=2)


def _normal_points(count: int, width: int) -> Tensor:
    """(count, width): evenly spread points of a standard normal, always the same ones, each with its opposite."""
    spread = torch.quasirandom.SobolEngine(width, scramble=True, seed=0).draw((count + 1) // 2, dtype=torch.float64)
    points = torch.special.ndtri(spread.clamp(1e-6, 1 - 1e-6))
    return torch.cat([points, -points])[:count]
