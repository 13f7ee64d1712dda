"""A batch in the form in which components see a whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from g3nn.base.errors import G3NNError
from g3nn.graph.task import NodeTask
from g3nn.kernels import Pattern
from g3nn.kernels.sparse import SparseMatrix
from g3nn.model.inputs import Inputs, Rowwise

if TYPE_CHECKING:
    from g3nn.training.batches.sampling import GraphRows, Neighbourhood


@dataclass(frozen=True, eq=False)
class SampledHop:
    """One step, after which only the first nodes remain.

    kept: how many remain, of `width`. rowptr (kept + 1,), col (S,): their drawn neighbours. degree (kept,): how many
    they have in all. weight (S,): of the edges drawn. total (width,): the sum of the weights of a node's edges.
    """

    kept: int
    width: int
    rowptr: Tensor
    col: Tensor
    degree: Tensor
    weight: Tensor
    total: Tensor

    @classmethod
    def steps(
        cls, near: Neighbourhood, rows: GraphRows, device: torch.device, dtype: torch.dtype
    ) -> tuple[SampledHop, ...]:
        """In the order in which a network takes them: the widest first."""
        nodes = near.nodes
        degree = rows.pattern.rowptr[nodes + 1] - rows.pattern.rowptr[nodes]
        weight = torch.ones_like(near.entry, dtype=dtype) if rows.weight is None else rows.weight[near.entry].to(dtype)
        rowptr, col, degree, weight, total = (
            part.to(device) for part in (near.rowptr, near.col, degree, weight, rows.total[nodes].to(dtype))
        )
        found = []
        for kept, width, count in zip(near.sizes[:-1], near.sizes[1:], near.drawn, strict=True):
            own = (rowptr[: kept + 1], col[:count], degree[:kept], weight[:count], total[:width])
            found.append(cls(kept, width, *own))
        return tuple(reversed(found))

    def own(self, x: Rowwise) -> Rowwise:
        """The rows of the nodes that remain."""
        if isinstance(x, Tensor):
            return x[:, : self.kept]  # type: ignore[return-value]
        return x.first(self.kept)

    @cached_property
    def _row(self) -> Tensor:
        return torch.repeat_interleave(self.rowptr.diff(), output_size=self.col.numel())

    @cached_property
    def _standing_for(self) -> Tensor:
        """(S,): the weight of an entry, as many times as there are neighbours for each that was drawn."""
        drawn = self.rowptr.diff()
        return self.weight * (self.degree / drawn.clamp_min(1)).to(self.weight.dtype)[self._row]

    @cached_property
    def _looped(self) -> tuple[Tensor, Tensor, Tensor]:
        """The rows with every node as the first of its own neighbours, and where the others are."""
        here = torch.arange(self.kept, device=self.col.device)
        rowptr = self.rowptr + torch.arange(self.kept + 1, device=self.col.device)
        others = torch.arange(self.col.numel(), device=self.col.device) + self._row + 1
        col = self.col.new_empty(self.col.numel() + self.kept)
        col[rowptr[:-1]], col[others] = here, self.col
        return rowptr, col, others

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """Rows of D^-1/2 (A + I) D^-1/2, right on average."""
        rowptr, col, others = self._looped
        scale = (self.total + 1).rsqrt()
        values = scale.new_empty(col.numel())
        values[rowptr[:-1]] = scale[: self.kept].square()
        values[others] = self._standing_for * scale[self._row] * scale[self.col]
        return SparseMatrix(Pattern.from_rows(rowptr, col, self.width), values.unsqueeze(0))

    @cached_property
    def neighbour_mean(self) -> SparseMatrix:
        """Rows of D^-1 A, right on average."""
        values = self._standing_for / self.total[self._row]
        return SparseMatrix(Pattern.from_rows(self.rowptr, self.col, self.width), values.unsqueeze(0))

    @cached_property
    def neighbours(self) -> Pattern:
        """Attention runs over a square: nodes that do not remain attend only to themselves."""
        rowptr, col, _ = self._looped
        rest = torch.arange(self.kept, self.width, device=col.device)
        ends = rowptr[-1] + 1 + torch.arange(self.width - self.kept, device=col.device)
        return Pattern.from_rows(torch.cat([rowptr, ends]), torch.cat([col, rest]), self.width)

    @cached_property
    def log_weights(self) -> Tensor:
        _, col, others = self._looped
        values = self.weight.new_zeros(col.numel() + self.width - self.kept)
        values[others] = self._standing_for.log()
        return values


@dataclass(frozen=True, eq=False, kw_only=True)
class Sampled(Inputs):
    """Some nodes of a graph, with what a network needs to answer for them.

    Fields are those of `Inputs` for these nodes, numbered anew. wide: the same with the nodes around them, on which the
    posterior computes. The nodes that do not count are ends of pairs.
    """

    degrees: Tensor
    log_degrees: Tensor
    wide: Sampled | None = None
    steps: tuple[SampledHop, ...] = ()

    @property
    def graph(self) -> NodeTask:
        raise G3NNError("a batch has no graph of its own: this part needs the whole graph; train without `batch`")

    @property
    def heard(self) -> Inputs:
        return self if self.wide is None else self.wide

    def hops(self, count: int) -> tuple[SampledHop, ...]:
        if count != len(self.steps):
            raise G3NNError(f"the neighbourhood has {len(self.steps)} steps, and the network takes {count}")
        return self.steps

    @cached_property
    def isolated(self) -> Tensor:
        return self.degrees.sum(1, keepdim=True) == 0
