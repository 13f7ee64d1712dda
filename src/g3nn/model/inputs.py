"""A task in the form that components compute with: tensors on one device, and sparse matrices built once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.base.mapped import blocks
from g3nn.graph.outcomes import Outcome, Targets
from g3nn.graph.task import NodeTask
from g3nn.kernels import Pattern, dropped_linear
from g3nn.kernels.sparse import (
    SparseMatrix,
    arc_mean,
    edge_rows,
    neighbour_mean,
    neighbour_rows,
    normalised_adjacency,
)
from g3nn.model.marks import EdgeMarks
from g3nn.model.replicas import Noise, optional_draw

Made = TypeVar("Made")


Part = tuple[NodeTask, np.ndarray | None]
"""A task with training and validation nodes of its own, and (n,) how often the label of each node counts; None: once
each."""


class LabelsApartError(Exception):
    """A network asks for the labels that training may see, but each replica has its own."""


@dataclass(frozen=True, eq=False)
class MappedRows:
    """X (n, d) in a file. It is read as a whole only where training needs it so, and otherwise in blocks."""

    matrix: np.memmap
    device: torch.device
    dtype: torch.dtype

    @cached_property
    def whole(self) -> Tensor:
        return torch.from_numpy(np.array(self.matrix)).to(self.device, self.dtype)

    def matmul(self, weight: Tensor) -> Tensor:
        """(R, n, h) = X W_r"""
        out = weight.new_empty(weight.shape[0], len(self.matrix), weight.shape[2])
        for rows, block in blocks(self.matrix):
            out[:, rows] = torch.matmul(torch.from_numpy(block).to(self.device, self.dtype), weight)
        return out


@dataclass(frozen=True, eq=False)
class Features:
    """X (n, d), sparse, dense or in a file, and its product with the stacked weights of a first layer."""

    matrix: SparseMatrix | Tensor | MappedRows

    def matmul(self, weight: Tensor, noise: Noise | None = None, rate: float = 0.0) -> Tensor:
        """(R, n, h) = dropout(X) W_r for weight (R, d, h). With noise, stored values are dropped."""
        draw = optional_draw(noise, rate)
        if isinstance(self.matrix, SparseMatrix):
            return self.matrix.matmul(weight, draw)
        if isinstance(self.matrix, MappedRows) and draw is None and not torch.is_grad_enabled():
            return self.matrix.matmul(weight)
        return torch.matmul(self._tensor, weight) if draw is None else dropped_linear(self._tensor, weight, draw)

    def first(self, count: int) -> Features:
        """The features of the first nodes."""
        if isinstance(self.matrix, SparseMatrix):
            return Features(self.matrix.first(count))
        return Features(self._tensor[:count])

    @property
    def _tensor(self) -> Tensor:
        """Of features that are not sparse."""
        assert not isinstance(self.matrix, SparseMatrix)
        return self.matrix.whole if isinstance(self.matrix, MappedRows) else self.matrix

    def map(self, change: Callable[[Tensor], Tensor]) -> Features:
        """Apply a function that maps 0 to 0 to every value."""
        if isinstance(self.matrix, SparseMatrix):
            return Features(replace(self.matrix, stored=change(self.matrix.values)))
        return Features(change(self._tensor))

    def dense(self) -> Tensor:
        """X as one dense tensor (n, d), for modules that cannot handle sparse features."""
        if not isinstance(self.matrix, SparseMatrix):
            return self._tensor
        n, d = self.matrix.shape
        rows, cols = self.matrix.pattern.row.long(), self.matrix.pattern.col.long()
        return self.matrix.values.new_zeros(n, d).index_put((rows, cols), self.matrix.values[0])


Rowwise = TypeVar("Rowwise", Tensor, Features)
"""A row for each node: features, or (R, n, h)."""


class Hop(Protocol):
    """One step over a graph: matrices whose rows are the nodes that remain, and whose columns their neighbourhoods."""

    @property
    def adjacency(self) -> SparseMatrix: ...

    @property
    def neighbour_mean(self) -> SparseMatrix: ...

    @property
    def neighbours(self) -> Pattern: ...

    @property
    def log_weights(self) -> Tensor | None: ...

    def own(self, x: Rowwise) -> Rowwise:
        """The rows of the nodes that remain."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """X, G and Y_L of one task.

    val, unlabelled: node numbers. targets: the labels, of which training sees some. beliefs: (n, width), those of the
    task. counted: the number of nodes, the first, that count in the terms of nodes; None for all. repeats: how many
    nodes each node of L and of U stands for. apart: one for each replica, where each learns from labels of its own;
    there are then none that all may see.
    """

    task: NodeTask
    x: Features
    val: Tensor
    unlabelled: Tensor
    outcome: Outcome
    targets: Targets
    beliefs: Tensor | None = None
    counted: int | None = None
    repeats: tuple[float, float] = (1.0, 1.0)
    apart: tuple[Inputs, ...] = ()

    @classmethod
    def of(
        cls,
        task: NodeTask,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        outcome: Outcome | None = None,
    ) -> Inputs:
        """A task as tensors. outcome: that of a trained model, with its unit; by default it follows from the labels."""
        if sp.issparse(task.features):
            features = Features(SparseMatrix.from_scipy(task.features).to(device, dtype))
        elif isinstance(task.features, np.memmap):
            features = Features(MappedRows(task.features, torch.device(device), dtype))
        else:
            features = Features(torch.from_numpy(task.features).to(device, dtype))
        outcome = outcome or task.outcome_model()
        targets = outcome.targets(task.labels, task.train, device, dtype)
        val, unlabelled = (torch.from_numpy(nodes).to(device) for nodes in (task.val, task.unlabelled))
        return cls(task, features, val, unlabelled, outcome, targets, _tensor(task.beliefs, device, dtype))

    def with_labels_apart(self, parts: Sequence[Part]) -> Inputs:
        """The same graph for replicas of which each has the training and validation nodes of its own part."""
        every = torch.arange(self.n, device=self.device)
        hidden = replace(self.targets, observed=torch.zeros_like(self.targets.observed), train=every[:0])
        own = tuple(self._with_labels(*part) for part in parts)
        return replace(self, targets=hidden, val=every[:0], unlabelled=every, apart=own)

    def _with_labels(self, task: NodeTask, weights: np.ndarray | None) -> Inputs:
        targets = self.outcome.targets(task.labels, task.train, self.device, self.dtype)
        val, unlabelled = (torch.from_numpy(nodes).to(self.device) for nodes in (task.val, task.unlabelled))
        return replace(self, task=task, val=val, unlabelled=unlabelled, targets=targets).weighted(weights)

    def weighted(self, weights: np.ndarray | None) -> Inputs:
        """With (n,) how often the label of each node counts in training; None: once each."""
        weight = None if weights is None else _tensor(weights[self.task.train], self.device, self.dtype)
        return replace(self, targets=replace(self.targets, weight=weight))

    def of_replicas(self, places: Sequence[int]) -> Inputs:
        """The inputs for some of the replicas, with all that was computed on first use."""
        if not self.apart:
            return self
        found = copy.copy(self)
        found.__dict__["apart"] = tuple(self.apart[place] for place in places)
        return found

    @property
    def labels_of_each(self) -> tuple[Inputs, ...]:
        """What each replica learns from, or what all do."""
        return self.apart or (self,)

    def for_each(self, what: Callable[..., tuple[Tensor, ...]], *answers: Tensor) -> tuple[Tensor, ...]:
        """What follows from labels and answers (R, ...), for all replicas at once or for each from its own labels."""
        if not self.apart:
            return what(self, *answers)
        each = zip(*(one.split(1) for one in answers), strict=True)
        found = [what(own, *parts) for own, parts in zip(self.apart, each, strict=True)]
        return tuple(torch.cat(parts) for parts in zip(*found, strict=True))

    def without_edges_of(self, nodes: np.ndarray) -> Inputs:
        """The same nodes, in the graph without the edges of `nodes`."""
        return replace(self, task=self.task.without_edges_of(nodes))

    @property
    def graph(self) -> NodeTask:
        """The task, where its edges are used. A batch of nodes has no graph of its own."""
        return self.task

    @property
    def edges(self) -> Tensor:
        """(2, E) on the CPU, each undirected pair once, or arcs."""
        return torch.from_numpy(self.graph.edges)

    @cached_property
    def edge_weight(self) -> Tensor | None:
        """(E,): as how many edges each one counts; None if all are alike."""
        return _tensor(self.graph.weights, self.device, self.dtype)

    @cached_property
    def marks(self) -> EdgeMarks | None:
        """What columns say about edges; None: nothing."""
        return None if self.task.marks is None else EdgeMarks.of(self.task.marks, self.device, self.dtype)

    @property
    def labels(self) -> Tensor:
        return self.targets.values

    @property
    def train(self) -> Tensor:
        """The nodes of L."""
        self._check_shared()
        return self.targets.train

    @cached_property
    def observed(self) -> Tensor:
        """(n, K): one-hot rows for labelled nodes and zero rows for the others; with another outcome (n, T), its values
        as inputs of a network."""
        self._check_shared()
        return self.outcome.as_inputs(self.targets)

    def _check_shared(self) -> None:
        if self.apart:
            raise LabelsApartError("a network that looks at labels is trained for each part of them")

    @property
    def heard(self) -> Inputs:
        """What the posterior computes with: these nodes and those in their neighbourhoods."""
        return self

    def hops(self, count: int) -> tuple[Hop, ...]:
        """So many steps over the graph, in the order in which a network takes them."""
        return (self,) * count

    def own(self, x: Rowwise) -> Rowwise:
        """Of a whole graph all nodes remain."""
        return x

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, computed on first use: something about this graph that one component needs."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    @property
    def n(self) -> int:
        return len(self.targets.values)

    @cached_property
    def presence(self) -> Features:
        """(n, d): 1 if a feature is positive, else 0."""
        return self.x.map(lambda value: (value > 0).to(self.dtype))

    @cached_property
    def squares(self) -> Features:
        """(n, d): x^2."""
        return self.x.map(torch.square)

    @property
    def device(self) -> torch.device:
        return self.targets.scale.device

    @property
    def dtype(self) -> torch.dtype:
        return self.targets.scale.dtype

    def sparse(self, matrix: sp.csr_array) -> SparseMatrix:
        return SparseMatrix.from_scipy(matrix).to(self.device, self.dtype)

    @cached_property
    def labelled(self) -> Tensor:
        """(n, 1) booleans: the nodes of L."""
        self._check_shared()
        mask = torch.zeros(self.n, 1, dtype=torch.bool, device=self.device)
        mask[self.train] = True
        return mask

    @cached_property
    def isolated(self) -> Tensor:
        """(n, 1) booleans: the nodes without edges."""
        return torch.from_numpy(self.graph.isolated).unsqueeze(1).to(self.device)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """D^-1/2 (A + I) D^-1/2, the propagation matrix of GCN and its relatives."""
        if self.graph.weights is None:
            return SparseMatrix.normalised(self.neighbours, self.dtype)
        return self.sparse(normalised_adjacency(self.graph.edges, self.n, self.graph.weights))

    def mixed_orders(self, x: Tensor, order: int) -> Tensor:
        """1 / (T + 1) sum_t A^t x for x (R, n, h) and t = 0 .. T."""
        return self.adjacency.powers(x, order) / (order + 1)

    def mixed_features(self, order: int) -> Tensor:
        """(1, n, d): `mixed_orders` of the features, worked out once."""
        return self.once(("mixed", order), lambda: self.mixed_orders(self.x.dense().unsqueeze(0), order))

    @cached_property
    def neighbour_mean(self) -> SparseMatrix:
        """D^-1 A: the mean over the neighbours of a node, without the node itself."""
        if self.graph.weights is None:
            rows = neighbour_rows(self.graph.edges, self.n, loops=False)
            return SparseMatrix.row_mean(rows.pattern().to(self.device), self.dtype)
        return self.sparse(neighbour_mean(self.graph.edges, self.n, self.graph.weights))

    @cached_property
    def neighbours(self) -> Pattern:
        """The pattern of A + I, over which attention runs."""
        return neighbour_rows(self.graph.edges, self.n).pattern().to(self.device)

    @cached_property
    def log_weights(self) -> Tensor | None:
        """(nnz,): the logarithm of the weight of each entry of `neighbours`, None if all edges are alike."""
        if self.graph.weights is None:
            return None
        values = neighbour_rows(self.graph.edges, self.n, self.graph.weights).values
        assert values is not None
        return torch.from_numpy(np.log(values)).to(self.device, self.dtype)

    @cached_property
    def edge_pattern(self) -> tuple[Pattern, Tensor | None]:
        """Each edge once, as a pattern (n, n), and the weights of its entries, None if all edges are alike."""
        rows, order = edge_rows(self.graph.edges, self.n)
        weight = self.edge_weight
        if weight is not None and order is not None:
            weight = weight[torch.from_numpy(order).to(self.device)]
        return rows.pattern(symmetric=False).to(self.device), weight

    @cached_property
    def taken(self) -> Pattern:
        """The pairs (i, j) that are no non-edges: those of an edge, in both orders unless it is directed, and i = j."""
        if not self.graph.directed:
            return self.neighbours
        loops = np.stack([np.arange(self.n)] * 2)
        return edge_rows(np.concatenate([self.graph.edges, loops], axis=1), self.n)[0].pattern(False).to(self.device)

    @cached_property
    def arc_means(self) -> tuple[SparseMatrix, SparseMatrix]:
        """The mean over the targets of a node's arcs, and over the sources of those that arrive; on an undirected graph
        both are the mean over its neighbours."""
        if not self.graph.directed:
            return self.neighbour_mean, self.neighbour_mean
        ends = self.graph.edges, self.graph.edges[::-1]
        out, back = (self.sparse(arc_mean(arcs, self.n, self.graph.weights)) for arcs in ends)
        return out, back

    @cached_property
    def mean_features(self) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """For either end of an arc, (1, n, d) each: the features averaged over the arcs of a node, over those the other
        way, and the latter averaged over its arcs."""
        ways, x = self.arc_means if self.graph.directed else self.arc_means[:1], self.x.dense().unsqueeze(0)
        once = [mean.matmul(x) for mean in ways]
        twice = [mean.matmul(back) for mean, back in zip(ways, once[::-1], strict=True)]
        return tuple(zip(once, once[::-1], twice, strict=True))

    @cached_property
    def degrees(self) -> Tensor:
        """(n, 1), on a directed graph (n, 2) for out- and in-degree: the sum of the weights of a node's edges."""
        return torch.from_numpy(degree_table(self.graph)).to(self.device, self.dtype)

    @cached_property
    def log_degrees(self) -> Tensor:
        """(n, 1 or 2): log(1 + degree), centred over the nodes."""
        return centred_log_degrees(self.degrees).to(self.dtype)

    @cached_property
    def arcs(self) -> Tensor:
        """(2, 2E): both directions of every edge, the `edge_index` of PyG; (2, E) on a directed graph."""
        edges = self.edges.to(self.device)
        return edges if self.graph.directed else torch.cat([edges, edges.flip(0)], dim=1)

    @cached_property
    def arc_weight(self) -> Tensor | None:
        """The weight of each of the `arcs`, the `edge_weight` of PyG; None if all edges are alike."""
        if self.edge_weight is None or self.graph.directed:
            return self.edge_weight
        return self.edge_weight.repeat(2)


def degree_table(task: NodeTask) -> np.ndarray:
    """(n, 1), on a directed graph (n, 2): the sum of the weights of a node's edges, out and in."""
    ends = task.edges if task.directed else task.edges.reshape(1, -1)
    weights = None if task.weights is None else np.resize(task.weights, ends.shape[1])
    return np.stack([np.bincount(end, weights, minlength=task.num_nodes) for end in ends], axis=1)


def centred_log_degrees(degrees: Tensor) -> Tensor:
    logs = degrees.double().log1p()
    return logs - logs.mean(0)


def _tensor(array: np.ndarray | None, device: torch.device | str, dtype: torch.dtype) -> Tensor | None:
    return None if array is None else torch.from_numpy(array).to(device, dtype)
