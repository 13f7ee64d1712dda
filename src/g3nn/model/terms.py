"""The terms of the training objective and their weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of the loss before weighting, each (R,). All are to be minimised except `entropy`."""

    graph: Tensor
    """- E_q log p(G | X, Y)"""
    cross_entropy: Tensor
    """- E_q log p(Y_U | X)"""
    entropy: Tensor
    """H(q(Y_U | X, G))"""
    prior: Tensor
    """- log p(Y_L | X)"""
    supervised: Tensor
    """- log q(Y_L | X, G)"""
    features: Tensor
    """- log p(X) if the prior models the features too, else zero"""
    own: Tensor
    """an additional loss of the posterior; zero for most"""
    laplacian: Tensor
    """sum over edges of |q_i - q_j|^2; zero without a weight"""
    consistency: Tensor
    """distance between samples of q and their sharpened mean; zero without a weight"""
    distillation: Tensor
    """- E_q log p(Y_U | X) with a gradient for the prior only; zero without a weight"""
    channels: Tensor
    """- log p of what is learned about channels, up to a constant; zero without such channels"""
    evenness: Tensor
    """KL of the mean of q over all nodes from classes that are all alike; zero without a weight"""

    @property
    def kl(self) -> Tensor:
        """KL(q(Y_U | X, G) || p(Y_U | X))"""
        return self.cross_entropy - self.entropy

    @property
    def bound(self) -> Tensor:
        """The evidence lower bound on log p(G, Y_L | X), in nats if the reduction is "sum".

        With a model of the features it bounds log p(G, Y_L, X). With channels G and Y_L are what was seen, and it
        includes the log-probability of what is learned about them.
        """
        return -(self.graph + self.kl + self.prior + self.features + self.channels)

    @cached_property
    def stacked(self) -> Tensor:
        """(number of terms, R), in the order of `TERM_NAMES`."""
        return torch.stack([getattr(self, name) for name in TERM_NAMES])


TERM_NAMES = tuple(field.name for field in fields(Terms))
_FROM_THE_START = ("prior", "supervised", "features", "own", "channels")
"""The terms with full weight from the first epoch; the others depend on answers, which have to be learned first."""

_ON_DEMAND = ("laplacian", "consistency", "distillation", "evenness")
"""The terms that are computed only if some replica gives them a weight."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The weight of each term.

    table: (number of terms, R). rises, on_demand: (number of terms, 1) booleans, the terms whose weights a warm-up
    raises, and those that are computed only on demand.
    """

    table: Tensor
    rises: Tensor
    on_demand: Tensor

    @classmethod
    def of(cls, **weights: Tensor) -> Weights:
        """From the weights (R,) of all terms by name."""
        table = torch.stack([weights[name] for name in TERM_NAMES])
        rises = torch.tensor([[name not in _FROM_THE_START] for name in TERM_NAMES], device=table.device)
        on_demand = torch.tensor([[name in _ON_DEMAND] for name in TERM_NAMES], device=table.device)
        return cls(table, rises, on_demand)

    def total(self, terms: Terms, ramp: float | Tensor = 1.0) -> Tensor:
        """(R,): graph + kl (CE - entropy H) + prior + eta supervised + features + own + terms on demand, weighted.

        ramp: an additional factor for the terms that rise.
        """
        return self.weighed(terms.stacked, ramp)

    def weighed(self, values: Tensor, ramp: float | Tensor = 1.0) -> Tensor:
        """(..., R): the same for values (..., number of terms, R), in the order of `TERM_NAMES`."""
        weighted = self.table * values
        if isinstance(ramp, Tensor) or ramp != 1.0:
            weighted = torch.where(self.rises, ramp * weighted, weighted)
        return weighted.sum(-2)

    def recorded(self, terms: Terms) -> Tensor:
        """(number of terms, R): the terms without gradient. Terms on demand are zero for replicas that give them no
        weight, so that a record does not depend on the other replicas of the stack."""
        values = terms.stacked.detach()
        return torch.where(self.on_demand, values * (self.table != 0), values)

    def select(self, keep: Tensor) -> Weights:
        return replace(self, table=self.table[:, keep])


def mean_of(values: list[Tensor]) -> Tensor:
    """Over samples."""
    return values[0] if len(values) == 1 else torch.stack(values).mean(0)
