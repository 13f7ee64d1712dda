"""The graph model of an audit: a bilinear latent space with labels and degrees, fitted to edges and non-edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from g3nn.audit.coordinates import View
from g3nn.audit.options import AuditOptions
from g3nn.kernels import FreePairs, expected_logistic, gather, pair_dot
from g3nn.replicas import Noise, Replicas, Sizes
from g3nn.training.adam import StackedAdam

_BATCH = 4096
"""Edges in one step; as many non-edges come with them."""

_STEPS_PER_LOOK = 10
"""Updates between two looks at the held-out edges."""

_REPELLING = 4
"""One latent direction in so many starts with a negative weight: there, unlike nodes are linked."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Edges (2, E) to learn from or to be tested on, and the nodes as they look without these edges."""

    traits: Tensor
    sending: Tensor
    receiving: Tensor
    edges: Tensor

    @classmethod
    def of(cls, view: View, edges: np.ndarray, device: torch.device) -> Lesson:
        parts = (view.traits, view.sending, view.receiving, edges)
        return cls(*(torch.from_numpy(part).to(device) for part in parts))

    def rows(self, nodes: Tensor) -> Lesson:
        """The same for some nodes alone, without edges."""
        return Lesson(self.traits[nodes], self.sending[nodes], self.receiving[nodes], self.edges[:, :0])


class PairModel(nn.Module):
    """logit of e_ij for labels (k, l) = sum_h w_h s_ih t_jh + a'd_i + b'd_j + T_kl + c.

    s = U x / |U x| places a node in the latent space, with x its traits; d describes its degree. On an undirected graph
    t = s, a = b and T is symmetric. On a directed one t has a matrix of its own, which starts as U.
    """

    def __init__(self, sizes: Sizes, options: AuditOptions, seed: int) -> None:
        super().__init__()
        replicas, latent, K = Replicas((seed,), "audit"), options.latent, sizes.classes
        self.sizes, self.options = sizes, options
        self.U = replicas.glorot("U", sizes.features, latent)
        self.w = nn.Parameter(torch.full((1, latent), 3.0))
        with torch.no_grad():
            self.w[:, ::_REPELLING] *= -1
        self.a = replicas.zeros(2)
        if sizes.directed:
            self.V = nn.Parameter(self.U.detach().clone())
            self.b = replicas.zeros(2)
        self.T = nn.Parameter(2 * torch.eye(K).unsqueeze(0) - 1)
        self.c = replicas.zeros(1)

    def ends(self, lesson: Lesson, noise: Noise | None) -> tuple[Tensor, Tensor]:
        """left and right, each (1, n, latent + 2), with left_i . right_j the logit less T_kl + c."""
        directed, rate = self.sizes.directed, self.options.latent_dropout
        # Whole coordinates are left out: as good a guard against overfitting as dropout at each node, and far cheaper.
        mask = torch.ones_like(self.U[:, :, :1])
        mask = mask if noise is None else noise.dropout(mask, rate)
        s = normalize(lesson.traits @ (mask * self.U), dim=2)
        t = normalize(lesson.traits @ (mask * self.V), dim=2) if directed else s
        send = (lesson.sending @ self.a.unsqueeze(2)).squeeze(2)
        receive = (lesson.receiving @ (self.b if directed else self.a).unsqueeze(2)).squeeze(2)
        one = torch.ones_like(send)
        weighted = self.w.unsqueeze(1) * s
        left = torch.cat([weighted, torch.stack([send, one], dim=2)], dim=2)
        return left, torch.cat([t, torch.stack([one, receive], dim=2)], dim=2)

    def table(self) -> Tensor:
        """T + c, (1, K, K)."""
        table = self.T if self.sizes.directed else (self.T + self.T.transpose(1, 2)) / 2
        return table + self.c.unsqueeze(2)

    def loss(self, lesson: Lesson, q: Tensor, non_edges: Tensor, noise: Noise | None) -> Tensor:
        """- E_q log p, the mean over the edges plus the mean over as many or more non-edges (2, P)."""
        nodes, place = torch.cat([lesson.edges, non_edges], dim=1).unique(return_inverse=True)
        left, right = self.ends(lesson.rows(nodes), noise)
        beliefs, table = q[nodes].unsqueeze(0), self.table()
        total = left.new_zeros(())
        count = lesson.edges.shape[1]
        for (i, j), present in ((place[:, :count], True), (place[:, count:], False)):
            base = pair_dot(left, right, i, j)
            total -= expected_logistic(gather(beliefs, i), gather(beliefs, j), base, table, present).mean()
        return total


def train(
    model: PairModel, lessons: Sequence[Lesson], test: Lesson, q: Tensor, free: FreePairs, seed: int
) -> PairModel:
    """Fit to the lessons in turn until the loss on the test stays above its lowest; the model of that moment."""
    options = model.options
    parameters = list(model.parameters())
    one = torch.ones(1, device=q.device)
    adam = StackedAdam(parameters, options.lr * one, options.weight_decay * one)
    seeds = torch.tensor([seed], device=q.device)
    # No step uses the noise of number `steps`.
    examined = _non_edges(free, Noise(seeds, options.steps), 2 * min(test.edges.shape[1], 2 * _BATCH))
    lowest, best, best_step = torch.inf, model.state_dict(), 0
    for step in range(1, options.steps + 1):
        noise, lesson = Noise(seeds, step - 1), lessons[step % len(lessons)]
        lesson = _part(lesson, noise)
        adam.zero_grad()
        model.loss(lesson, q, _non_edges(free, noise, lesson.edges.shape[1]), noise).backward()
        adam.step()
        if step % _STEPS_PER_LOOK and step < options.steps:
            continue
        with torch.no_grad():
            loss = model.loss(test, q, examined, None).item()
        if loss < lowest:
            lowest, best_step = loss, step
            best = {name: value.clone() for name, value in model.state_dict().items()}
        elif step - best_step >= options.patience:
            break
    model.load_state_dict(best)
    return model


def _part(lesson: Lesson, noise: Noise) -> Lesson:
    """As many edges as go into one step."""
    count = lesson.edges.shape[1]
    if count <= _BATCH:
        return lesson
    chosen = noise.integers(count, _BATCH)[0]
    return Lesson(lesson.traits, lesson.sending, lesson.receiving, lesson.edges[:, chosen])


def _non_edges(free: FreePairs, noise: Noise, count: int) -> Tensor:
    i, j = free.pairs(noise.integers(len(free), count))
    return torch.cat([i, j])
