"""Table files: their format, the names of their columns, and their content as Arrow tables.

The format is detected from the content. What is not Parquet is read as UTF-8 text with a header line, gzipped or not.
Values are separated by tabs in a .tsv file, otherwise by whichever of comma, semicolon and tab the header has most of.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from g3nn.data.tables.columns import counted, listed
from g3nn.errors import DataError, Problems, suggestion

PARQUET_SUFFIXES = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t")

_OTHER_FORMATS = {
    b"PK\x03\x04": "is an Excel or zip file",
    b"ARROW1": "is an Arrow file",
    b"FEA1": "is a Feather file",
    b"\xff\xfe": "is UTF-16 text, not UTF-8",
    b"\xfe\xff": "is UTF-16 text, not UTF-8",
}
"""By their first bytes."""

_BLOCK = 2**24
"""Bytes of text that are parsed at once. No row may be longer."""

_SAVE_AS = "Save it as Parquet, or as CSV in UTF-8."
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class TableFile:
    """A table whose header has been read.

    names: the columns as they are called in the file, by their names without blanks around them. The column of row
           numbers that pandas writes by default is left out.
    typed: whether the file says what each column holds, as Parquet does; a CSV file holds text only.
    """

    path: Path
    names: dict[str, str]
    typed: bool
    delimiter: str

    @classmethod
    def open(cls, path: str | Path) -> TableFile:
        path = Path(path)
        typed, delimiter = _first_bytes(path).startswith(b"PAR1"), ""
        if typed:
            with _readable(path), pa_parquet.ParquetFile(path) as file:
                raw = file.schema_arrow.names
        elif path.suffix.lower() in PARQUET_SUFFIXES:
            raise DataError(f"{path}: does not begin like a Parquet file: it is damaged or has another format.")
        else:
            _check_utf8(path)
            raw, delimiter = _header(path)
        raw = [name for name in raw if not (_PANDAS_INDEX.fullmatch(name) or (name is raw[0] and not name.strip()))]
        names = [name.strip() for name in raw]
        if "" in names:
            raise DataError(f"{path}: a column has no name. Give it one or take it out.")
        if twice := [name for name in names if names.count(name) > 1]:
            raise DataError(f"{path}: several columns are called {min(twice)!r}. Rename them or take them out.")
        if not names:
            raise DataError(f"{path}: has no column.")
        return cls(path, dict(zip(names, raw, strict=True)), typed, delimiter)

    def place(self, column: str | None) -> str:
        """Where a problem is."""
        return f"{self.path}, column {column!r}"

    def check_roles(self, roles: Mapping[str, Sequence[str | None]], problems: Problems) -> None:
        """Every column that is named for a role must exist and have no other role."""
        role_of: dict[str, str] = {}
        for role, name in ((role, name) for role, names in roles.items() for name in names if name is not None):
            place = f"{self.path}, {role} column"
            if name not in self.names:
                problems.add(place, repr(name), f"its columns {listed(list(self.names))}", suggestion(name, self.names))
            elif role_of.setdefault(name, role) != role:
                problems.add(place, f"{name!r}, which is also the {role_of[name]} column", "a column of its own")

    def read(self, text: Collection[str] = (), only: Collection[str] | None = None) -> pa.Table:
        """All columns, or `only` some. In a CSV file, those in `text` stay text even if they look like numbers."""
        chosen = {name: raw for name, raw in self.names.items() if only is None or name in only}
        with _readable(self.path):
            if self.typed:
                table = self._read_parquet(list(chosen.values()))
            else:
                table = self._read_csv(list(chosen.values()), [self.names[name] for name in text if name in self.names])
        if table.num_rows == 0:
            raise DataError(f"{self.path}: has a header but no rows.")
        return table.rename_columns(list(chosen))

    def _read_parquet(self, columns: list[str]) -> pa.Table:
        # In a choice of columns, a dot would lead into a nested one.
        choice = None if any("." in name for name in columns) else columns
        with pa_parquet.ParquetFile(self.path) as file:
            table = file.read(columns=choice).select(columns)
        table.validate(full=True)
        return table

    def _read_csv(self, columns: list[str], text: list[str]) -> pa.Table:
        bad: list[Any] = []

        def skip(row: Any) -> str:
            bad.append(row)
            return "skip"

        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip)
        convert = pa_csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(text, pa.large_string()))
        with _binary(self.path) as stream:
            table = pa_csv.read_csv(stream, pa_csv.ReadOptions(block_size=_BLOCK), parse, convert)
        if bad:
            first = bad[0]
            what = f"{counted(len(bad), 'row')} with more or fewer values than the header"
            example = f"{first.actual_columns} instead of {first.expected_columns} in {_shortened(first.text)!r}"
            raise DataError(f"{self.path}: {what}, e.g. {example}. Put values that contain a separator in quotes.")
        return table


def _first_bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path}: {'is a folder' if path.is_dir() else 'there is no such file'}.")
    with _readable(path), path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise DataError(f"{path}: is empty.")
    for magic, words in _OTHER_FORMATS.items():
        if start.startswith(magic):
            raise DataError(f"{path}: {words}. {_SAVE_AS}")
    return start


def _header(path: Path) -> tuple[list[str], str]:
    """The names in the first line that is not blank, and what separates them."""
    with _readable(path), _binary(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        first = next((line for line in lines if line.strip()), "")
        if not first:
            raise DataError(f"{path}: is empty.")
        unquoted = re.sub(r'"[^"]*"', "", first)
        tabs = path.name.lower().removesuffix(".gz").endswith(".tsv")
        delimiter = "\t" if tabs else max(DELIMITERS, key=unquoted.count)
        # A name in quotes may continue on the next line.
        return next(csv.reader(chain([first], lines), delimiter=delimiter)), delimiter


def _check_utf8(path: Path) -> None:
    """Raise where the text is not UTF-8. This comes first because readers treat such text differently."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    with _readable(path), _binary(path) as stream:
        try:
            while chunk := stream.read(_BLOCK):
                decoder.decode(chunk)
                line += chunk.count(b"\n")
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            line += error.object.count(b"\n", 0, error.start)
            raise DataError(f"{path}: is not UTF-8 text, first in line {line}. {_SAVE_AS}") from error


@contextmanager
def _binary(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed if they are gzipped."""
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if gzipped else path.open("rb") as stream:
        yield stream


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Any error of a reader means that the file is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, KeyError, csv.Error, zlib.error) as error:
        if reason := getattr(error, "strerror", None):
            raise DataError(f"{path}: cannot be read: {reason}.") from error
        if "Empty CSV" in str(error):
            raise DataError(f"{path}: has a header but no rows.") from error
        raise DataError(f"{path}: damaged or cut short: {_shortened(str(error))}") from error


def _shortened(text: str, longest: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}..."
