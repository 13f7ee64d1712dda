"""A batch in the form in which components see a whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from g3nn.base.errors import G3NNError
from g3nn.model.inputs import Inputs
from g3nn.training.batches.hops import SampledHop


def _of_the_whole(name: str) -> Any:
    def missing(self: Sampled) -> Any:
        raise G3NNError(f"a batch has no `{name}`: this part needs the whole graph; train without `batch`")

    return property(missing)


@dataclass(frozen=True, eq=False)
class Sampled(Inputs):
    """Some nodes of a graph, with what a network needs to answer for them.

    Fields are those of `Inputs` for these nodes, numbered anew. wide: the same with the nodes around them, on which the
    posterior computes. counted: so many of them, the first, count in the terms of nodes; the others are ends of pairs.
    repeats: how many nodes of L and of U each of those counted stands for. of_nodes: degrees of these nodes.
    """

    wide: Sampled | None = None
    steps: tuple[SampledHop, ...] = ()
    counted: int | None = None
    repeats: tuple[float, float] = (1.0, 1.0)
    of_nodes: Tensor | None = None
    log_of_nodes: Tensor | None = None

    @property
    def n(self) -> int:
        return int(self.observed.shape[0])

    @property
    def heard(self) -> Inputs:
        return self if self.wide is None else self.wide

    def hops(self, count: int) -> tuple[SampledHop, ...]:
        if count != len(self.steps):
            raise G3NNError(f"the neighbourhood has {len(self.steps)} steps, and the network takes {count}")
        return self.steps

    @property
    def has_edges(self) -> bool:
        return self.task.num_edges > 0

    @cached_property
    def degrees(self) -> Tensor:
        assert self.of_nodes is not None
        return self.of_nodes

    @cached_property
    def log_degrees(self) -> Tensor:
        assert self.log_of_nodes is not None
        return self.log_of_nodes

    @cached_property
    def isolated(self) -> Tensor:
        return self.degrees.sum(1, keepdim=True) == 0

    @cached_property
    def labelled(self) -> Tensor:
        mask = torch.zeros(self.n, 1, dtype=torch.bool, device=self.device)
        mask[self.train] = True
        return mask

    adjacency = _of_the_whole("adjacency")
    neighbour_mean = _of_the_whole("neighbour_mean")
    neighbours = _of_the_whole("neighbours")
    log_weights = _of_the_whole("log_weights")
    edge_pattern = _of_the_whole("edge_pattern")
    arc_means = _of_the_whole("arc_means")
    mean_features = _of_the_whole("mean_features")
    arcs = _of_the_whole("arcs")
    arc_weight = _of_the_whole("arc_weight")
