"""Which edges to flip: projected gradient ascent over a block of pairs, then a discrete choice within the budget.

Each pair of the block is flipped to an extent between 0 and 1, and the sum of all is at most the budget (Xu et al.,
2019). The block holds every edge and random other pairs; pairs that are not flipped make room for new ones from time to
time (Geisler et al., 2021). The gradient is that of the cross-entropy of nodes that are still right, or nearly: no
flip is wasted on nodes that are wrong anyway. Discrete choices are compared by the share of wrong answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from adaptive_attack_answers import Answer
from adaptive_attack_trust import PartGraph, chance_pairs
from torch import Tensor

from g3nn.graph.datasets.random_graph import decode, encode, uniform_pairs

_LAST_BLOCK = 0.75
"""The share of the steps after which the block stays as it is."""

_STEP, _SLOWER = 0.3, 10
"""By how much the best pairs, as many as may be flipped, move in the first step; after so many steps each step is
smaller than the first by a factor of about 1.4."""


_SLACK = 0.5
"""So much less likely than another, in nats, the right class has to be before a node counts as lost."""


@dataclass(frozen=True)
class Effort:
    """steps: of the gradient. block: pairs without an edge that are looked at together; new ones come every `renew`
    steps. relearn: how often the networks are trained again, on the graph as it is attacked by then. samples: discrete
    choices that are compared."""

    steps: int = 120
    block: int = 250_000
    renew: int = 10
    relearn: int = 2
    samples: int = 20


QUICK = Effort(steps=12, block=2_000, renew=4, relearn=1, samples=4)


@dataclass(frozen=True, eq=False)
class Found:
    """flips: sorted codes of the pairs whose edge was added or removed. before, after: the share of wrong answers of
    the imagined victim, as far as the attacker knows and each by its worth, with all networks that learned by then."""

    flips: np.ndarray
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Aims:
    """What the attacker wants to be wrong: the answers for nodes (m,), whose labels (m,) it knows or guesses. worth:
    (m,), how much it gains if a node is taken for something else."""

    nodes: Tensor
    labels: Tensor
    worth: Tensor

    @classmethod
    def known(cls, labels: np.ndarray, nodes: np.ndarray, device: str) -> Aims:
        """For an attacker that knows the labels (n,) of all nodes."""
        place = torch.from_numpy(nodes).to(device)
        return cls(place, torch.from_numpy(labels).to(device)[place], torch.ones(len(nodes), device=device))

    @classmethod
    def guessed(cls, log_prob: Tensor, nodes: np.ndarray) -> Aims:
        """For one that has answers (n, K) on the sound graph: the likeliest classes. If the next likeliest is as likely
        nothing is gained, since the first guess may have been the wrong one."""
        place = torch.from_numpy(nodes).to(log_prob.device)
        best, labels = log_prob[place].exp().topk(2, dim=1)
        return cls(place, labels[:, 0], best[:, 0] - best[:, 1])

    def loss(self, log_prob: Tensor) -> Tensor:
        """The cross-entropy of answers (n, K) at the nodes that are right or wrong by little, each by its worth."""
        right, other = self._right_and_other(log_prob)
        return (self.worth * torch.where(other - right < _SLACK, -right, 0)).sum() / self.worth.sum()

    def reached(self, log_prob: Tensor) -> float:
        """The share of wrong answers, each by its worth."""
        right, other = self._right_and_other(log_prob)
        return float((self.worth * (other > right)).sum() / self.worth.sum())

    def _right_and_other(self, log_prob: Tensor) -> tuple[Tensor, Tensor]:
        """(m,) each: log-probability of the right class, and of the likeliest other one."""
        answers, labels = log_prob.index_select(0, self.nodes), self.labels.unsqueeze(1)
        return answers.gather(1, labels).squeeze(1), answers.scatter(1, labels, -torch.inf).amax(1)


def flipped(edges: np.ndarray, flips: np.ndarray, n: int) -> np.ndarray:
    """(2, E): the edges after these pairs, given as codes, were flipped."""
    return decode(np.setxor1d(encode(edges[0], edges[1], n), flips), n)


def project(p: Tensor, budget: float) -> Tensor:
    """The nearest point with values from 0 to 1 that sum to at most the budget."""
    if float(p.clamp(0, 1).sum()) <= budget:
        return p.clamp(0, 1)
    low, high = p.min() - 1, p.max()
    for _ in range(50):
        middle = (low + high) / 2
        above = (p - middle).clamp(0, 1).sum() > budget
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (p - high).clamp(0, 1)


class Search:
    """An attack on one imagined victim."""

    def __init__(self, answer: Answer, aims: Aims, effort: Effort, seed: int) -> None:
        self.answer, self.aims, self.effort, self.rng = answer, aims, effort, np.random.default_rng(seed)
        self.n, self.edges, self.device = answer.task.num_nodes, answer.task.edges, answer.device
        self.taken = encode(self.edges[0], self.edges[1], self.n)

    def run(self, budget: int) -> Found:
        """The flips that hurt most, at most `budget` of them."""
        effort = self.effort
        # The edges come first, always.
        codes = np.concatenate([self.taken, self._others(self.taken, effort.block)])
        p = torch.zeros(len(codes), dtype=self.answer.dtype, device=self.device)
        learning = {effort.steps * (turn + 1) // (effort.relearn + 1) for turn in range(effort.relearn)}
        for step in range(effort.steps):
            if step in learning:
                self.answer.learn(flipped(self.edges, self._choice(codes, p, budget), self.n))
            elif step and step % effort.renew == 0 and step < _LAST_BLOCK * effort.steps:
                codes, p = self._renewed(codes, p)
            gradient = self._gradient(codes, p, step)
            best = gradient.clamp_min(0).topk(min(budget, len(p))).values.mean().clamp_min(1e-20)
            size = _STEP / (1 + step / _SLOWER) ** 0.5
            p = project(p + size * gradient / best, budget)
        flips = self._choice(codes, p, budget)
        return Found(np.sort(flips), self.wrong(self.edges), self.wrong(flipped(self.edges, flips, self.n)))

    def wrong(self, edges: np.ndarray) -> float:
        """The share of wrong answers of the imagined victim on the graph with these edges."""
        return self.aims.reached(self.answer.on(edges))

    def _gradient(self, codes: np.ndarray, p: Tensor, step: int) -> Tensor:
        """(P,): of the loss, by the extent to which each pair is flipped."""
        p = p.clone().requires_grad_()
        present = (torch.arange(len(p), device=self.device) < len(self.taken)).to(p.dtype)
        graph = PartGraph(
            torch.from_numpy(decode(codes, self.n)).to(self.device), present + p * (1 - 2 * present), self.n
        )
        chance = torch.from_numpy(chance_pairs(self.edges, self.n, step)).to(self.device)
        loss = self.aims.loss(self.answer.log_prob(graph, chance))
        return torch.autograd.grad(loss, p)[0].nan_to_num(0, 0, 0)

    def _renewed(self, codes: np.ndarray, p: Tensor) -> tuple[np.ndarray, Tensor]:
        """All edges and the pairs that are flipped most, up to half of the block, stay; others come."""
        E, extent = len(self.taken), p.cpu().numpy()
        others = E + np.argsort(-extent[E:])[: min(self.effort.block // 2, int((extent[E:] > 0).sum()))]
        kept = np.concatenate([np.arange(E), others])
        fresh = self._others(codes[kept], self.effort.block - len(others))
        extents = torch.cat([p[torch.from_numpy(kept).to(self.device)], p.new_zeros(len(fresh))])
        return np.concatenate([codes[kept], fresh]), extents

    def _others(self, without: np.ndarray, count: int) -> np.ndarray:
        """Codes of up to `count` random pairs that are not among those with the codes `without`."""
        drawn = np.unique(encode(*uniform_pairs(self.n, count + count // 8, self.rng), self.n))
        return self.rng.permutation(np.setdiff1d(drawn, without, assume_unique=True))[:count]

    def _choice(self, codes: np.ndarray, p: Tensor, budget: int) -> np.ndarray:
        """Codes: the pairs that are flipped most, or a random draw, whichever hurts more."""
        extent = p.cpu().numpy().astype(np.float64)
        order = np.argsort(-extent, kind="stable")
        choices = [order[:budget]]
        for _ in range(self.effort.samples):
            drawn = self.rng.random(len(extent)) < extent
            choices.append(order[drawn[order]][:budget])
        choices = [codes[choice[extent[choice] > 0]] for choice in choices]
        return max(choices, key=lambda flips: self.wrong(flipped(self.edges, flips, self.n)))
