"""Table files: what kind of file lies there, the names of its columns, and its columns as Arrow data.

Parquet files are known by their content. Everything else is read as text in UTF-8 with a header line: tabs between the
values of a .tsv file, otherwise whichever of comma, semicolon and tab the header holds most of. Text may be gzipped.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from g3nn.errors import DataError

PARQUET_SUFFIXES = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t")

_FOREIGN = {
    b"PK\x03\x04": "is an Excel or zip file",
    b"ARROW1": "is an Arrow file",
    b"FEA1": "is a Feather file",
    b"\xff\xfe": "is UTF-16 text, not UTF-8",
    b"\xfe\xff": "is UTF-16 text, not UTF-8",
}
"""What other files begin with."""

_BLOCK = 2**24
"""Bytes of text that are parsed at once. No row may be longer."""

_SAVE_AS = "Save it as Parquet, or as CSV in UTF-8."
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class TableFile:
    """A table that was looked at but not read yet.

    names: its columns. The row numbers that pandas writes unasked, in a column without a name, are none of them.
    typed: whether the file says what each column holds; a CSV file holds text only.
    raw:   the names as they stand in the file, by the names without blanks around them.
    """

    name: str
    path: Path
    names: tuple[str, ...]
    typed: bool
    raw: dict[str, str]
    delimiter: str = ","

    @classmethod
    def open(cls, path: str | Path) -> TableFile:
        path = Path(path)
        start = _start(path)
        if start.startswith(b"PAR1"):
            with _readable(path), pa_parquet.ParquetFile(path) as file:
                raw = file.schema_arrow.names
            delimiter, typed = "", True
        elif path.suffix.lower() in PARQUET_SUFFIXES:
            raise DataError(f"{path}: does not begin as a Parquet file does: damaged, or another kind of file.")
        else:
            _check_utf8(path)
            (raw, delimiter), typed = _header(path), False
        _check_names(path, raw)
        names = {name.strip(): name for name in raw if not _row_numbers(name, raw)}
        return cls(str(path), path, tuple(names), typed, names, delimiter)

    def read(self, text: Collection[str] = (), only: Collection[str] | None = None) -> pa.Table:
        """All columns, or `only` some; those in `text` are left as text where the file does not say what they hold."""
        wanted = [name for name in self.names if only is None or name in only]
        raw = [self.raw[name] for name in wanted]
        with _readable(self.path):
            if self.typed:
                table = _read_parquet(self.path, raw, everything=only is None)
            else:
                table = self._read_csv(raw, [self.raw[name] for name in text if name in self.raw])
        if table.num_rows == 0:
            raise DataError(f"{self.path}: has a header but no rows.")
        return table.rename_columns(wanted)

    def _read_csv(self, columns: list[str], text: list[str]) -> pa.Table:
        bad: list[Any] = []

        def skip(row: Any) -> str:
            bad.append(row)
            return "skip"

        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip)
        convert = pa_csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(text, pa.large_string()))
        read = pa_csv.ReadOptions(block_size=_BLOCK)
        with _binary(self.path) as stream:
            table = pa_csv.read_csv(stream, read, parse, convert)
        if bad:
            first = bad[0]
            found = f"{len(bad)} rows that do not fit the header, e.g. {_shortened(first.text)!r}"
            widths = f"with {first.actual_columns} instead of {first.expected_columns} values"
            raise DataError(f"{self.path}: {found} {widths}. Put values that hold a separator in quotes.")
        return table


def _start(path: Path) -> bytes:
    """The first bytes of a file of ours; raises where it is none."""
    if not path.is_file():
        raise DataError(f"{path}: {'is a folder' if path.is_dir() else 'there is no such file'}.")
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error
    if not start:
        raise DataError(f"{path}: is empty.")
    for magic, words in _FOREIGN.items():
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
        # A name in quotes may go on in the next line.
        names = next(csv.reader(_chain(first, lines), delimiter=delimiter))
        return names, delimiter


def _chain(first: str, rest: Any) -> Iterator[str]:
    yield first
    yield from rest


def _check_names(path: Path, names: list[str]) -> None:
    stripped = [name.strip() for name in names if not _row_numbers(name, names)]
    double = sorted({name for name in stripped if stripped.count(name) > 1} - {""})
    if double:
        raise DataError(f"{path}: several columns are called {double[0]!r}. Rename them or take them out.")
    if "" in stripped:
        raise DataError(f"{path}: a column has no name. Give it one or take it out.")
    if not stripped:
        raise DataError(f"{path}: has no column.")


def _row_numbers(name: str, names: list[str]) -> bool:
    """Whether pandas wrote its row numbers there: first and without a name in a CSV file, with its own in Parquet."""
    return bool(_PANDAS_INDEX.fullmatch(name)) or (not name.strip() and name is names[0])


def _read_parquet(path: Path, columns: list[str], everything: bool) -> pa.Table:
    # In a choice of columns a point would lead into a nested one.
    chosen = None if everything or any("." in name for name in columns) else columns
    with pa_parquet.ParquetFile(path) as file:
        table = file.read(columns=chosen).select(columns)
    table.validate(full=True)
    return table


@contextmanager
def _binary(path: Path) -> Iterator[Any]:
    """The bytes of a file, unzipped if they are zipped."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as stream:
        yield stream


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever stops a reader means that the file is not what it should be."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, KeyError, csv.Error, zlib.error) as error:
        if "Empty CSV" in str(error):
            raise DataError(f"{path}: has a header but no rows.") from error
        raise DataError(f"{path}: damaged or cut short: {_shortened(str(error))}") from error


def _check_utf8(path: Path) -> None:
    """Raise where the text stops being UTF-8. Done first, as readers differ in what they make of such text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _readable(path), _binary(path) as stream:
        try:
            while chunk := stream.read(_BLOCK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            stream.seek(0)
            bad = next(number for number, line in enumerate(stream, start=1) if not _decodes(line))
            raise DataError(f"{path}: is not UTF-8 text, first in line {bad}. {_SAVE_AS}") from error


def _decodes(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _shortened(text: str, longest: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}..."
