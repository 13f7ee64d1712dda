"""A node-labelling task: features, edges, some labels, and which nodes are for training, validation and test."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems, refuse
from g3nn.base.options import pick
from g3nn.base.parse import (
    Matrix,
    feature_matrix,
    node_indices,
    read_beliefs,
    read_weighted_edges,
    relative_weights,
)
from g3nn.graph.marks import Marks
from g3nn.graph.outcomes import OUTCOMES, Classes, Outcome, without_labels_of
from g3nn.graph.outcomes.warps import Warp
from g3nn.graph.relations import Relations

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData


@dataclass(frozen=True, eq=False)
class NodeTask:
    """n nodes with d features, E edges, K classes and a split. Made by `NodeTask.build`, which checks everything.

    features: (n, d) float32, a scipy CSR array or a dense numpy array.
    edges:    (2, E) int64. Undirected: each pair once, with i < j. Directed: (source, target). No self-loops.
    labels:   (n,) int64 in 0..K-1, -1 where unknown. Tags and numbers: (n, T) float64, NaN where unknown, and
              `num_classes` is T, the number of columns.
    train, val, test: sorted node indices. Only `train` is the observed part L; every other node belongs to U.
    outcome:  what the labels are, by name: see `g3nn.graph.outcomes`.
    weights:  (E,) float64 above 0, as how many edges each one counts; None if all are alike, each counting as one.
    beliefs:  (n, width) float64, what another model says about each node by its features alone, as an answer of the
              outcome in the unit of the training labels; of a training node, without having seen its label.
    warps:    the scale of each column of real values; none: the values as they are.
    unit:     the nodes whose labels set the unit of numbers; None: `train`.
    relations: the types of the edges and the kinds of the nodes; None: all are alike.
    marks:    what columns say about edges; None: nothing.
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
    weights: np.ndarray | None = None
    beliefs: np.ndarray | None = None
    warps: tuple[Warp, ...] = ()
    unit: np.ndarray | None = None
    relations: Relations | None = None
    marks: Marks | None = None

    def __post_init__(self) -> None:
        """Weights must match the edges, and beliefs the nodes, after every change too."""
        if self.beliefs is not None and len(self.beliefs) != self.num_nodes:
            refuse("beliefs", f"{len(self.beliefs)} rows", f"one for each of the {self.num_nodes} nodes")
        if self.weights is not None and self.weights.shape != (self.num_edges,):
            advice = "Pass the weights of the new edges too, or choose among the old ones by their places."
            refuse("weights", f"shape {self.weights.shape}", f"shape ({self.num_edges},): one per edge", advice)

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

    def outcome_model(self, options: Mapping[str, object] | None = None) -> Outcome:
        """The outcome in the unit of the labels that set it, with those of the options that it declares."""
        labels = self.labels[self.train if self.unit is None else self.unit]
        outcome = self.kind.of(labels, self.num_classes, pick(options or {}, self.kind.Options))
        return outcome.on_scales(self.warps, labels) if self.warps else outcome

    @property
    def isolated(self) -> np.ndarray:
        """(n,) booleans: the nodes without edges."""
        return ~np.isin(np.arange(self.num_nodes), self.edges)

    def __repr__(self) -> str:
        edges = "edges" if self.weights is None else "weighted edges"
        return (
            f"NodeTask({self.name!r}, {self.setting!r}: {self.num_nodes} nodes, {self.num_edges} {edges}, "
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
        features: object,
        edges: object,
        labels: object,
        train: object,
        val: object,
        test: object = (),
        *,
        num_classes: int | None = None,
        directed: bool = False,
        name: str = "custom",
        setting: str = "standard",
        outcome: str = Classes.name,
        weights: object = None,
        beliefs: object = None,
        warps: tuple[Warp, ...] = (),
        relations: Relations | None = None,
        marks: Marks | None = None,
    ) -> NodeTask:
        """Check and normalise raw parts. Masks or index lists, dense or sparse features, edges in any order as (2, E)
        or (E, 2), a list of tuples, a scipy adjacency matrix, a networkx or igraph graph or a data frame.

        outcome: what the labels are. Classes are whole numbers, -1 where unknown; everything else is one column (n,)
        or several (n, T), NaN where unknown. val: None if nothing is to be validated.

        weights: (E,), of the edges as given, 0 for no edge; by default those that come with the edges, if any, and with
        False none. Weights of a repeated edge, and of both directions of an undirected one, add up. Without any, an
        undirected edge weighs as much as it was repeated. Only ratios matter: weights are divided by their mean.

        beliefs: (n, width), for the prior `given`; log-probabilities of classes, log-odds of tags, and for numbers the
        means and then the logarithms of the variances, of counts those of their log-rates.
        warps: the scales on which real values are normal, one for each column.
        marks: `Marks.of(pairs, values)`; rows that are no edge of the graph are left out.

        Raises one `InputError` that lists every problem.
        """
        problems = Problems()
        matrix = feature_matrix(features, problems)
        n = int(matrix.shape[0])
        pairs, totals, *_ = read_weighted_edges(edges, n, directed, problems, weights)
        parts = {"train": train, "val": val, "test": test}
        # No validation nodes at all is a choice, an empty list of them a mistake.
        named = {key: value for key, value in parts.items() if value is not None}
        split = {key: node_indices(key, value, n, problems) for key, value in named.items()}
        problems.name("outcome", outcome, OUTCOMES)
        kind = OUTCOMES.get(outcome, Classes)
        y, K = kind.task_labels(labels, n, num_classes, split, problems)
        answers = None if beliefs is None else read_beliefs(beliefs, (n, K * kind.numbers_per_column), problems)
        marks = None if marks is None else marks.read(pairs, n, directed, problems)
        problems.raise_if_any()
        none = np.zeros(0, dtype=np.int64)
        train, val, test = (none if (part := split.get(key)) is None else part for key in parts)
        how = (directed, name, setting, outcome, relative_weights(totals), answers, warps, None, relations, marks)
        return cls(matrix, pairs, y, train, val, test, K, *how)

    @classmethod
    def from_pyg(
        cls,
        data: Data | HeteroData,
        *,
        name: str = "custom",
        setting: str = "standard",
        outcome: str = Classes.name,
        weights: object = None,
    ) -> NodeTask:
        """From a PyG `Data` with x, edge_index, y, train_mask, val_mask and perhaps test_mask, edge_type and node_type;
        or from a `HeteroData`. weights: as in `build`; by default edge_weight or edge_attr, if it is one number per
        edge. Edges whose two directions differ in weight are directed.
        """
        from g3nn.graph import pyg  # PyG takes long to import.

        return cls.build(**pyg.parts_of(data, weights), name=name, setting=setting, outcome=outcome)

    def to_pyg(self) -> Data | HeteroData:
        """A PyG `Data` with dense x, and edge_weight if edges have weights; an undirected edge becomes two arcs. Where
        edges have types or nodes kinds, a `HeteroData`."""
        from g3nn.graph import pyg

        return pyg.data_of(self) if self.relations is None else pyg.kinds_of(self, self.relations)

    def with_edges(
        self, edges: np.ndarray, weights: np.ndarray | None = None, *, setting: str | None = None
    ) -> NodeTask:
        """The same task on another set of edges.

        edges: (E,) booleans or places, those to keep, with their weights; or other edges (2, E), which on a graph with
        weights need some of their own, in the same unit.
        """
        if edges.ndim == 1:
            weights = None if self.weights is None else self.weights[edges]
            edges = self.edges[:, edges]
        elif weights is None and self.weights is not None:
            refuse("weights", "none", "one for each of the other edges of a graph with weights")
        relations = None if self.relations is None else self.relations.among(edges, self.directed)
        marks = None if self.marks is None else self.marks.among(edges, self.num_nodes, self.directed)
        changed = replace(self, edges=edges, weights=weights, setting=setting or self.setting)
        return replace(changed, relations=relations, marks=marks)

    @property
    def apart(self) -> Relations | None:
        """The relations; None where all edges are of one type and all nodes of one kind."""
        return None if self.relations is None or self.relations.alike else self.relations

    def without_edges_of(self, nodes: np.ndarray, *, setting: str | None = None) -> NodeTask:
        """The same task on the graph without the edges that touch `nodes`."""
        source, target = np.isin(self.edges, nodes)
        return self.with_edges(~(source | target), setting=setting)

    def without_types(self, names: Collection[str]) -> NodeTask:
        """Without edges that are of these types alone."""
        if self.relations is None or not {*names} & {*self.relations.names}:
            return self
        left = self.relations.without(names)
        task = self.with_edges(left.join(self.edges, self.directed))
        marks = None if task.marks is None else task.marks.without(names)
        return replace(task, relations=None if left.alike and not left.directed.any() else left, marks=marks)

    def among(self, nodes: np.ndarray) -> NodeTask:
        """The same task for some nodes, sorted, without their edges."""
        parts = (self.train, self.val, self.test)
        train, val, test = (np.searchsorted(nodes, part[np.isin(part, nodes)]) for part in parts)
        beliefs = None if self.beliefs is None else self.beliefs[nodes]
        none = self.with_edges(np.zeros(self.num_edges, dtype=bool))
        alone = replace(none, features=self.features[nodes], labels=self.labels[nodes], beliefs=beliefs)
        return replace(alone, train=train, val=val, test=test, relations=None, unit=None, marks=None)

    def without_test(self) -> NodeTask:
        """The same task for choosing hyper-parameters: no test node, and no label of one to look at."""
        return replace(self, labels=without_labels_of(self.labels, self.test), test=self.test[:0])

    def with_split(
        self, train: np.ndarray, val: np.ndarray, test: np.ndarray, *, setting: str | None = None
    ) -> NodeTask:
        """The same graph with another split. Beliefs may have seen labels that are held back now: they stay behind."""
        given = {name: part for name, part in vars(self).items() if name not in ("weights", "beliefs", "unit")}
        checked = NodeTask.build(**given | {"train": train, "val": val, "test": test}, weights=False)
        split = {name: getattr(checked, name) for name in ("train", "val", "test")}
        return replace(self, **split, setting=setting or self.setting, beliefs=None, unit=None)
