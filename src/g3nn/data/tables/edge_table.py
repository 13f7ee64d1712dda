"""The edge table: one row per edge, CSV or Parquet. `load_edges` reads it, `join` finds its ids in the node table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import floats, identifiers, is_number, is_text, listed, plain, refuse
from g3nn.data.tables.files import TableFile
from g3nn.errors import G3NNWarning, Problems

END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Names by which the two ends of an edge are recognised, in upper or lower case."""


@dataclass(frozen=True)
class EdgeColumns:
    """The columns with the two ends of an edge, and with its weight.

    By default the ends are columns with `END_NAMES`, else the first two. A weight must be a finite number of at least
    0. An edge of weight 0 is left out; other weights change nothing, because no model here uses them.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges by the ids of their two ends, int64 or text, from the two `columns`."""

    name: str
    source: pa.Array
    target: pa.Array
    columns: tuple[str, str]
    typed: bool = True


def load_edges(path: str | Path, columns: EdgeColumns, problems: Problems) -> EdgeTable | None:
    """Read an edge table; None if its ids cannot be read. Columns that are not needed are left unread."""
    file, weight, before, names = TableFile.open(path), columns.weight, len(problems.found), None
    file.check_roles({"source": [columns.source], "target": [columns.target], "weight": [weight]}, problems)
    with problems.gathered():
        names = _end_names(file, columns)
    if names is None or len(problems.found) > before:
        return None
    table = file.read(text=names, only={*names, *([] if weight is None else [weight])})
    ends = []
    for name in names:
        with problems.gathered():
            ends.append(identifiers(file.place(name), table[name], file.typed))
    kept = np.ones(table.num_rows, dtype=bool)
    if weight is not None:
        with problems.gathered():
            kept = _positive(file.place(weight), plain(table[weight], file.typed))
    if len(ends) < 2:
        return None
    if file.typed and is_text(ends[0].type) != is_text(ends[1].type):
        given = f"text in one of the columns {listed(names)} and whole numbers in the other"
        problems.add(str(path), given, "ids of one type")
        return None
    source, target = (pc.filter(end, pa.array(kept)) for end in of_one_type(*ends))
    return EdgeTable(str(path), source, target, names, file.typed)


def _end_names(file: TableFile, columns: EdgeColumns) -> tuple[str, str]:
    if columns.source is not None and columns.target is not None:
        return columns.source, columns.target
    if columns.source is not None or columns.target is not None:
        refuse("source and target", f"{columns.source!r} and {columns.target!r}", "both names or none")
    by_lower = {name.lower(): name for name in file.names}
    for source, target in END_NAMES:
        if source in by_lower and target in by_lower:
            return by_lower[source], by_lower[target]
    if len(file.names) < 2:
        refuse(str(file.path), f"one column {listed(list(file.names))}", "two columns with the ids of both ends")
    source, target, *_ = file.names
    return source, target


def _positive(place: str, weights: pa.Array) -> np.ndarray:
    """Which edges have a weight above 0."""
    if not is_number(weights.type):
        refuse(place, f"values of type {weights.type}", "numbers of at least 0")
    numbers = floats(weights)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        given = f"missing, negative or infinite weights ({listed(numbers[wrong])})"
        refuse(place, given, "numbers of at least 0")
    return numbers > 0


def of_one_type(ids: pa.Array, others: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both unchanged, or both as text if one of them is text."""
    if is_text(ids.type) == is_text(others.type):
        return ids, others
    return pc.cast(ids, pa.large_string()), pc.cast(others, pa.large_string())


def check_types(place: str, ids: pa.Array, typed: bool, nodes: pa.Array, nodes_typed: bool) -> None:
    """Two files that both say what their ids are must agree. Numbers in a CSV file may stand for text."""
    if typed and nodes_typed and is_text(ids.type) != is_text(nodes.type):
        words = {True: "text", False: "whole numbers"}
        given, allowed = words[is_text(ids.type)], words[is_text(nodes.type)]
        advice = "Write the ids of both tables with the same type."
        refuse(place, f"ids that are {given}", f"{allowed}, as in the node table", advice)


def join(edges: EdgeTable, ids: pa.Array, typed: bool, *, drop_unknown: bool = False) -> np.ndarray:
    """(2, E) int64: the positions in `ids` of both ends of each edge.

    Edges with unknown ids are an error, or with `drop_unknown` left out with a warning.
    typed: whether a file says that `ids` are numbers or text.
    """
    check_types(f"{edges.name}, columns {listed(edges.columns)}", edges.source, edges.typed, ids, typed)
    (source, nodes), (target, _) = of_one_type(edges.source, ids), of_one_type(edges.target, ids)
    # The position of an unknown id is null.
    positions = [pc.index_in(end, value_set=nodes) for end in (source, target)]
    unknown = np.logical_or(*(position.is_null().to_numpy(zero_copy_only=False) for position in positions))
    pairs = np.stack([pc.fill_null(position, -1).to_numpy().astype(np.int64) for position in positions])
    if not unknown.any():
        return pairs
    share = f"{int(unknown.sum())} of {unknown.size} edges"
    if not drop_unknown or unknown.all():
        absent = [pc.filter(end, position.is_null()) for end, position in zip((source, target), positions, strict=True)]
        given = f"{share} with ids that no node has ({listed(pc.unique(pa.chunked_array(absent)))})"
        advice = "Both tables must use the same ids." if drop_unknown else "--drop-unknown-edges leaves them out."
        refuse(edges.name, given, "edges between ids of the node table", advice)
    warnings.warn(f"{edges.name}: left out {share}, with ids that no node has", G3NNWarning, stacklevel=2)
    return pairs[:, ~unknown]
