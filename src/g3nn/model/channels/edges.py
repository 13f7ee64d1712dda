"""False edges and missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import number
from g3nn.model.channels.base import NEVER, EdgeChannel
from g3nn.model.replicas import Replicas, Scalar, Sizes


@dataclass(frozen=True)
class EdgeOptions:
    false: Scalar = number(
        0.1, "probability of an observed edge where there is truly none", low=0, high=0.99, per_replica=True
    )
    miss: Scalar = number(0.0, "probability that a true edge was not observed", low=0, high=0.99, per_replica=True)


class DoubtfulEdges(EdgeChannel[EdgeOptions]):
    """p(A_ij = 1 | A*_ij = 0) = false and p(A_ij = 0 | A*_ij = 1) = miss, both fixed: a likelihood that is free enough
    explains every edge as a true one, so that they cannot be learned with it.

    With p* the probability of a true edge, given y_i and y_j, p(A_ij = 1) = (1 - miss) p* + false (1 - p*).
    """

    Options = EdgeOptions
    clear: ClassVar[Mapping[str, float]] = {"false": 0.0, "miss": 0.0}

    def __init__(self, sizes: Sizes, replicas: Replicas, options: EdgeOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        shares = torch.stack([replicas.scalar(share) for share in (self.options.false, self.options.miss)], dim=1)
        self.odds = nn.Parameter(shares.logit().clamp_min(NEVER), requires_grad=False)
        """(R, 2): log-odds of false and miss."""

    def log_emission(self, present: bool) -> tuple[Tensor, Tensor]:
        false, miss = self.odds.split(1, dim=1)
        return (logsigmoid(-miss), logsigmoid(false)) if present else (logsigmoid(miss), logsigmoid(-false))
