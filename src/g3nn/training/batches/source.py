"""Batches of a task: labelled and unlabelled nodes, edges and non-edges, with the neighbourhoods that answer for them.

The mean of what the objective gives over batches is what it gives for the whole graph, if every neighbour is drawn.
With fewer, each step over the graph is right on average, and a network, which is not linear, nearly so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.mapped import Unchanged, forget
from g3nn.base.parse import Matrix
from g3nn.graph.outcomes import Outcome, Targets
from g3nn.graph.task import NodeTask
from g3nn.kernels import FreePairs, Pattern
from g3nn.kernels.sparse import SparseMatrix, edge_rows
from g3nn.model.inputs import Features, centred_log_degrees, degree_table
from g3nn.model.likelihoods import Pairs
from g3nn.model.pairs import MISSING, OBSERVED
from g3nn.model.replicas import Noise
from g3nn.training.batches.sampled import Sampled, SampledHop

if TYPE_CHECKING:
    from g3nn.training.batches.sampling import Neighbourhood

T = TypeVar("T")


def drawn_ahead(draw: Callable[[int], T], count: int, device: torch.device) -> Iterator[T]:
    """draw(0), draw(1), ... To draw a batch on a GPU its size must be known, and so the host waits for the GPU. On a
    stream of its own it waits for the drawing alone, and the GPU goes on computing."""
    if device.type != "cuda":
        yield from map(draw, range(count))
        return
    computing, drawing = torch.cuda.current_stream(device), _drawing_stream(device)
    before = computing.record_event()
    for turn in range(count):
        # The batch before the last one is gone: its memory is reused once no computation needs it.
        drawing.wait_event(before)
        before = computing.record_event()
        with torch.cuda.stream(drawing):
            batch = draw(turn)
        computing.wait_stream(drawing)
        yield batch


@cache
def _drawing_stream(device: torch.device) -> torch.cuda.Stream:
    """Always the same one, since freed memory belongs to its stream. What the host waits for goes before the rest."""
    return torch.cuda.Stream(device, priority=-1)


_AT_ONCE = 4096
"""Rows that are read of a file before its pages are given back: the system maps many pages around each."""


class FeatureRows:
    """X (n, d), of which rows are taken."""

    def __init__(self, matrix: Matrix, device: torch.device, dtype: torch.dtype, on_device: bool) -> None:
        self._device, self._dtype = device, dtype
        self._file = Unchanged(matrix) if isinstance(matrix, np.memmap) else None
        self._rows: Matrix = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
        if on_device and not sp.issparse(matrix) and self._file is None:
            self._rows = torch.from_numpy(matrix).to(device, dtype)

    def at(self, nodes: Tensor) -> Features:
        if isinstance(self._rows, Tensor):
            return Features(self._rows[nodes.to(self._rows.device)])
        places = nodes.cpu().numpy()
        if sp.issparse(self._rows):
            return Features(SparseMatrix.from_scipy(self._rows[places]).to(self._device, self._dtype))
        rows = self._rows[places] if self._file is None else self._read(self._file, places)
        return Features(torch.from_numpy(rows).to(self._device, self._dtype))

    def _read(self, file: Unchanged, places: np.ndarray) -> np.ndarray:
        """In the order of the file, so that it is read forwards."""
        file.check()
        rows = np.empty((len(places), self._rows.shape[1]), dtype=self._rows.dtype)
        order = np.argsort(places, kind="stable")
        for start in range(0, len(order), _AT_ONCE):
            some = order[start : start + _AT_ONCE]
            rows[some] = self._rows[places[some]]
            forget(self._rows)
        return rows


@dataclass(frozen=True, eq=False)
class BatchPairs:
    """`DrawsPairs` with pairs that were drawn beforehand."""

    edges: Pairs
    non_edges: Pairs
    num_edges: int
    num_non_edges: int

    def observed(self, noise: Noise, count: int) -> Pairs:
        return self.edges

    def absent(self, noise: Noise, count: int, how: str) -> Pairs:
        return self.non_edges


_NONE = torch.zeros(0, dtype=torch.int64)
NO_PAIRS = BatchPairs(Pairs(_NONE, _NONE, present=True), Pairs(_NONE, _NONE, present=False), 0, 0)


class PairDraws:
    """Draws edges and non-edges of a task by their nodes.

    isolated_nodes: if "missing", pairs with an isolated node do not count as non-edges.
    """

    def __init__(self, task: NodeTask, rows: Pattern, isolated_nodes: str) -> None:
        device = rows.rowptr.device
        self._edges = torch.from_numpy(task.edges).to(device)
        self._weights = None if task.weights is None else torch.from_numpy(task.weights).to(device)
        arcs = edge_rows(task.edges, task.num_nodes)[0].pattern(symmetric=False).to(device) if task.directed else rows
        self._free_pairs = FreePairs(arcs)
        alone = task.isolated if isolated_nodes == MISSING else np.zeros(0, dtype=bool)
        self._nodes = torch.from_numpy(np.flatnonzero(~alone)).to(device) if alone.any() else None
        self._size = task.num_nodes if self._nodes is None else self._nodes.numel()
        self._ordered = self._size * (self._size - 1)
        free = self._ordered - (1 if task.directed else 2) * task.num_edges
        self.num_edges, self.num_non_edges = task.num_edges, free if task.directed else free // 2
        self._free = free

    def edges(self, noise: Noise, count: int) -> tuple[Tensor, Tensor | None]:
        """(2, count) nodes, and the weights of these edges."""
        drawn = noise.integers(self.num_edges, count)[0].to(self._edges.device)
        return self._edges[:, drawn], None if self._weights is None else self._weights[drawn]

    def non_edges(self, noise: Noise, count: int, how: str) -> tuple[Tensor, Tensor | None]:
        """(2, count) nodes of pairs, and their weights: a pair that is an edge counts as none, the others for it too.
        how: "uniform" takes every pair as a non-edge."""
        number = noise.integers(self._ordered, count)[0].to(self._edges.device)
        i, j = number // (self._size - 1), number % (self._size - 1)
        j = j + (j >= i)
        if self._nodes is not None:
            i, j = self._nodes[i], self._nodes[j]
        if how == "uniform":
            return torch.stack([i, j]), None
        return torch.stack([i, j]), self._free_pairs.contains(i, j) * (self._ordered / max(self._free, 1))


class BatchSource:
    """Where batches of a task come from. The graph and dense features are on the device if `on_device`, and batches
    are drawn there; otherwise they stay in memory, or in the file that is mapped, and batches travel.

    fan_out: the most neighbours that each step takes of a node, the step nearest to the targets first; 0 for all.
    """

    def __init__(
        self,
        task: NodeTask,
        outcome: Outcome,
        fan_out: tuple[int, ...],
        device: torch.device,
        *,
        on_device: bool = True,
        isolated_nodes: str = OBSERVED,
        label_weights: np.ndarray | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.task, self.outcome, self.device, self.dtype = task, outcome, device, dtype
        self.fan_out = fan_out
        self.place = place = device if on_device else torch.device("cpu")
        from g3nn.training.batches.sampling import GraphRows, Sampler  # numba takes long to import.

        self.rows = GraphRows.of(task.edges, task.num_nodes, task.weights, place)
        self._sampler = Sampler(self.rows.pattern)
        self._x = FeatureRows(task.features, device, dtype, on_device)
        self._draws = PairDraws(task, self.rows.pattern, isolated_nodes) if task.num_edges else None
        self._targets = outcome.targets(task.labels, task.train, place, dtype)
        self._unlabelled = torch.from_numpy(task.unlabelled).to(place)
        self._degrees = torch.from_numpy(degree_table(task)).to(place, dtype)
        self._log_degrees = centred_log_degrees(self._degrees).to(dtype)
        self._beliefs = None if task.beliefs is None else torch.from_numpy(task.beliefs).to(place, dtype)
        self._label_weights = None if label_weights is None else torch.from_numpy(label_weights).to(place, dtype)

    def labelled(self, nodes: Tensor, noise: Noise) -> Sampled:
        """These training nodes alone, for a model that is trained on labels only."""
        return self._sampled(nodes.to(self.place), nodes[:0], len(nodes), noise)[0]

    def batch(self, labelled: Tensor, size: int, noise: Noise, negatives: str) -> tuple[Sampled, BatchPairs]:
        """These training nodes, with `size` unlabelled nodes, edges and non-edges. noise: of one replica."""
        labelled = labelled.to(self.place)
        nodes = torch.cat([labelled, self._free_nodes(size, noise)])
        if self._draws is None:
            return self._sampled(nodes, nodes[:0], len(labelled), noise)[0], NO_PAIRS
        edges, weights = self._draws.edges(noise, size)
        others, other_weights = self._draws.non_edges(noise, size, negatives)
        inputs, near = self._sampled(nodes, torch.cat([edges.flatten(), others.flatten()]), len(labelled), noise)
        ends = self._sampler.positions(near, torch.cat([edges, others], dim=1)).to(self.device).split(size, dim=1)
        counts = self._draws.num_edges, self._draws.num_non_edges
        weights, other_weights = (
            None if weight is None else weight.to(self.device, self.dtype) for weight in (weights, other_weights)
        )
        (i, j), (k, m) = ends
        linked = Pairs(i, j, present=True, weight=weights, repeats=counts[0] / max(size, 1))
        apart = Pairs(k, m, present=False, weight=other_weights, repeats=counts[1] / max(size, 1))
        return inputs, BatchPairs(linked, apart, *counts)

    @cached_property
    def validation(self) -> Sampled:
        """The validation nodes and their labels, in the order of the task, to judge answers by."""
        nodes = torch.from_numpy(self.task.val)
        noise = Noise(torch.zeros(1, dtype=torch.int64, device=nodes.device), 0)
        inputs, _ = self._sampled(nodes[:0], nodes, 0, noise, fan_out=())
        return replace(inputs, val=torch.arange(len(nodes), device=self.device))

    def _free_nodes(self, size: int, noise: Noise) -> Tensor:
        """`size` nodes of U, uniform and independent; none if U is empty."""
        if self._unlabelled.numel() == 0:
            return self._unlabelled
        return self._unlabelled[noise.integers(self._unlabelled.numel(), size)[0]]

    def around(self, nodes: Tensor, noise: Noise) -> Sampled:
        """These nodes alone, to be predicted; none of them counts as labelled or not."""
        inputs, _ = self._sampled(nodes[:0], nodes, 0, noise)
        return inputs

    def _sampled(
        self, nodes: Tensor, more: Tensor, labelled: int, noise: Noise, fan_out: tuple[int, ...] | None = None
    ) -> tuple[Sampled, Neighbourhood]:
        near = self._sampler.around(nodes, more, self.fan_out if fan_out is None else fan_out, noise)
        inner = near.nodes[: near.sizes[0]]
        targets = self._targets_at(inner, labelled)
        steps = SampledHop.steps(near, self.rows, self.device, self.dtype)
        x = self._x.at(near.nodes)
        free = torch.arange(labelled, len(nodes), device=self.device)
        near_inputs = Sampled(
            self.task,
            x.first(len(inner)),
            free[:0],
            free,
            self.outcome,
            targets,
            None if self._beliefs is None else self._beliefs[inner].to(self.device),
            degrees=self._degrees[inner].to(self.device),
            log_degrees=self._log_degrees[inner].to(self.device),
            counted=len(nodes),
            repeats=(len(self.task.train) / max(labelled, 1), self._unlabelled.numel() / max(len(free), 1)),
        )
        wide = replace(near_inputs, x=x, steps=steps, counted=None)
        return replace(near_inputs, wide=wide), near

    def _targets_at(self, nodes: Tensor, labelled: int) -> Targets:
        """The labels of these nodes. Ends of pairs have theirs where training sees it; only the first nodes count."""
        whole = self._targets
        rows = [part[nodes].to(self.device) for part in (whole.values, whole.known, whole.observed)]
        weight = None if self._label_weights is None else self._label_weights[nodes[:labelled]].to(self.device)
        train = torch.arange(labelled, device=self.device)
        return Targets(rows[0], rows[1], rows[2], train, whole.scale_at(nodes).to(self.device), weight)
