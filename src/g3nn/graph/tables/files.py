"""Tables from anywhere: their format, the names of their columns, and their content as Arrow tables.

The format of a file is detected from its content. What is neither Parquet nor Excel is read as text with a header line,
gzipped or not. Data frames of any library are taken too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from g3nn.base.errors import DataError, Problems, suggestion
from g3nn.graph.tables.cells import NULL_WORDS
from g3nn.graph.tables.columns import listed
from g3nn.graph.tables.csv_files import SAVE_AS, UTF8, encoding_of, header, read_csv, readable
from g3nn.graph.tables.frames import EXCEL, PARQUET_SUFFIXES, check_room, from_frame, read_excel
from g3nn.graph.tables.remarks import Remarks

_OTHER_FORMATS = {b"ARROW1": "is an Arrow file", b"FEA1": "is a Feather file", b"\xd0\xcf": "is an old Excel file"}
"""By their first bytes."""

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, eq=False)
class Source:
    """A table whose header has been read: a file, or a data frame.

    name:  what messages call it.
    names: the columns as they are called in the table, by their names without blanks around them. The column of row
           numbers that pandas writes by default is left out.
    typed: whether the table says what each column holds, as Parquet and data frames do; a CSV file holds text only.
    path, delimiter, encoding: of a file that is read later; content: of a table that has been read.
    """

    name: str
    names: dict[str, str]
    typed: bool = True
    path: Path | None = None
    delimiter: str = ""
    encoding: str = UTF8
    content: pa.Table | None = None

    @classmethod
    def open(cls, table: Any, argument: str, remarks: Remarks) -> Source:
        """table: the path of a file, any data frame, or what this has returned before."""
        if isinstance(table, Source):
            return table
        if not isinstance(table, str | Path):
            content = from_frame(table, argument)
            return cls(f"{argument} (data frame)", _distinct(argument, content.column_names), content=content)
        path = Path(table)
        start, name = _first_bytes(path), str(path)
        if start.startswith(b"PAR1"):
            with readable(path), pa_parquet.ParquetFile(path) as file:
                return cls(name, _distinct(name, file.schema_arrow.names), path=path)
        if start.startswith(EXCEL):
            content = read_excel(path)
            return cls(name, _distinct(name, content.column_names), content=content)
        if path.suffix.lower() in PARQUET_SUFFIXES:
            raise DataError(f"{path}: does not begin like a Parquet file: it is damaged or has another format.")
        encoding = encoding_of(path, remarks)
        raw, delimiter = header(path, encoding)
        return cls(name, _distinct(name, raw), False, path, delimiter, encoding)

    def place(self, column: str | None) -> str:
        """Where a problem is."""
        return f"{self.name}, column {column!r}"

    def check_roles(self, roles: Mapping[str, Sequence[str | None]], problems: Problems) -> None:
        """Every column that is named for a role must exist and have no other role."""
        role_of: dict[str, str] = {}
        for role, name in ((role, name) for role, names in roles.items() for name in names if name is not None):
            place = f"{self.name}, {role} column"
            if name not in self.names:
                problems.add(place, repr(name), f"its columns {listed(list(self.names))}", suggestion(name, self.names))
            elif role_of.setdefault(name, role) != role:
                problems.add(place, f"{name!r}, which is also the {role_of[name]} column", "a column of its own")

    def read(
        self, text: Collection[str] = (), only: Collection[str] | None = None, nulls: Sequence[str] = NULL_WORDS
    ) -> pa.Table:
        """All columns, or `only` some. In a CSV file, those in `text` stay text even if they look like numbers.

        nulls: what stands for a missing value among the numbers of a CSV file.
        """
        chosen = {name: raw for name, raw in self.names.items() if only is None or name in only}
        if self.content is not None:
            table = self.content.select(list(chosen.values()))
        else:
            assert self.path is not None
            with readable(self.path):
                if self.typed:
                    table = _read_parquet(self.path, list(chosen.values()))
                else:
                    kept = [self.names[name] for name in text if name in self.names]
                    columns = list(chosen.values())
                    table = read_csv(self.path, self.encoding, self.delimiter, columns, kept, nulls)
        return table.rename_columns(list(chosen))


def _distinct(table: str, raw: Sequence[str]) -> dict[str, str]:
    """The names of columns without blanks around them, and as they are in the table."""
    raw = [name for name in raw if not (_PANDAS_INDEX.fullmatch(name) or (name is raw[0] and not name.strip()))]
    names = [name.strip() for name in raw]
    if "" in names:
        raise DataError(f"{table}: a column has no name. Give it one or take it out.")
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise DataError(f"{table}: several columns are called {twice[0]!r}. Rename them or take them out.")
    if not names:
        raise DataError(f"{table}: has no column.")
    return dict(zip(names, raw, strict=True))


def _read_parquet(path: Path, columns: list[str]) -> pa.Table:
    # In a choice of columns, a dot would lead into a nested one.
    choice = None if any("." in name for name in columns) else columns
    with pa_parquet.ParquetFile(path) as file:
        check_room(path, _size(file.metadata, columns))
        table = file.read(columns=choice).select(columns)
    table.validate(full=True)
    return table


def _size(metadata: Any, columns: Collection[str]) -> int:
    """Bytes that some columns take at least: as numbers or, of a whole table, as they are stored once decompressed."""
    groups = range(metadata.num_row_groups) if len(columns) >= metadata.num_columns else ()
    # To ask for the size of a single column of a damaged file may end the process.
    stored = sum(metadata.row_group(place).total_byte_size for place in groups)
    return int(max(stored, 8 * metadata.num_rows * len(columns)))


def _first_bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path}: {'is a folder' if path.is_dir() else 'there is no such file'}.")
    with readable(path), path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise DataError(f"{path}: is empty.")
    for magic, words in _OTHER_FORMATS.items():
        if start.startswith(magic):
            raise DataError(f"{path}: {words}. {SAVE_AS}")
    return start
