"""The edge table: one row per edge. `load_edges` reads it, `join` finds its ids in the node table."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import refuse
from g3nn.base.parse import Edges, accounted, merged_edges
from g3nn.graph.tables.cells import decimal_of, floats, identifiers, is_number, is_text, numbers, plain
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.remarks import Oddity, Remarks, listed

END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Names by which the two ends of an edge are recognised, in upper or lower case."""
WEIGHT_NAMES = ("weight", "weights")
"""Names by which a column of weights is recognised."""
NO_WEIGHT = "none"
"""What to say for the weight where there is such a column but edges count alike."""
REPEATS = "(repeats)"
"""The weight of the edges where it is how often they were stated; no column is called so by chance."""

_ONCE = f'weight="{NO_WEIGHT}"'
_UNUSED = Oddity("further columns", "the two ends and a weight", "not used")
_PERHAPS_WEIGHT = _UNUSED._replace(advice='weight="COL" takes one as the weight.')
_IGNORE_WEIGHTS = f"{_ONCE} ignores them."


@dataclass(frozen=True)
class EdgeColumns:
    """The columns with the two ends of an edge, and with its weight.

    By default the ends are columns with `END_NAMES`, else the first two, and the weight is a column of numbers with one
    of `WEIGHT_NAMES`. A weight must be a finite number of at least 0; 0 is no edge.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges by the ids of their two ends, int64 or text, from `columns`; weights (E,) or None. counted: whether an edge
    without a weight counts as often as it is stated."""

    name: str
    source: pa.Array
    target: pa.Array
    columns: EdgeColumns
    weights: np.ndarray | None = None
    typed: bool = True
    counted: bool = False


def load_edges(table: object, columns: EdgeColumns, remarks: Remarks) -> EdgeTable | None:
    """Read an edge table; None if its ids cannot be read."""
    source = Source.open(table, "edges", remarks)
    before, ends, weights, asked = len(remarks.found), list[pa.Array](), None, columns.weight
    named = None if asked in (NO_WEIGHT, REPEATS) else asked
    source.check_roles({"source": [columns.source], "target": [columns.target], "weight": [named]}, remarks)
    with remarks.gathered():
        names = _end_names(source, columns)
        likely = (name for name in source.names if name.lower() in WEIGHT_NAMES)
        weight = next(likely, None) if asked is None else named
        columns = EdgeColumns(*names, weight if weight not in names else None)
    if len(remarks.found) > before:
        return None
    content = source.read(text=names, only={*names, *([] if columns.weight is None else [columns.weight])})
    for name in names:
        with remarks.gathered():
            ends.append(identifiers(source.place(name), content[name], source.typed))
    if columns.weight is not None:
        with remarks.gathered():
            weights = _weights(source.place(columns.weight), plain(content[columns.weight], source.typed))
        if asked is None:
            found, done = f"a column {columns.weight!r}", "its numbers are the weights of the edges"
            remarks.note(source.name, found, 'weight="COL"', done, _IGNORE_WEIGHTS)
    for name in source.names:
        if name not in (*names, columns.weight) and name.lower() not in WEIGHT_NAMES:
            remarks.column(source.name, name, _PERHAPS_WEIGHT if asked is None else _UNUSED)
    if not source.typed and all(re.fullmatch(r"\d+", name) for name in names):
        found, allowed = "numbers for names of columns", "a first line with names"
        advice = "If it is one, write a line with names above it."
        remarks.note(source.name, found, allowed, "the first line is no edge", advice)
    if content.num_rows == 0:
        remarks.note(source.name, "no rows", "at least one edge", "there are no edges")
    if len(ends) < 2:
        return None
    if source.typed and is_text(ends[0].type) != is_text(ends[1].type):
        given = f"text in one of the columns {listed(names)} and whole numbers in the other"
        remarks.add(source.name, given, "ids of one type")
        return None
    columns = replace(columns, weight=REPEATS) if asked == REPEATS else columns
    return EdgeTable(
        source.name, *of_one_type(*ends), columns, weights, source.typed, weights is None and asked in (None, REPEATS)
    )


def _end_names(file: Source, columns: EdgeColumns) -> tuple[str, str]:
    if columns.source is not None and columns.target is not None:
        return columns.source, columns.target
    if columns.source is not None or columns.target is not None:
        refuse("source and target", f"{columns.source!r} and {columns.target!r}", "both names or none")
    by_lower = {name.lower(): name for name in file.names}
    for source, target in END_NAMES:
        if source in by_lower and target in by_lower:
            return by_lower[source], by_lower[target]
    if len(file.names) < 2:
        refuse(file.name, f"one column {listed(list(file.names))}", "two columns with the ids of both ends")
    source, target, *_ = file.names
    return source, target


def _weights(place: str, column: pa.Array) -> np.ndarray:
    """(E,) at least 0."""
    cells = numbers(column, decimal_of(column.drop_null())) if is_text(column.type) else column
    allowed, advice = "numbers of at least 0", _IGNORE_WEIGHTS
    if not (is_number(cells.type) or pa.types.is_null(cells.type)):
        refuse(place, f"values of type {column.type}", allowed, advice)
    weights = floats(cells)
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        given = f"missing, negative or infinite weights ({listed(pc.filter(column, pa.array(wrong)))})"
        refuse(place, given, allowed, advice)
    return weights


def of_one_type(ids: pa.Array, others: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both unchanged, or both as text if one of them is text."""
    if is_text(ids.type) == is_text(others.type):
        return ids, others
    return pc.cast(ids, pa.large_string()), pc.cast(others, pa.large_string())


def check_types(place: str, ids: pa.Array, typed: bool, nodes: pa.Array, nodes_typed: bool) -> None:
    """Two files that both say what their ids are must agree. Numbers in a CSV file may stand for text."""
    if typed and nodes_typed and len(ids) and is_text(ids.type) != is_text(nodes.type):
        words = {True: "text", False: "whole numbers"}
        given, allowed = words[is_text(ids.type)], words[is_text(nodes.type)]
        advice = "Write the ids of both tables with the same type."
        refuse(place, f"ids that are {given}", f"{allowed}, as in the node table", advice)


def join(
    edges: EdgeTable,
    ids: pa.Array,
    typed: bool,
    remarks: Remarks,
    *,
    drop_unknown: bool = False,
    directed: bool | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(2, E) int64: the positions in `ids` of both ends of each edge; and the weights (E,), if there are any.

    Edges with unknown ids are an error, or with `drop_unknown` left out. Edges of weight 0 are left out. Unless nothing
    is known about directions (None), each edge is there once. One note says what became of all rows.
    typed: whether a table says that `ids` are numbers or text.
    """
    names = listed([edges.columns.source, edges.columns.target])
    check_types(f"{edges.name}, columns {names}", edges.source, edges.typed, ids, typed)
    (source, nodes), (target, _) = of_one_type(edges.source, ids), of_one_type(edges.target, ids)
    # The position of an unknown id is null.
    positions = [pc.index_in(end, value_set=nodes) for end in (source, target)]
    unknown = np.logical_or(*(position.is_null().to_numpy(zero_copy_only=False) for position in positions))
    pairs = np.stack([pc.fill_null(position, -1).to_numpy().astype(np.int64) for position in positions])
    if unknown.any():
        share = f"{int(unknown.sum())} of {unknown.size} edges"
        if not drop_unknown or unknown.all():
            ends = zip((source, target), positions, strict=True)
            absent = [pc.filter(end, position.is_null()) for end, position in ends]
            given = f"{share} with ids that no node has ({listed(pc.unique(pa.chunked_array(absent)))})"
            same = 'Both tables must use the same ids; id="COL" names the column of the node table that has them.'
            advice = same if unknown.all() else "drop_unknown_edges=True leaves them out."
            refuse(edges.name, given, "edges between ids of the node table", advice)
    weights, kept = edges.weights, ~unknown
    if weights is not None:
        kept &= weights > 0
        weights = weights[kept]
    found, more = Edges(pairs[:, kept], weights), dict[str, int]()
    if directed is not None or edges.columns.weight == REPEATS:
        merged, more = merged_edges(found.pairs, weights, len(ids), bool(directed), edges.counted)
        found = merged if any(more.values()) else found
    if unknown.any() or any(more.values()):
        more |= {"with ids that no node has": int(unknown.sum()), "of weight 0": int((~unknown & ~kept).sum())}
        remarks.notes.append(f"{edges.name}: {accounted(found, unknown.size, 'row', more, _ONCE)}")
    if edges.columns.weight == REPEATS and found.weights is None:
        return found.pairs, np.ones(found.pairs.shape[1])
    return found.pairs, found.weights
