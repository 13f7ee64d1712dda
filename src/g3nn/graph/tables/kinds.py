"""Types of edges and kinds of nodes in tables: the columns that hold them, and several files, one for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import Problem, counted, refuse
from g3nn.base.parse import NONE, TYPE_NAMES, type_names
from g3nn.graph.tables.cells import is_number, is_text, known, plain, texts
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.remarks import Remarks, listed

MOST_GUESSED = 100
"""A column with more texts is only the type or kind if it is named as such."""
FILE = "(file)"
"""The column that says from which of several files a row is; no column of a table is called so by chance."""


@dataclass(frozen=True)
class Role:
    """What a column of types or of kinds is called: as an argument, in sentences, and by default."""

    argument: str
    noun: str
    row: str
    usual: tuple[str, ...]

    def named(self, asked: str | None) -> str | None:
        """The column, if one was asked for."""
        return None if asked in (None, NONE, FILE) else asked

    def likely(self, names: Collection[str], used: Collection[str | None] = ()) -> str | None:
        """The column whose name says what it holds."""
        by_lower = {name.lower(): name for name in names if name not in used}
        return next((by_lower[name] for name in self.usual if name in by_lower), None)


TYPE = Role("edge_type", "type", "edge", TYPE_NAMES)
KIND = Role("kind", "kind", "node", ("kind", "node_type", "node_kind", "type"))


def read_names(
    role: Role,
    source: Source,
    column: str,
    cells: pa.ChunkedArray,
    sure: bool,
    remarks: Remarks,
    nulls: tuple[str, ...],
) -> np.ndarray | None:
    """(m,) the type or kind of each row; None if the column holds other things, unless it is surely meant. Gaps are an
    error."""
    raw, place = plain(cells, source.typed), source.place(column)
    leave = f'{role.argument}="{NONE}"'
    if not (is_text(raw.type) or is_number(raw.type) or pa.types.is_boolean(raw.type) or pa.types.is_null(raw.type)):
        if not sure:
            return None
        refuse(place, f"values of type {raw.type}", f"the {role.noun} of each {role.row}, by name or number")
    names = texts(known(raw, nulls))
    if not sure and not (is_text(raw.type) and 2 <= len(pc.unique(names.drop_null())) <= MOST_GUESSED):
        return None
    if names.null_count:
        rows = np.flatnonzero(names.is_null()) + 1
        given = f"{counted(len(rows), 'gap')} among {counted(len(names), role.row)} (row {listed(rows)})"
        advice = f"Fill them, say with a {role.noun} called unknown; or {leave} reads no {role.noun}s."
        refuse(place, given, f"the {role.noun} of each {role.row}", advice)
    if not sure:
        done = f"its {len(pc.unique(names))} texts are the {role.noun}s of the {role.row}s"
        advice = f"{leave} reads no {role.noun}s."
        remarks.note(source.name, f"a column {column!r}", f'{role.argument}="COL"', done, advice)
    return np.array(names.to_pylist(), dtype=object)


def about_columns(problems: Iterable[Problem], places: Mapping[str, str]) -> list[Problem]:
    """Problems with types and kinds, at the places they come from."""
    return [replace(one, argument=places.get(one.argument, one.argument)) for one in problems]


def parts_of(table: object, argument: str, by_file: bool) -> list[tuple[str, object]] | None:
    """Several tables with their names: a list of files, which are called as they are without their ending, or a mapping
    from names. None for a single table, unless its rows go `by_file`."""
    if isinstance(table, Mapping) and table:
        return list(zip(type_names(table), table.values(), strict=True))
    if by_file and isinstance(table, str | Path):
        return [(stem(table), table)]
    if not isinstance(table, list | tuple | Mapping):
        return None
    if not table or not all(isinstance(part, str | Path) for part in table):
        given = "data frames without names" if table else "an empty list or mapping"
        refuse(argument, given, "a table, files, or a mapping from names to tables")
    return [(stem(part), part) for part in table]


def alone(table: object) -> object:
    """The only table of a list of one."""
    return table[0] if isinstance(table, list | tuple) and len(table) == 1 else table


def stem(path: str | Path) -> str:
    return Path(path).name.removesuffix(".gz").rpartition(".")[0] or Path(path).name


def open_nodes(table: object, kind: str | None, remarks: Remarks) -> Source:
    """One table, or several below each other. Unless they all have kinds of their own, a column `FILE` says from which
    a row is."""
    parts = None if isinstance(table, Source) else parts_of(table, "nodes", kind == FILE)
    if parts is None:
        return Source.open(table, "nodes", remarks)
    sources = [(name, Source.open(part, f"nodes[{name!r}]", remarks)) for name, part in parts]
    names = dict.fromkeys(name for _, source in sources for name in source.names)
    common = [name for name in names if all(name in source.names for _, source in sources)]
    marked = kind == FILE or (kind is None and KIND.likely(common) is None)

    def load(columns: list[str], text: list[str], nulls: Iterable[str]) -> pa.Table:
        how: dict[str, Any] = {"text": text, "only": columns, "nulls": tuple(nulls)}
        read = [(name, source.typed, source.read(**how)) for name, source in sources]
        return pa.table({column: below(column, read) for column in columns})

    held = {name: name for name in (*names, *([FILE] if marked else []))}
    return Source(", ".join(source.name for _, source in sources), held, load, all(one.typed for _, one in sources))


def below(column: str, read: list[tuple[str, bool, pa.Table]]) -> pa.ChunkedArray:
    """A column of several tables, with gaps where one does not have it; text if it is text in some. Of each its name,
    and whether it says what is text."""
    parts = [
        pa.array([name] * table.num_rows, pa.large_string())
        if column == FILE
        else plain(table[column], typed)
        if column in table.column_names
        else pa.nulls(table.num_rows)
        for name, typed, table in read
    ]
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
    kind = next(iter(kinds), pa.null())
    if len(kinds) > 1:
        quantities = all(is_number(one) or pa.types.is_boolean(one) for one in kinds)
        kind = pa.float64() if quantities else pa.large_string()
        kind = pa.int64() if all(map(pa.types.is_integer, kinds)) else kind
    return pa.chunked_array([pc.cast(part, kind) for part in parts], kind)
