"""Columns whose cells name other nodes: `A | B` in a column director become two nodes, and an edge to each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import refuse
from g3nn.base.parse import NO_EDGES, Edges
from g3nn.graph.outcomes import Labels, unlabelled
from g3nn.graph.tables.cells import is_number, is_text, known, plain, texts
from g3nn.graph.tables.remarks import listed

if TYPE_CHECKING:
    from g3nn.graph.tables.graph import NodeColumns, NodeTable

SEPARATOR = "|"
ROW = "row"
"""The kind of nodes that have rows, where neither a column nor the name of a file says it."""


def named_by(place: str, raw: pa.Array, nulls: tuple[str, ...]) -> tuple[np.ndarray, pa.Array]:
    """The rows (m,) and the names (m,) in their cells, each once in a row."""
    if not (is_text(raw.type) or is_number(raw.type) or pa.types.is_null(raw.type)):
        refuse(place, f"values of type {raw.type}", f"names of nodes, separated by {SEPARATOR}")
    cells = pc.split_pattern(pc.fill_null(texts(known(raw, nulls)), ""), SEPARATOR)
    names = pc.utf8_trim_whitespace(pc.list_flatten(cells))
    there = pc.invert(pc.is_in(names, value_set=pa.array(["", *nulls], pa.large_string())))
    table = pa.table({"row": pc.list_parent_indices(cells), "name": names}).filter(there)
    table = table.group_by(["row", "name"], use_threads=False).aggregate([])
    return table["row"].to_numpy().astype(np.int64), table["name"].combine_chunks()


def linked_ids(nodes_name: str, content: pa.Table, columns: NodeColumns) -> list[tuple[str, np.ndarray, pa.Array]]:
    """For each column its name, and the rows and the ids that its cells name."""
    found = []
    for column in columns.edges_from:
        place = f"{nodes_name}, column {column!r}"
        rows, names = named_by(place, plain(content[column], typed=False), columns.nulls)
        found.append(
            (
                column,
                rows,
                pc.binary_join_element_wise(pa.scalar(column, names.type), names, pa.scalar(": ", names.type)),
            )
        )
    return found


def with_linked(nodes: NodeTable, rows_kind: str) -> tuple[NodeTable, Edges]:
    """The table with a further node for each name, of which nothing else is known; and the edges to them, whose types
    are the names of the columns. rows_kind: of the nodes with rows, if they have no kind yet."""
    links, n = linked_ids(nodes.name, nodes.content, nodes.columns), nodes.num_nodes
    new = pc.unique(pa.chunked_array([ids for _, _, ids in links], pa.large_string()))
    ids = pc.cast(nodes.ids, pa.large_string())
    if len(same := pc.filter(new, pc.is_in(new, value_set=ids))):
        advice = "Rename these ids."
        refuse(f"{nodes.name}, ids", listed(same), "other ids than those of nodes that columns name", advice)
    pairs, types, kinds = [NO_EDGES], list[str](), list[str]()
    for column, rows, named in links:
        pairs.append(np.stack([rows, n + pc.index_in(named, value_set=new).to_numpy().astype(np.int64)]))
        # In `new` the names of a column come together.
        types, kinds = types + [column] * len(rows), kinds + [column] * len(pc.unique(named))
    k = len(new)
    old = np.full(n, rows_kind, dtype=object) if nodes.kinds is None else nodes.kinds
    names, labels, split = nodes.features.column_names, nodes.labels, nodes.split
    held = zip(names, nodes.features.columns, strict=True)
    wide = {name: pa.chunked_array([*column.chunks, pa.nulls(k, column.type)]) for name, column in held}
    larger = replace(
        nodes,
        ids=pa.concat_arrays([ids, new]),
        # The numbers keep the rows where no column describes the nodes.
        features=pa.table({**wide, "": np.arange(n + k)}).select(names),
        labels=None if labels is None else _longer(labels, k),
        split=None if split is None else np.concatenate([split, np.full(k, "train", split.dtype)]),
        kinds=np.concatenate([old, np.array(kinds, dtype=object)]),
        typed=nodes.typed and is_text(nodes.ids.type),
        whole=pa.types.is_integer(nodes.ids.type),
        added=k,
    )
    return larger, Edges(np.concatenate(pairs, axis=1), types=np.array(types, dtype=object))


def _longer(labels: Labels, k: int) -> Labels:
    none = unlabelled((k, *labels.values.shape[1:]), labels.values.dtype)
    return replace(labels, values=np.concatenate([labels.values, none]))
