"""Labels that were mistaken for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import number
from g3nn.graph.outcomes import Classes, Tags, Targets
from g3nn.graph.outcomes.classes import TEMPERATURE_STEPS
from g3nn.model.channels.base import NEVER, LabelChannel
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class FlipOptions:
    wrong: Scalar = number(0.1, "expected share of wrong labels", low=0, high=0.99, per_replica=True)
    strength: Scalar = number(
        10.0, "as how many labels of each class the expected share counts", low=0, per_replica=True
    )


class Flips(LabelChannel[FlipOptions]):
    """p(s_i = l | y_i = k) = T_kl, learned: a softmax that starts with 1 - wrong on the diagonal and the rest equal.
    Every tag has a table of its own, 2 x 2.

    log Z_i = log sum_k q_i(k) T_k,s_i is the forward-corrected loss, and b_i(k) = q_i(k) T_k,s_i / Z_i is what a
    labelled node probably is. Rows of T have a Dirichlet prior whose mean is the start: - log p(T) is `strength` times
    KL(start || T), up to a constant, in the coordinates of the softmax. Given the beliefs, T_kl is best in proportion
    to sum_i b_i(k) [s_i = l] + strength start_kl.
    """

    Options = FlipOptions
    outcomes = (Classes, Tags)
    clear: ClassVar[Mapping[str, float]] = {"wrong": 0.0}

    def __init__(self, sizes: Sizes, replicas: Replicas, options: FlipOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        columns, values = (sizes.classes, 2) if self._has_tags else (1, sizes.classes)
        wrong, same = replicas.scalar(self.options.wrong).view(-1, 1, 1, 1), torch.eye(values)
        start = ((1 - wrong) * same + wrong / (values - 1) * (1 - same)).log().clamp_min(NEVER)
        self.start = nn.Parameter(start.repeat(1, columns, 1, 1), requires_grad=False)
        """(R, C, V, V): the logarithm of the start, for C columns with V values. C is 1 for classes."""
        self.change = replicas.zeros(columns, values, values)
        self.strength = nn.Parameter(replicas.scalar(self.options.strength).unsqueeze(1), requires_grad=False)

    @property
    def _has_tags(self) -> bool:
        return self.outcome.flags

    def table(self) -> Tensor:
        """(R, K, K): T; of tags (R, T, 2, 2)."""
        table = self._log_table().exp()
        return table if self._has_tags else table.squeeze(1)

    def _log_table(self) -> Tensor:
        return (self.start + self.change).log_softmax(3)

    def log_prior(self) -> Tensor:
        start = self.start.log_softmax(3)
        return -self.strength.squeeze(1) * (start.exp() * (start - self._log_table())).sum((1, 2, 3))

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return (self._log_values(answer) + self._log_seen(values)).logsumexp(3)

    def log_joint(self, q: Tensor, p: Tensor, values: Tensor) -> Tensor:
        seen = self._log_seen(values)
        log_b = (self._log_values(q) + seen).log_softmax(3)
        return (log_b.exp() * (seen + self._log_values(p) - log_b)).sum(3)

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        b = (self._log_values(answer) + self._log_seen(targets.label)).softmax(3)
        return b[..., 1] if self._has_tags else b.squeeze(2)

    def calibrated_loss(self, answer: Tensor, targets: Targets, nodes: Tensor) -> Tensor:
        """At the best of some temperatures of q, as `Classes` does."""
        if self._has_tags:
            return super().calibrated_loss(answer, targets, nodes)
        rows, steps = answer.index_select(1, nodes), torch.linspace(-1.0, 1.0, TEMPERATURE_STEPS).tolist()
        tempered = (self.outcome.tempered(rows, 10.0**step) for step in steps)
        return torch.stack([self._loss(one, targets, nodes) for one in tempered]).amin(0)

    def _log_values(self, answer: Tensor) -> Tensor:
        """(R, m, C, V): the log-probability of each value."""
        if not self._has_tags:
            return answer.unsqueeze(2)
        return torch.stack([logsigmoid(-answer), logsigmoid(answer)], dim=3)

    def _log_seen(self, values: Tensor) -> Tensor:
        """(R, m, C, V): log T_k,s for each true value k; zero where s is no value."""
        log_table = self._log_table()
        each = torch.arange(log_table.shape[3], device=values.device)
        seen = (values.reshape(len(values), log_table.shape[1], 1) == each).to(log_table.dtype)
        return torch.einsum("rckl,mcl->rmck", log_table, seen)
