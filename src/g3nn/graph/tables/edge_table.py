"""The edge table: one row per edge. `load_edges` reads it, `join` finds its ids in the node table."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import refuse
from g3nn.base.parse import NONE, Edges, accounted, merged_edges
from g3nn.graph.tables.cells import decimal_of, floats, identifiers, is_number, is_text, numbers, plain
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.kinds import FILE, TYPE, below, parts_of, read_names
from g3nn.graph.tables.remarks import Remarks, listed

END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Names by which the two ends of an edge are recognised, in upper or lower case."""
WEIGHT_NAMES = ("weight", "weights")
"""Names by which a column of weights is recognised."""
NO_WEIGHT = "none"
"""What to say for the weight where there is such a column but edges count alike."""
REPEATS = "(repeats)"
"""The weight of the edges where it is how often they were stated; no column is called so by chance."""

_ONCE = f'weight="{NO_WEIGHT}"'
_NO_EDGE = "of weight 0"
_IGNORE_WEIGHTS = f"{_ONCE} ignores them."


@dataclass(frozen=True)
class EdgeColumns:
    """The columns with the two ends of an edge, with its weight, and with its type.

    By default the ends are columns with `END_NAMES`, else the first two, and the weight is a column of numbers with one
    of `WEIGHT_NAMES`. A weight must be a finite number of at least 0; 0 is no edge. The type is by default a column of
    few texts with one of the names of `TYPE`. All others that are not to be ignored describe the edges.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None
    type: str | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges by the ids of their two ends, int64 or text, from `columns`; weights and types (E,) or None. counted:
    whether an edge without a weight counts as often as it is stated. content: the columns that describe them."""

    name: str
    source: pa.Array
    target: pa.Array
    columns: EdgeColumns
    weights: np.ndarray | None = None
    typed: bool = True
    counted: bool = False
    types: np.ndarray | None = None
    content: pa.Table | None = None


def load_edges(table: object, columns: EdgeColumns, remarks: Remarks) -> EdgeTable | None:
    """Read an edge table, or several, one for each type; None if its ids cannot be read."""
    parts = None if isinstance(table, Source) else parts_of(table, "edges", columns.type == FILE)
    if parts is not None:
        sources = [(name, Source.open(part, f"edges[{name!r}]", remarks)) for name, part in parts]
        return _load_several(sources, columns, remarks)
    source = Source.open(table, "edges", remarks)
    before, ends, weights, types, asked = len(remarks.found), list[pa.Array](), None, None, columns.weight
    named, type, sure = None if asked in (NO_WEIGHT, REPEATS) else asked, TYPE.named(columns.type), bool(columns.type)
    roles = {"source": [columns.source], "target": [columns.target], "weight": [named], TYPE.argument: [type]}
    source.check_roles(roles, remarks)
    with remarks.gathered():
        names = _end_names(source, columns)
        likely = (name for name in source.names if name.lower() in WEIGHT_NAMES)
        weight = next(likely, None) if asked is None else named
        weight = weight if weight not in names else None
        used = (*names, weight, *columns.ignore)
        columns = EdgeColumns(*names, weight, type if sure else TYPE.likely(source.names, used), columns.ignore)
    if len(remarks.found) > before:
        return None
    special = {*names, columns.weight, columns.type, *columns.ignore}
    others = [name for name in source.names if name not in special and name.lower() not in WEIGHT_NAMES]
    chosen = {name for name in (*names, columns.weight, columns.type, *others) if name is not None}
    content = source.read(text=[*names, type] if type else names, only=chosen)
    for name in names:
        with remarks.gathered():
            ends.append(identifiers(source.place(name), content[name], source.typed))
    if columns.weight is not None:
        with remarks.gathered():
            weights = _weights(source.place(columns.weight), plain(content[columns.weight], source.typed))
        if asked is None:
            found, done = f"a column {columns.weight!r}", "its numbers are the weights of the edges"
            remarks.note(source.name, found, 'weight="COL"', done, _IGNORE_WEIGHTS)
    if columns.type is not None:
        with remarks.gathered():
            types = read_names(TYPE, source, columns.type, content[columns.type], sure, remarks, ("",))
    others += [] if types is not None or columns.type is None else [columns.type]
    ignored = tuple(name for name in columns.ignore if name in source.names)
    columns = replace(columns, type=None if types is None else columns.type, ignore=ignored)
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
    counted = weights is None and asked in (None, REPEATS)
    described = content.select(others) if others else None
    return EdgeTable(source.name, *of_one_type(*ends), columns, weights, source.typed, counted, types, described)


def _load_several(sources: list[tuple[str, Source]], columns: EdgeColumns, remarks: Remarks) -> EdgeTable | None:
    """Tables of edges below each other. Unless they all have types of their own, each is a type. Where only some have
    the column of weights, the edges of the others weigh 1."""
    common = [name for name in sources[0][1].names if all(name in source.names for _, source in sources)]
    own = TYPE.named(columns.type)
    if columns.type is None:
        own = TYPE.likely(common, (columns.source, columns.target, columns.weight))
    # Where files are types, a later table may be one that had no weights in the fit.
    weighted = columns.type == FILE or any(columns.weight in source.names for _, source in sources)
    read = list[EdgeTable]()
    for name, source in sources:
        unweighted = weighted and columns.weight not in (None, REPEATS, *source.names)
        how = replace(columns, type=own or NONE, weight=NO_WEIGHT if unweighted else columns.weight)
        one = load_edges(source, how, remarks)
        if one is not None:
            of_file = None if own or columns.type == NONE else np.full(len(one.source), name, dtype=object)
            read.append(one if own else replace(one, types=of_file))
    if len(read) < len(sources):
        return None
    is_words = any(is_text(end.type) for one in read for end in (one.source, one.target))
    kind = pa.large_string() if is_words else pa.int64()
    ends = {(one.columns.source, one.columns.target) for one in read}
    names = ends.pop() if len(ends) == 1 else (None, None)
    weight = next((one.columns.weight for one in read if one.columns.weight is not None), None)
    weights = [np.ones(len(one.source)) if one.weights is None else one.weights for one in read]
    ignored = tuple(dict.fromkeys(name for one in read for name in one.columns.ignore))
    return EdgeTable(
        ", ".join(one.name for one in read),
        pa.concat_arrays([pc.cast(one.source, kind) for one in read]),
        pa.concat_arrays([pc.cast(one.target, kind) for one in read]),
        EdgeColumns(*names, weight, own or (None if columns.type == NONE else FILE), ignored),
        np.concatenate(weights) if any(one.weights is not None for one in read) else None,
        all(one.typed for one in read),
        all(one.counted for one in read),
        None if read[0].types is None else np.concatenate([one.types for one in read if one.types is not None]),
        _below_each_other(read),
    )


def _below_each_other(read: list[EdgeTable]) -> pa.Table | None:
    names = dict.fromkeys(name for one in read if one.content is not None for name in one.content.column_names)
    if not names:
        return None
    rows = [pa.table({"": np.arange(len(one.source))}) if one.content is None else one.content for one in read]
    parts = [(one.name, one.typed, table) for one, table in zip(read, rows, strict=True)]
    return pa.table({name: below(name, parts) for name in names})


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


class Located(NamedTuple):
    """Edges as they were stated, by positions of ids, without those of unknown ids and of weight 0; how many these are,
    and how many rows there were. repeats: whether edges without weights count as often as they were stated. content:
    the columns that describe them."""

    edges: Edges
    left_out: dict[str, int]
    rows: int
    repeats: bool = False
    content: pa.Table | None = None

    def where(self, kept: np.ndarray) -> Located:
        """Some of the edges, by a mask."""
        content = None if self.content is None else self.content.filter(pa.array(kept))
        return self._replace(edges=self.edges.at(kept), content=content)

    def merged(
        self, table: str, n: int, remarks: Remarks, directed: bool | None, always: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Unless nothing is known about directions (None), each edge once; and its weight, if there are any or it must
        `always` have one. One note says what became of all rows."""
        found, more = self.edges, dict[str, int]()
        if directed is not None or always:
            merged, more = merged_edges(found.pairs, found.weights, n, bool(directed), self.repeats)
            found = merged if any(more.values()) else found
        if any(count for why, count in self.left_out.items() if why != _NO_EDGE) or any(more.values()):
            remarks.notes.append(f"{table}: {accounted(found, self.rows, 'row', {**more, **self.left_out}, _ONCE)}")
        return found.pairs, np.ones(found.pairs.shape[1]) if always and found.weights is None else found.weights


def join(
    edges: EdgeTable,
    ids: pa.Array,
    typed: bool,
    remarks: Remarks,
    *,
    drop_unknown: bool = False,
    directed: bool | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(2, E) int64: the positions in `ids` of both ends of each edge; and the weights (E,), if there are any. See
    `locate` and `Located.merged`."""
    found = locate(edges, ids, typed, drop_unknown)
    return found.merged(edges.name, len(ids), remarks, directed, edges.columns.weight == REPEATS)


def locate(edges: EdgeTable, ids: pa.Array, typed: bool, drop_unknown: bool) -> Located:
    """Edges with unknown ids are an error, or with `drop_unknown` left out. Edges of weight 0 are left out.

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
    kept = ~unknown
    if edges.weights is not None:
        kept &= edges.weights > 0
    left_out = {"with ids that no node has": int(unknown.sum()), _NO_EDGE: int((~unknown & ~kept).sum())}
    every = Edges(pairs, edges.weights, types=edges.types)
    return Located(every, left_out, unknown.size, edges.counted, edges.content).where(kept)
