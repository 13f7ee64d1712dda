"""A task in the form that components compute with: tensors on one device, and sparse matrices built once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from g3nn.kernels import Pattern, dropped_linear
from g3nn.outcomes import Outcome, Targets
from g3nn.replicas import Noise, optional_draw
from g3nn.sparse import SparseMatrix, arc_mean, edge_rows, neighbour_mean, neighbour_rows, normalised_adjacency
from g3nn.task import NodeTask

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Features:
    """X (n, d), sparse or dense, and its product with the stacked weights of a first layer."""

    matrix: SparseMatrix | Tensor

    def matmul(self, weight: Tensor, noise: Noise | None = None, rate: float = 0.0) -> Tensor:
        """(R, n, h) = dropout(X) W_r for weight (R, d, h). With noise, stored values are dropped."""
        draw = optional_draw(noise, rate)
        if isinstance(self.matrix, SparseMatrix):
            return self.matrix.matmul(weight, draw)
        return torch.matmul(self.matrix, weight) if draw is None else dropped_linear(self.matrix, weight, draw)

    def map(self, change: Callable[[Tensor], Tensor]) -> Features:
        """Apply a function that maps 0 to 0 to every value."""
        if isinstance(self.matrix, SparseMatrix):
            return Features(replace(self.matrix, stored=change(self.matrix.values)))
        return Features(change(self.matrix))

    def dense(self) -> Tensor:
        """X as one dense tensor (n, d), for modules that cannot handle sparse features."""
        if not isinstance(self.matrix, SparseMatrix):
            return self.matrix
        n, d = self.matrix.shape
        rows, cols = self.matrix.pattern.row.long(), self.matrix.pattern.col.long()
        return self.matrix.values.new_zeros(n, d).index_put((rows, cols), self.matrix.values[0])


@dataclass(frozen=True, eq=False)
class Inputs:
    """X, G and Y_L of one task.

    edges: (2, E) on the CPU, each undirected pair once, or arcs. labels: the values of `targets`. observed: (n, K),
    one-hot rows for labelled nodes and zero rows for the others; with another outcome (n, T), its values as inputs of a
    network.
    edge_weight: (E,), as how many edges each one counts; None if all are alike. beliefs: (n, width), those of the task.
    """

    task: NodeTask
    x: Features
    edges: Tensor
    labels: Tensor
    train: Tensor
    val: Tensor
    unlabelled: Tensor
    observed: Tensor
    outcome: Outcome
    targets: Targets
    edge_weight: Tensor | None = None
    beliefs: Tensor | None = None

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
        else:
            features = Features(torch.from_numpy(task.features).to(device, dtype))
        outcome = outcome or task.outcome_model()
        targets = outcome.targets(task.labels, task.train, device, dtype)
        train = torch.from_numpy(task.train).to(device)
        val = torch.from_numpy(task.val).to(device)
        unlabelled = torch.from_numpy(task.unlabelled).to(device)
        edges = torch.from_numpy(task.edges)
        observed = outcome.as_inputs(targets)
        own = _edge_weight(task, device, dtype), _tensor(task.beliefs, device, dtype)
        return cls(task, features, edges, targets.values, train, val, unlabelled, observed, outcome, targets, *own)

    def without_edges_of(self, nodes: np.ndarray) -> Inputs:
        """The same nodes, in the graph without the edges of `nodes`."""
        task = self.task.without_edges_of(nodes)
        edges = torch.from_numpy(task.edges)
        return replace(self, task=task, edges=edges, edge_weight=_edge_weight(task, self.device, self.dtype))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, made when it is first asked for: something about this graph that one component needs."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    @property
    def n(self) -> int:
        return self.task.num_nodes

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
        return self.observed.device

    @property
    def dtype(self) -> torch.dtype:
        return self.observed.dtype

    @cached_property
    def labelled(self) -> Tensor:
        """(n, 1) booleans: the nodes of L."""
        mask = torch.zeros(self.n, 1, dtype=torch.bool, device=self.device)
        mask[self.train] = True
        return mask

    @property
    def has_edges(self) -> bool:
        return self.edges.shape[1] > 0

    @cached_property
    def isolated(self) -> Tensor:
        """(n, 1) booleans: the nodes without edges."""
        return torch.from_numpy(self.task.isolated).unsqueeze(1).to(self.device)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """D^-1/2 (A + I) D^-1/2, the propagation matrix of GCN and its relatives."""
        if self.task.weights is None:
            return SparseMatrix.normalised(self.neighbours, self.dtype)
        matrix = SparseMatrix.from_scipy(normalised_adjacency(self.task.edges, self.n, self.task.weights))
        return matrix.to(self.device, self.dtype)

    def mixed_orders(self, x: Tensor, order: int) -> Tensor:
        """1 / (T + 1) sum_t A^t x for x (R, n, h) and t = 0 .. T."""
        total = x
        for _ in range(order):
            x = self.adjacency.matmul(x)
            total = total + x
        return total / (order + 1)

    @cached_property
    def _mixed_features(self) -> dict[int, Tensor]:
        return {}

    def mixed_features(self, order: int) -> Tensor:
        """(1, n, d): `mixed_orders` of the features, worked out once."""
        if order not in self._mixed_features:
            self._mixed_features[order] = self.mixed_orders(self.x.dense().unsqueeze(0), order)
        return self._mixed_features[order]

    @cached_property
    def neighbour_mean(self) -> SparseMatrix:
        """D^-1 A: the mean over the neighbours of a node, without the node itself."""
        if self.task.weights is None:
            rows = neighbour_rows(self.task.edges, self.n, loops=False)
            return SparseMatrix.row_mean(rows.pattern().to(self.device), self.dtype)
        matrix = SparseMatrix.from_scipy(neighbour_mean(self.task.edges, self.n, self.task.weights))
        return matrix.to(self.device, self.dtype)

    @cached_property
    def neighbours(self) -> Pattern:
        """The pattern of A + I, over which attention runs."""
        return neighbour_rows(self.task.edges, self.n).pattern().to(self.device)

    @cached_property
    def log_weights(self) -> Tensor | None:
        """(nnz,): the logarithm of the weight of each entry of `neighbours`, None if all edges are alike."""
        if self.task.weights is None:
            return None
        values = neighbour_rows(self.task.edges, self.n, self.task.weights).values
        assert values is not None
        return torch.from_numpy(np.log(values)).to(self.device, self.dtype)

    @cached_property
    def edge_pattern(self) -> tuple[Pattern, Tensor | None]:
        """Each edge once, as a pattern (n, n), and the weights of its entries, None if all edges are alike."""
        rows, order = edge_rows(self.task.edges, self.n)
        weight = self.edge_weight
        if weight is not None and order is not None:
            weight = weight[torch.from_numpy(order).to(self.device)]
        return rows.pattern(symmetric=False).to(self.device), weight

    @cached_property
    def taken(self) -> Pattern:
        """The pairs (i, j) that are no non-edges: those of an edge, in both orders unless it is directed, and i = j."""
        if not self.task.directed:
            return self.neighbours
        loops = np.stack([np.arange(self.n)] * 2)
        return edge_rows(np.concatenate([self.task.edges, loops], axis=1), self.n)[0].pattern(False).to(self.device)

    @cached_property
    def arc_means(self) -> tuple[SparseMatrix, SparseMatrix]:
        """The mean over the targets of a node's arcs, and over the sources of those that arrive; on an undirected graph
        both are the mean over its neighbours."""
        if not self.task.directed:
            return self.neighbour_mean, self.neighbour_mean
        out, back = (
            SparseMatrix.from_scipy(arc_mean(arcs, self.n, self.task.weights)).to(self.device, self.dtype)
            for arcs in (self.task.edges, self.task.edges[::-1])
        )
        return out, back

    @cached_property
    def degrees(self) -> Tensor:
        """(n, 1), on a directed graph (n, 2) for out- and in-degree: the sum of the weights of a node's edges."""
        ends = self.task.edges if self.task.directed else self.task.edges.reshape(1, -1)
        weights = None if self.task.weights is None else np.resize(self.task.weights, ends.shape[1])
        counts = np.stack([np.bincount(end, weights, minlength=self.n) for end in ends], axis=1)
        return torch.from_numpy(counts).to(self.device, self.dtype)

    @cached_property
    def log_degrees(self) -> Tensor:
        """(n, 1 or 2): log(1 + degree), centred over the nodes."""
        logs = self.degrees.double().log1p()
        return (logs - logs.mean(0)).to(self.dtype)

    @cached_property
    def arcs(self) -> Tensor:
        """(2, 2E): both directions of every edge, the `edge_index` of PyG; (2, E) on a directed graph."""
        edges = self.edges.to(self.device)
        return edges if self.task.directed else torch.cat([edges, edges.flip(0)], dim=1)

    @cached_property
    def arc_weight(self) -> Tensor | None:
        """The weight of each of the `arcs`, the `edge_weight` of PyG; None if all edges are alike."""
        if self.edge_weight is None or self.task.directed:
            return self.edge_weight
        return self.edge_weight.repeat(2)


def _edge_weight(task: NodeTask, device: torch.device | str, dtype: torch.dtype) -> Tensor | None:
    return _tensor(task.weights, device, dtype)


def _tensor(array: np.ndarray | None, device: torch.device | str, dtype: torch.dtype) -> Tensor | None:
    return None if array is None else torch.from_numpy(array).to(device, dtype)
