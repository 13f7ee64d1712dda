"""New nodes in tables, for a model that was fitted on tables."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.files import TableFile
from g3nn.data.tables.graph import check_types, join, table_problems
from g3nn.data.tables.notes import TableNotes
from g3nn.data.tables.reading import NodeColumns, NodeTable, load_edges, load_nodes, of_one_type
from g3nn.errors import G3NNWarning, Problems
from g3nn.parse import Matrix


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
    """Read and check both tables; None where a problem was found. A row whose id was in the fit is that node.

    missing: "error" if the model was fitted so, else "impute".
    """
    before = len(problems.found)
    nodes, edges, features, pairs = None, None, None, np.zeros((2, 0), dtype=np.int64)
    with table_problems("nodes", problems):
        nodes = load_nodes(nodes_path, _columns(notes, TableFile.open(nodes_path).names), problems)
    if edges_path is not None:
        with table_problems("edges", problems):
            edges = load_edges(edges_path, notes.edge_columns, problems)
    if nodes is None:
        return None
    notes.schema.check_columns(nodes, problems)
    check_types(f"{nodes.name}, ids", nodes.ids, nodes.typed, notes.ids, notes.typed, problems)
    if len(problems.found) > before:
        return None
    ids, known = of_one_type(nodes.ids, notes.ids)
    place = pc.index_in(ids, value_set=known)
    new = place.is_null().to_numpy(zero_copy_only=False)
    if new.any():
        with problems.gathered():
            features = notes.schema.encode(_chosen(nodes, new), missing=missing)
    if edges is not None:
        everyone = pa.concat_arrays([known, pc.filter(ids, pa.array(new))])
        with problems.gathered():
            pairs = join(edges, everyone, notes.typed and nodes.typed, drop_unknown=drop_unknown)
    if len(problems.found) > before:
        return None
    _warn_of_known(nodes.name, int((~new).sum()), len(new))
    numbers = np.where(new, len(known) + np.cumsum(new) - 1, pc.fill_null(place, 0).to_numpy())
    return NewNodes(nodes.ids, numbers, features, pairs)


def _columns(notes: TableNotes, names: tuple[str, ...]) -> NodeColumns:
    """Those of the fit as far as they are there. Labels and the split are not looked at."""
    unread = (*notes.node_columns.labels, notes.node_columns.split, *notes.node_columns.ignore)
    return NodeColumns(
        notes.node_columns.id,
        text=tuple(name for name in notes.schema.names("text") if name in names),
        categorical=tuple(name for name in notes.schema.names("categorical") if name in names),
        ignore=tuple(name for name in unread if name is not None and name in names),
    )


def _chosen(nodes: NodeTable, rows: np.ndarray) -> NodeTable:
    mask = pa.array(rows)
    return replace(nodes, ids=pc.filter(nodes.ids, mask), features=nodes.features.filter(mask))


def _warn_of_known(name: str, known: int, rows: int) -> None:
    if known:
        warnings.warn(
            f"{name}: {known} of {rows} ids were in the fit; they are answered as they were then",
            G3NNWarning,
            stacklevel=3,
        )
