"""Tables of new nodes, for a model that was fitted on tables."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import CATEGORICAL, TEXT
from g3nn.data.tables.edge_table import check_types, join, load_edges, of_one_type
from g3nn.data.tables.files import TableFile
from g3nn.data.tables.graph import table_problems
from g3nn.data.tables.node_table import NodeColumns, load_nodes
from g3nn.data.tables.notes import TableNotes
from g3nn.errors import G3NNWarning, Problems
from g3nn.parse import NO_EDGES, Matrix


@dataclass(frozen=True, eq=False)
class NewNodes:
    """Rows to answer for. With n nodes in the fit, number i < n is one of those and n + j the j-th new one.

    ids, numbers: (m,) of all rows. features: (new, d). edges: (2, E) numbers.
    """

    ids: pa.Array
    numbers: np.ndarray
    features: Matrix | None
    edges: np.ndarray

    @property
    def count(self) -> int:
        """How many are new."""
        return 0 if self.features is None else int(self.features.shape[0])


def read_new_nodes(
    notes: TableNotes,
    nodes_path: str | Path,
    edges_path: str | Path | None,
    problems: Problems,
    *,
    missing: str = "impute",
    drop_unknown: bool = False,
) -> NewNodes | None:
    """Read and check both tables; None if there are problems. A row with an id of the fit is that node.

    missing: "error" if the model was fitted so, else "impute".
    """
    before = len(problems.found)
    nodes, edges, features, pairs = None, None, None, NO_EDGES
    with table_problems("nodes", problems):
        nodes = load_nodes(nodes_path, _columns(notes, TableFile.open(nodes_path).names), problems)
    if edges_path is not None:
        with table_problems("edges", problems):
            edges = load_edges(edges_path, notes.edge_columns, problems)
    if nodes is None:
        return None
    notes.schema.check_columns(nodes, problems)
    with problems.gathered():
        check_types(f"{nodes.name}, ids", nodes.ids, nodes.typed, notes.node_ids, notes.typed)
    if len(problems.found) > before:
        return None
    ids, fitted = of_one_type(nodes.ids, notes.node_ids)
    position = pc.index_in(ids, value_set=fitted)
    new = position.is_null().to_numpy(zero_copy_only=False)
    if new.any():
        with problems.gathered():
            rows = replace(nodes, ids=pc.filter(ids, new), features=nodes.features.filter(pa.array(new)))
            features = notes.schema.encode(rows, missing=missing)
    if edges is not None:
        everyone = pa.concat_arrays([fitted, pc.filter(ids, pa.array(new))])
        with problems.gathered():
            pairs = join(edges, everyone, notes.typed and nodes.typed, drop_unknown=drop_unknown)
    if len(problems.found) > before:
        return None
    if not new.all():
        share = f"{int((~new).sum())} of {new.size} ids were in the fit"
        warnings.warn(f"{nodes.name}: {share}; their answers are those of the fit", G3NNWarning, stacklevel=2)
    numbers = np.where(new, len(fitted) + np.cumsum(new) - 1, pc.fill_null(position, 0).to_numpy())
    return NewNodes(nodes.ids, numbers, features, pairs)


def _columns(notes: TableNotes, names: Collection[str]) -> NodeColumns:
    """The columns of the fit that are present. Labels and the split are not read."""
    kinds = {name: kind for name, kind in notes.schema.kinds.items() if name in names}
    unread = (*notes.node_columns.labels, notes.node_columns.split, *notes.node_columns.ignore)
    return NodeColumns(
        notes.node_columns.id,
        text=tuple(name for name, kind in kinds.items() if kind == TEXT),
        categorical=tuple(name for name, kind in kinds.items() if kind == CATEGORICAL),
        ignore=tuple(name for name in unread if name is not None and name in names),
    )
