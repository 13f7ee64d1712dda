"""Columns of an edge table as features of nodes: what the edges of each hold on average, in all, and at most."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from g3nn.base.parse import NO_EDGES, Matrix
from g3nn.graph.features import AS_IS, COUNT, GUESS, FeatureTable, structural_features
from g3nn.graph.marks import Marks
from g3nn.graph.outcomes.labels import quoted
from g3nn.graph.relations import BETWEEN, Relations
from g3nn.graph.tables.edge_table import Located
from g3nn.graph.tables.encoders import Category, Text
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import FeatureSchema, side_by_side


@dataclass(frozen=True)
class EdgeFeatures:
    """How the columns of edges are read, and whether those that leave a node and those that lead to it are apart.
    positions: how many features were made from the edges themselves, as no column describes the nodes."""

    schema: FeatureSchema
    directed: bool = False
    positions: int = 0

    @classmethod
    def fit(
        cls, name: str, content: pa.Table | None, directed: bool, typed: bool, nulls: tuple[str, ...], remarks: Remarks
    ) -> EdgeFeatures | None:
        """None where no column says anything."""
        if content is None or not content.num_rows:
            return None
        read = Remarks()
        schema = FeatureSchema.fit(name, content, typed, {}, nulls, read)
        remarks.found += read.found
        left = f"; {quoted(sorted(schema.left_out))} left out" if schema.left_out else ""
        if not schema.columns:
            remarks.notes.append(f"{name}{left}")
            return None
        used = f"{quoted(list(schema.columns))} summed up in features of the nodes at both ends"
        remarks.notes.append(f"{name}: {used}{left}. ignore=[...] leaves out what should not count.")
        return cls(schema, directed)

    def encode(self, content: pa.Table, pairs: np.ndarray, n: int) -> FeatureTable:
        """Features of n nodes from the rows of their edges, whose ends are `pairs` (2, E)."""
        rows, (source, target) = self.schema.encode(content), pairs
        both = np.concatenate([source, target]), np.tile(np.arange(len(source)), 2)
        sides = {"": both}
        if self.directed:
            sides = {" out": (source, np.arange(len(source))), " in": (target, np.arange(len(target)))}
        parts = [_of_side(rows, *side, n, word) for word, side in sides.items()]
        return parts[0] if len(parts) == 1 else parts[0].beside(parts[1])

    def by_column(self, found: FeatureTable) -> dict[str, Matrix]:
        """What `encode` made of each column that is no text."""
        made = [name.rpartition(" (")[0] for name in found.names or ()]
        columns = ((name, how) for name, how in self.schema.columns.items() if not isinstance(how, Text))
        return {name: found.matrix[:, np.flatnonzero(np.isin(made, how.names(name)))] for name, how in columns}

    def marks(self, stated: Located, relations: Relations | None) -> Marks | None:
        """What columns that are no text say about each row of the edges."""
        used = {name: how for name, how in self.schema.columns.items() if not isinstance(how, Text)}
        if stated.content is None or not used:
            return None
        values = np.stack([self.schema.values(stated.content, name).astype(np.float64) for name in used], axis=1)
        sizes = np.array([len(how.categories) + 1 if isinstance(how, Category) else 0 for how in used.values()])
        values[(sizes > 0) & (values < 0)] = np.nan
        pairs, types = stated.edges.pairs, stated.edges.types
        if relations is None:
            return Marks.of(pairs, values, sizes.tolist(), types, self.directed)
        directed = {name for name, way in relations.directions if way}
        if types is None:
            source, target = np.array(relations.kind_names)[relations.kinds[pairs]]
            types = np.char.add(np.char.add(source, BETWEEN), target)
            directed |= set(types[source != target].tolist())
        return Marks.of(pairs, values, sizes.tolist(), types, directed)

    def of_new(self, stated: Located | None, n: int, new: int) -> FeatureTable:
        """Features of nodes that come after the n of the fit. Their positions are unknown."""
        content, pairs = pa.table({name: pa.nulls(0) for name in self.schema.columns}), NO_EDGES
        if stated is not None and stated.content is not None:
            content, pairs = stated.content, stated.edges.pairs
        unknown = FeatureTable(np.full((new, self.positions), np.nan))
        return self.encode(content, pairs, n + new).at(np.arange(n, n + new)).beside(_named(unknown))

    def with_positions(self, found: FeatureTable, pairs: np.ndarray) -> tuple[EdgeFeatures, FeatureTable]:
        """With the degrees and positions of nodes in the graph."""
        every = np.arange(found.num_nodes)
        made = structural_features(pairs, len(every), every)
        return replace(self, positions=made.matrix.shape[1]), found.beside(_named(made))


def _named(made: FeatureTable) -> FeatureTable:
    count = made.matrix.shape[1]
    kinds = np.full(count, AS_IS) if made.kinds is None else made.kinds
    return replace(made, names=("degree", *(f"position {place}" for place in range(1, count)))[:count], kinds=kinds)


def _of_side(rows: FeatureTable, nodes: np.ndarray, edges: np.ndarray, n: int, side: str) -> FeatureTable:
    """rows: of all edges. nodes, edges: (m,) each end of an edge that counts, by numbers."""
    assert rows.names is not None
    assert rows.kinds is not None
    own = sp.csr_array((np.ones(len(nodes)), (nodes, edges)), shape=(n, rows.num_nodes))
    count, is_share = np.bincount(nodes, minlength=n).astype(np.float64)[:, None], rows.kinds == AS_IS
    parts, names, kinds = [count], [f"edges{side}"], [COUNT]
    if is_share.any():
        parts.append(sp.diags_array(1 / np.maximum(count[:, 0], 1)) @ own @ _filled(rows.matrix[:, is_share]))
        names += [f"{name} (mean of edges{side})" for name, yes in zip(rows.names, is_share, strict=True) if yes]
        kinds += [AS_IS] * int(is_share.sum())
    order = np.argsort(nodes, kind="stable")
    filled, first = np.unique(nodes[order], return_index=True)
    for column in np.flatnonzero(~is_share):
        part = rows.matrix[:, [column]]
        values = np.asarray(part.toarray() if sp.issparse(part) else part)[:, 0]
        known, sums = own @ (~np.isnan(values)).astype(np.float64), own @ np.nan_to_num(values)
        least, most = np.full((2, n), np.nan)
        if len(filled):
            in_order = values[edges[order]]
            least[filled], most[filled] = np.fmin.reduceat(in_order, first), np.fmax.reduceat(in_order, first)
        mean = np.divide(sums, known, out=np.full(n, np.nan), where=known > 0)
        stated = {"mean": mean, "least": least, "most": most} | ({"sum": sums} if rows.kinds[column] == GUESS else {})
        parts += [one[:, None] for one in stated.values()]
        names += [f"{rows.names[column]} ({word} of edges{side})" for word in stated]
        kinds += [rows.kinds[column]] * len(stated)
    return FeatureTable(side_by_side(parts, n), tuple(names), np.array(kinds))


def _filled(matrix: Matrix) -> Matrix:
    """With 0 where nothing is known."""
    if not sp.issparse(matrix):
        return np.nan_to_num(matrix)
    found = matrix.copy()
    found.data = np.nan_to_num(found.data)
    return found
