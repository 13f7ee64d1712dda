"""A node-labelling task: features, edges, some labels, and which nodes are for training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.options import pick
from g3nn.outcomes import OUTCOMES, Classes, Outcome, without_labels_of
from g3nn.parse import Matrix, edge_list, feature_matrix, node_indices

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False)
class NodeTask:
    """n nodes with d features, E edges, K classes and a split. Made by `NodeTask.build`, which checks everything.

    features: (n, d) float32, a scipy CSR array or a dense numpy array.
    edges:    (2, E) int64. Undirected: each pair once, with i < j. Directed: (source, target). No self-loops.
    labels:   (n,) int64 in 0..K-1, -1 where unknown. Tags and numbers: (n, T) float64, NaN where unknown, and
              `num_classes` is T, the number of columns.
    train, val, test: sorted node indices. Only `train` is the observed part L; every other node belongs to U.
    outcome:  what the labels are, by name: see `g3nn.outcomes`.
    """

    features: Matrix
    edges: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    num_classes: int
    directed: bool = False
    name: str = "custom"
    setting: str = "standard"
    outcome: str = Classes.name

    @property
    def num_nodes(self) -> int:
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_edges(self) -> int:
        return int(self.edges.shape[1])

    @property
    def extent(self) -> int:
        """About how much an epoch walks over: nodes and edges, and stored feature values, which are cheaper."""
        stored = self.features.nnz if sp.issparse(self.features) else self.features.size
        return int(self.num_nodes + self.num_edges + stored // 16)

    @property
    def unlabelled(self) -> np.ndarray:
        """U: every node whose label training may not see."""
        return np.setdiff1d(np.arange(self.num_nodes), self.train)

    def outcome_model(self, options: Mapping[str, Any] | None = None) -> Outcome:
        """The outcome in the unit of the training labels, with those of the options that it declares."""
        return self.kind.of(self.labels[self.train], self.num_classes, pick(options or {}, self.kind.Options))

    @property
    def isolated(self) -> np.ndarray:
        """(n,) booleans: the nodes without edges."""
        return ~np.isin(np.arange(self.num_nodes), self.edges)

    def __repr__(self) -> str:
        return (
            f"NodeTask({self.name!r}, {self.setting!r}: {self.num_nodes} nodes, {self.num_edges} edges, "
            f"{self.num_features} features, {self.num_classes} {self.kind.columns_title}, "
            f"{len(self.train)}/{len(self.val)}/{len(self.test)} train/val/test)"
        )

    @property
    def kind(self) -> type[Outcome]:
        """What the labels are."""
        return OUTCOMES[self.outcome]

    @classmethod
    def build(
        cls,
        features: Any,
        edges: Any,
        labels: Any,
        train: Any,
        val: Any,
        test: Any = (),
        *,
        num_classes: int | None = None,
        directed: bool = False,
        name: str = "custom",
        setting: str = "standard",
        outcome: str = Classes.name,
    ) -> NodeTask:
        """Check and normalise raw parts. Masks or index lists, dense or sparse features, edges in any order.

        outcome: what the labels are. Classes are whole numbers, -1 where unknown; everything else is one column (n,)
        or several (n, T), NaN where unknown.

        Raises one `InputError` that lists every problem.
        """
        problems = Problems()
        matrix = feature_matrix(features, problems)
        n = int(matrix.shape[0])
        pairs = edge_list(edges, n, directed, problems)
        parts = {"train": train, "val": val, "test": test}
        split = {key: node_indices(key, value, n, problems) for key, value in parts.items()}
        problems.name("outcome", outcome, OUTCOMES)
        y, K = OUTCOMES.get(outcome, Classes).task_labels(labels, n, num_classes, split, problems)
        problems.raise_if_any()
        nodes = {key: part for key, part in split.items() if part is not None}
        return cls(
            matrix, pairs, y, **nodes, num_classes=K, directed=directed, name=name, setting=setting, outcome=outcome
        )

    @classmethod
    def from_pyg(
        cls, data: Data, *, name: str = "custom", setting: str = "standard", outcome: str = Classes.name
    ) -> NodeTask:
        """From a PyG `Data` with x, edge_index, y, train_mask, val_mask and (optionally) test_mask."""
        problems = Problems()
        for key in ("x", "edge_index", "y", "train_mask", "val_mask"):
            if data.get(key) is None:
                problems.add(f"data.{key}", "nothing", "a tensor", f"Set data.{key} before converting.")
        problems.raise_if_any()
        test = data.get("test_mask")
        return cls.build(
            data.x,
            data.edge_index,
            data.y,
            data.train_mask,
            data.val_mask,
            () if test is None else test,
            directed=data.is_directed(),
            name=name,
            setting=setting,
            outcome=outcome,
        )

    def to_pyg(self) -> Data:
        """A PyG `Data` with dense x; an undirected edge becomes two arcs, as PyG expects."""
        import torch
        from torch_geometric.data import Data

        x = self.features.toarray() if sp.issparse(self.features) else self.features
        arcs = self.edges if self.directed else np.concatenate([self.edges, self.edges[::-1]], axis=1)
        nodes, parts = np.arange(self.num_nodes), {"train": self.train, "val": self.val, "test": self.test}
        masks = {f"{key}_mask": torch.from_numpy(np.isin(nodes, part)) for key, part in parts.items()}
        y = torch.from_numpy(self.labels)
        return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(arcs.copy()), y=y, **masks)

    def with_edges(self, edges: np.ndarray, *, setting: str | None = None) -> NodeTask:
        """The same task on another set of edges."""
        return replace(self, edges=edges, setting=setting or self.setting)

    def with_classes(self, labels: np.ndarray, num_classes: int) -> NodeTask:
        """The same graph with classes (n,) as labels."""
        return replace(self, labels=labels, num_classes=num_classes, outcome=Classes.name)

    def without_edges_of(self, nodes: np.ndarray, *, setting: str | None = None) -> NodeTask:
        """The same task on the graph without the edges that touch `nodes`."""
        return self.with_edges(self.edges[:, ~np.isin(self.edges, nodes).any(axis=0)], setting=setting)

    def without_test(self) -> NodeTask:
        """The same task for choosing hyper-parameters: no test node, and no label of one to look at."""
        return replace(self, labels=without_labels_of(self.labels, self.test), test=self.test[:0])

    def with_split(
        self, train: np.ndarray, val: np.ndarray, test: np.ndarray, *, setting: str | None = None
    ) -> NodeTask:
        """The same graph with other training, validation and test nodes."""
        split = {"train": train, "val": val, "test": test}
        return NodeTask.build(**{**vars(self), **split, "setting": setting or self.setting})
