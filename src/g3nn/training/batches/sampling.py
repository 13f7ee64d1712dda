"""Neighbourhoods sampled in the compressed rows of a graph, with a limit on the neighbours taken in each step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from g3nn.kernels import Pattern, uniform_bits
from g3nn.kernels.compiled import kernel
from g3nn.kernels.sparse import neighbour_rows
from g3nn.model.replicas import Noise


@dataclass(frozen=True, eq=False)
class GraphRows:
    """The neighbours of every node, where directions are ignored. weight: (A,) of the edges; None if all are alike."""

    pattern: Pattern
    weight: Tensor | None

    @classmethod
    def of(cls, edges: np.ndarray, n: int, weights: np.ndarray | None, device: torch.device | str = "cpu") -> GraphRows:
        rows = neighbour_rows(edges, n, weights, loops=False)
        weight = None if rows.values is None else torch.from_numpy(rows.values).to(device)
        return cls(rows.pattern(symmetric=False).to(device), weight)

    @cached_property
    def total(self) -> Tensor:
        """(n,) float64: the sum of the weights of a node's edges."""
        rowptr = self.pattern.rowptr
        if self.weight is None:
            return rowptr.diff().double()
        sums = torch.cat([self.weight.new_zeros(1), self.weight.cumsum(0)])
        return sums[rowptr[1:]] - sums[rowptr[:-1]]


_MULTIPLE = 16
"""Sizes of a neighbourhood are multiples of this: a GPU has one kernel for all of them then, and reads more at once."""

_BELOW_ONE = 1 - 2.0**-50
"""By more than what rounding adds to the product of three numbers."""

_NOWHERE = torch.iinfo(torch.int64).max


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Nodes around some targets, and drawn neighbours of all but the outermost.

    nodes: (m,), the targets first, then what one step adds, and so on; some are repeated to fill up. sizes: how many of
    them are within 0, 1, ... steps. rowptr (rows + 1,), col (S,): the drawn neighbours of a node, as positions in
    `nodes`. entry (S,): their places in the rows of the graph. drawn: how many of them the first 1, 2, ... steps take.
    """

    nodes: Tensor
    sizes: tuple[int, ...]
    rowptr: Tensor
    col: Tensor
    entry: Tensor
    drawn: tuple[int, ...]


class Sampler:
    """Draws neighbourhoods in the rows of a graph, on their device.

    compiled: by loops, as on a CPU, or by operations on tensors, as on a GPU. Both draw the same. The host waits for a
    GPU twice in a step, to know how many are drawn and how many of these are new; to assign a number it would wait too.
    """

    def __init__(self, rows: Pattern, compiled: bool | None = None) -> None:
        self.rows = rows
        n, device = rows.shape[0], rows.rowptr.device
        self._compiled = device.type == "cpu" if compiled is None else compiled
        self._place = torch.full((n,), -1, dtype=torch.int64, device=device)
        self._first = torch.full((0 if self._compiled else n,), _NOWHERE, device=device)

    def around(self, targets: Tensor, more: Tensor, fan_out: tuple[int, ...], noise: Noise) -> Neighbourhood:
        """The neighbourhood of `targets`, in which a node may be repeated, and of those of `more` that are not among
        them. fan_out: the most neighbours that each step takes of a node; 0 for all. noise: of one replica."""
        targets, more = (nodes.to(self.rows.rowptr.device) for nodes in (targets, more))
        self._begin(targets)
        frontier = self._filled(torch.cat([targets, self._numbered(more, targets.numel())[1]]), 0)
        nodes, sizes = [frontier], [frontier.numel()]
        counts: list[Tensor] = []
        cols: list[Tensor] = []
        entries: list[Tensor] = []
        for most in fan_out:
            taken, entry = self._drawn(frontier, most, noise)
            col, fresh = self._numbered(self.rows.col[entry], sizes[-1])
            frontier = self._filled(fresh, sizes[-1])
            nodes.append(frontier)
            sizes.append(sizes[-1] + frontier.numel())
            counts.append(taken)
            cols.append(col)
            entries.append(entry)
        around = torch.cat(nodes)
        self._place.index_fill_(0, around, -1)
        none = around[:0]
        rowptr = torch.cat([around.new_zeros(1), torch.cat([none, *counts]).cumsum(0)])
        drawn = tuple(accumulate(entry.numel() for entry in entries))
        return Neighbourhood(around, tuple(sizes), rowptr, torch.cat([none, *cols]), torch.cat([none, *entries]), drawn)

    @staticmethod
    def _filled(nodes: Tensor, before: int) -> Tensor:
        """With the first node repeated, so that their number is a multiple of `_MULTIPLE`."""
        missing = -(before + nodes.numel()) % _MULTIPLE
        return torch.cat([nodes, nodes[:1].expand(missing)]) if nodes.numel() else nodes

    def positions(self, neighbourhood: Neighbourhood, nodes: Tensor) -> Tensor:
        """Where these nodes stand among the targets of a neighbourhood."""
        targets = neighbourhood.nodes[: neighbourhood.sizes[0]]
        self._begin(targets)
        found = self._place[nodes.to(targets.device)]
        self._place.index_fill_(0, targets, -1)
        return found

    def _begin(self, targets: Tensor) -> None:
        """A node that is repeated stands where it is first."""
        positions = torch.arange(targets.numel(), device=targets.device)
        if self._compiled:
            self._place.numpy()[targets.numpy()[::-1]] = positions.numpy()[::-1]
            return
        # A GPU writes in any order, so the smallest is sought.
        self._first.scatter_reduce_(0, targets, positions, "amin")
        self._place[targets] = self._first[targets]
        self._first.index_fill_(0, targets, _NOWHERE)

    def _drawn(self, frontier: Tensor, most: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """How many neighbours of each node of the frontier are drawn, and which, as places in `col`."""
        begin = self.rows.rowptr[frontier]
        degree = self.rows.rowptr[frontier + 1] - begin
        taken = degree.clamp_max(most) if most else degree
        bits = uniform_bits(noise.seeds, noise.next_counter(), frontier.numel())[0]
        # Where all are taken, rounding must not take one twice; where some are, it must not go past the last.
        some = taken < degree
        uniform = torch.where(some, bits.to(frontier.device).double() * 2.0**-32, 0.0)
        step = torch.where(some, degree.double() / taken * _BELOW_ONE, 1.0)
        starts = torch.cat([taken.new_zeros(1), taken.cumsum(0)])
        count = int(starts[-1])
        if self._compiled:
            entry = np.empty(count, dtype=np.int64)
            graph = (self.rows.rowptr.numpy(), frontier.numpy())
            _draw_neighbours(*graph, uniform.numpy(), step.numpy(), starts.numpy(), entry)
            return taken, torch.from_numpy(entry)
        row = torch.repeat_interleave(taken, output_size=count)
        # One gather of several numbers takes less time than several.
        first, before, shift, each = torch.stack([begin.double(), starts[:-1].double(), uniform, step])[:, row]
        t = torch.arange(count, device=frontier.device) - before
        return taken, (first + ((t + shift) * each).floor()).long()

    def _numbered(self, found: Tensor, known: int) -> tuple[Tensor, Tensor]:
        """The positions of these nodes, and those among them that had none, in order of appearance."""
        found = found.long()
        if self._compiled:
            fresh, local = np.empty(found.numel(), dtype=np.int64), np.empty(found.numel(), dtype=np.int64)
            count = _number_nodes(found.numpy(), self._place.numpy(), known, fresh, local)
            return torch.from_numpy(local), torch.from_numpy(fresh[:count].copy())
        turn = torch.arange(found.numel(), device=found.device)
        self._first.scatter_reduce_(0, found, turn, "amin")
        fresh_nodes = found[(self._place[found] < 0) & (self._first[found] == turn)]
        self._first.index_fill_(0, found, _NOWHERE)
        self._place[fresh_nodes] = known + turn[: fresh_nodes.numel()]
        return self._place[found], fresh_nodes


@kernel(nogil=True)
def _draw_neighbours(
    rowptr: np.ndarray,
    frontier: np.ndarray,
    uniform: np.ndarray,
    step: np.ndarray,
    starts: np.ndarray,
    entry: np.ndarray,
) -> None:
    """entry (starts[-1],): which neighbours of each node of the frontier are drawn, as places in the rows of the graph.

    Of g neighbours, k are drawn: those at floor((t + u) g / k) for t = 0 .. k - 1: each is drawn with
    probability k / g, none twice. step: g / k or a little less, 1 where all are taken.
    """
    for f in range(frontier.size):
        begin = rowptr[frontier[f]]
        for t in range(starts[f + 1] - starts[f]):
            entry[starts[f] + t] = begin + int(np.floor((t + uniform[f]) * step[f]))


@kernel(nogil=True)
def _number_nodes(found: np.ndarray, place: np.ndarray, known: int, fresh: np.ndarray, local: np.ndarray) -> int:
    """local: the positions of the nodes `found`. Those without one get the next, in order of appearance, and are
    written to `fresh`; returns how many. place (n,): the position of each node so far, -1 where there is none."""
    count = 0
    for p in range(found.size):
        node = found[p]
        if place[node] < 0:
            place[node] = known + count
            fresh[count] = node
            count += 1
        local[p] = place[node]
    return count
