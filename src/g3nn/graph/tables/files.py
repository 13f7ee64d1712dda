"""Tables from anywhere: their format, the names of their columns, and their content as Arrow tables.

The format of a file is detected from its content. What is neither Parquet nor Excel nor JSON is read as text
with a header line, gzipped or not. Data frames of any library are taken too.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from g3nn.base.errors import DataError, Problems, suggestion
from g3nn.base.parse import is_frame
from g3nn.graph.outcomes.labels import is_missing
from g3nn.graph.tables.cells import NULL_WORDS
from g3nn.graph.tables.csv_files import (
    PER_BYTE,
    SAVE_AS,
    check_memory,
    open_csv,
    read_csv,
    read_text,
    readable,
    shortened,
)
from g3nn.graph.tables.remarks import Oddity, Remarks, listed

PARQUET_SUFFIXES = (".parquet", ".pq")

_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"
"""Among cells of several types; no code such as 007, and no number that a float would round."""

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_OTHER_KEYS = {"edges": ("links",)}
"""What a list of the objects of an argument may be called besides."""
_NESTED = Oddity("lists or objects", "one value in each cell", "left out", "Write one column for each value in them.")

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
    load:  reads some columns by their names in the table. In a CSV file, some of them stay text, and some words stand
           for missing values among numbers.
    """

    name: str
    names: dict[str, str]
    load: Callable[[list[str], list[str], Sequence[str]], pa.Table]
    typed: bool = True

    @classmethod
    def open(cls, table: object, argument: str, remarks: Remarks) -> Source:
        """table: the path of a file, any data frame, or what this has returned before."""
        if isinstance(table, Source):
            return table
        if not isinstance(table, str | Path):
            return cls._held(f"{argument} (data frame)", argument, from_frame(table, argument))
        path, name = Path(table), str(Path(table))
        start = _first_bytes(path)
        if start.startswith(b"PAR1"):
            with readable(path), pa_parquet.ParquetFile(path) as file:
                names = _distinct(name, file.schema_arrow.names)
            return cls(name, names, lambda columns, text, nulls: _read_parquet(path, columns))
        if start.startswith(b"PK\x03\x04"):
            return cls._held(name, name, read_excel(path))
        if path.suffix.lower() in PARQUET_SUFFIXES:
            raise DataError(f"{path}: does not begin like a Parquet file: it is damaged or has another format.")
        if path.name.lower().removesuffix(".gz").endswith(JSON_SUFFIXES) or re.match(
            rb"(\xef\xbb\xbf)?\s*(\[\s*)?\{", start
        ):
            return cls._held(name, name, read_json(path, argument, remarks))
        content, raw, delimiter = open_csv(path, remarks)
        return cls(name, _distinct(name, raw), partial(read_csv, path, content, delimiter), typed=False)

    @classmethod
    def _held(cls, name: str, place: str, content: pa.Table) -> Source:
        """A table that was read as a whole."""
        return cls(name, _distinct(place, content.column_names), lambda columns, text, nulls: content.select(columns))

    def place(self, column: str | None) -> str:
        """Where a problem is."""
        return f"{self.name}, column {column!r}"

    def check_roles(self, roles: Mapping[str, Sequence[str | None]], problems: Problems) -> None:
        """Every column that is named for a role must exist and have no other role."""
        role_of: dict[str, str] = {}
        for role, name in ((role, name) for role, names in roles.items() for name in names if name is not None):
            if name not in self.names:
                no_column(f"{self.name}, {role} column", name, self.names, problems)
            elif role_of.setdefault(name, role) != role:
                place = f"{self.name}, {role} column"
                problems.add(place, f"{name!r}, which is also the {role_of[name]} column", "a column of its own")

    def read(
        self, text: Collection[str] = (), only: Collection[str] | None = None, nulls: Sequence[str] = NULL_WORDS
    ) -> pa.Table:
        """All columns, or `only` some. In a CSV file, those in `text` stay text even if they look like numbers.

        nulls: what stands for a missing value among the numbers of a CSV file.
        """
        chosen = {name: raw for name, raw in self.names.items() if only is None or name in only}
        kept = [self.names[name] for name in text if name in self.names]
        return self.load(list(chosen.values()), kept, nulls).rename_columns(list(chosen))


def no_column(place: str, name: str, names: Iterable[str], problems: Problems) -> None:
    given = f"no {name!r} among {listed(list(names))}"
    problems.add(place, given, f"a column {name!r}", suggestion(name, names))


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
    with readable(path), pa_parquet.ParquetFile(path) as file:
        metadata = file.metadata
        # At least, as numbers or, of a whole table, as it is stored once decompressed. To ask for the size of a single
        # column of a damaged file may end the process.
        groups = range(metadata.num_row_groups) if len(columns) >= metadata.num_columns else ()
        stored = sum(metadata.row_group(place).total_byte_size for place in groups)
        check_memory(path, max(stored, 8 * metadata.num_rows * len(columns)))
        table = file.read(columns=choice).select(columns)
        table.validate(full=True)
    return table


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


def from_frame(frame: object, argument: str) -> pa.Table:
    """Any data frame. A column of mixed objects becomes text."""
    if not is_frame(frame):
        raise DataError(f"{argument}: {type(frame).__name__} is neither a path nor a data frame.")
    try:
        columns = list(nw.from_native(frame, eager_only=True).iter_columns())
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"{argument}: several columns have the same name. Rename them or take them out.") from error
    try:
        return pa.table([_array(column) for column in columns], names=[str(column.name) for column in columns])
    except UnicodeEncodeError as error:
        raise DataError(f"{argument}: holds halves of characters, such as {error.object[error.start]!r}.") from error


def _array(column: nw.Series[Any]) -> pa.Array:
    try:
        return column.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _from_objects(column.to_list())


def _from_objects(items: Sequence[object]) -> pa.Array:
    """Values of one type as they are, of several types as text, or as numbers if all of them are."""
    items = [None if is_missing(item) else item for item in items]
    try:
        return pa.array(items)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = pa.array([None if item is None else str(item) for item in items], pa.large_string())
    return pc.cast(texts, pa.float64()) if pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py() else texts


def read_json(path: Path, argument: str, remarks: Remarks) -> pa.Table:
    """A list of objects, one for each row, or an object in each line; in an object of lists, that of this argument.
    What is nested is left out."""
    content = read_text(path, remarks).decode("utf-8-sig")
    with readable(path):
        try:
            found = json.loads(content)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
            found = [_line(path, number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
    if isinstance(found, dict):
        held = next((found[name] for name in (argument, *_OTHER_KEYS.get(argument, ())) if name in found), found)
        if others := [key for key, value in found.items() if held is not found and value is not held]:
            remarks.notes.append(f"{path}: {argument} were read, and nothing else ({listed(others)})")
        found = [held] if isinstance(held, dict) and not all(map(_is_nested, held.values())) else held
    if not (isinstance(found, list) and found and all(isinstance(row, dict) for row in found)):
        raise DataError(f'{path}: is JSON, but no list of objects such as [{{"id": 1}}, {{"id": 2}}].')
    cells = {name: [row.get(name) for row in found] for name in dict.fromkeys(key for row in found for key in row)}
    for name in [name for name, items in cells.items() if any(map(_is_nested, items))]:
        remarks.column(str(path), name, _NESTED)
        del cells[name]
    with readable(path):
        return pa.table([_from_objects(items) for items in cells.values()], names=list(cells))


def _is_nested(item: object) -> bool:
    return isinstance(item, dict | list)


def _line(path: Path, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: line {number} is no JSON: {error.msg} in {shortened(line)!r}") from error


def openpyxl_for(path: Path) -> ModuleType:
    """The package that reads and writes an Excel file."""
    try:
        import openpyxl
    except ImportError as error:
        raise DataError(f"{path}: Excel files need the package openpyxl: pip install 'g3nn[excel]'") from error
    return openpyxl


def read_excel(path: Path) -> pa.Table:
    """The first sheet; its first row holds the names of the columns."""
    openpyxl: Any = openpyxl_for(path)
    try:
        # A path would have to end as Excel wants it.
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as parts:
                check_memory(path, PER_BYTE * sum(part.file_size for part in parts.infolist()))
            with contextlib.redirect_stdout(io.StringIO()):  # It prints what it finds wrong with styles.
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            rows = list(book.worksheets[0].iter_rows(values_only=True))
    except DataError:
        raise
    except Exception as error:  # the reader raises whatever its parsers do
        reason = shortened(str(error))
        raise DataError(f"{path}: is a zip file but no Excel sheet that can be read ({reason}).") from error
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise DataError(f"{path}: is empty.")
    width = max(place + 1 for row in rows for place, cell in enumerate(row) if cell is not None)
    names = ["" if cell is None else str(cell) for cell in rows[0][:width]]
    columns = [[row[place] if place < len(row) else None for row in rows[1:]] for place in range(width)]
    return pa.table([_from_objects(column) for column in columns], names=names)
