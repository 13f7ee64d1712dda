"""Tables from anywhere: their format, the names of their columns, and their content as Arrow tables.

The format of a file is detected from its content. What is neither Parquet nor Excel is read as text with a header line,
gzipped or not. Data frames of any library are taken too.
Values are separated by tabs in a .tsv file, otherwise by whichever of comma, semicolon and tab the header has most of.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from g3nn.data.tables.cells import NULL_WORDS
from g3nn.data.tables.columns import counted, listed
from g3nn.data.tables.frames import EXCEL, PARQUET_SUFFIXES, from_frame, read_excel
from g3nn.data.tables.remarks import Oddity, Remarks
from g3nn.errors import DataError, Problems, suggestion

DELIMITERS = (",", ";", "\t")
UTF8 = "utf-8"

_OTHER_FORMATS = {b"ARROW1": "is an Arrow file", b"FEA1": "is a Feather file", b"\xd0\xcf": "is an old Excel file"}
"""By their first bytes."""

_BLOCK = 2**24
"""Bytes of text that are parsed at once. No row may be longer."""

_SAVE_AS = "Save it as Parquet, or as CSV in UTF-8."
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
            with _readable(path), pa_parquet.ParquetFile(path) as file:
                return cls(name, _distinct(name, file.schema_arrow.names), path=path)
        if start.startswith(EXCEL):
            content = read_excel(path)
            return cls(name, _distinct(name, content.column_names), content=content)
        if path.suffix.lower() in PARQUET_SUFFIXES:
            raise DataError(f"{path}: does not begin like a Parquet file: it is damaged or has another format.")
        encoding = _encoding(path, remarks)
        raw, delimiter = _header(path, encoding)
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
            with _readable(self.path):
                if self.typed:
                    table = _read_parquet(self.path, list(chosen.values()))
                else:
                    kept = [self.names[name] for name in text if name in self.names]
                    table = self._read_csv(self.path, list(chosen.values()), kept, nulls)
        return table.rename_columns(list(chosen))

    def _read_csv(self, path: Path, columns: list[str], text: list[str], nulls: Sequence[str]) -> pa.Table:
        bad: list[Any] = []

        def skip(row: Any) -> str:
            bad.append(row)
            return "skip"

        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip)
        kinds = dict.fromkeys(text, pa.large_string())
        convert = pa_csv.ConvertOptions(include_columns=columns, column_types=kinds, null_values=list(nulls))
        with _utf8(path, self.encoding) as stream:
            try:
                table = pa_csv.read_csv(stream, pa_csv.ReadOptions(block_size=_BLOCK), parse, convert)
            except pa.ArrowInvalid as error:
                if "Empty CSV" not in str(error):
                    _check_quotes(path, self.encoding, self.delimiter)
                    raise
                table = pa.table({name: pa.nulls(0) for name in columns})
        if _may_swallow_rows(path, self.encoding, table.num_rows):
            _check_quotes(path, self.encoding, self.delimiter)
        if bad:
            first = bad[0]
            what = f"{counted(len(bad), 'row')} with more or fewer values than the header"
            example = f"{first.actual_columns} instead of {first.expected_columns} in {_shortened(first.text)!r}"
            raise DataError(f"{self.name}: {what}, e.g. {example}. Put values that contain a separator in quotes.")
        return table


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
        table = file.read(columns=choice).select(columns)
    table.validate(full=True)
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


def _header(path: Path, encoding: str) -> tuple[list[str], str]:
    """The names in the first line that is not blank, and what separates them."""
    with _readable(path), _binary(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig" if encoding == UTF8 else encoding, newline="")
        first = next((line for line in lines if line.strip()), "")
        if not first:
            raise DataError(f"{path}: is empty.")
        unquoted = re.sub(r'"[^"]*"', "", first)
        tabs = path.name.lower().removesuffix(".gz").endswith(".tsv")
        delimiter = "\t" if tabs else max(DELIMITERS, key=unquoted.count)
        try:
            # A name in quotes may continue on the next line.
            return next(csv.reader(chain([first], lines), delimiter=delimiter, strict=True)), delimiter
        except csv.Error:
            _check_quotes(path, encoding, delimiter)
            raise


def _may_swallow_rows(path: Path, encoding: str, rows: int) -> bool:
    """Whether there are quotes, and more lines than rows, or a quote without a second one."""
    quotes, lines, last = 0, 0, b""
    with _utf8(path, encoding) as stream:
        while chunk := stream.read(_BLOCK):
            quotes += chunk.count(b'"')
            # Two signs may end one line, also where one chunk ends between them.
            lines += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n") - (last + chunk[:1] == b"\r\n")
            last = chunk[-1:]
    lines += last not in (b"\n", b"\r")
    return quotes > 0 and (lines > rows + 1 or quotes % 2 == 1)


def _check_quotes(path: Path, encoding: str, delimiter: str) -> None:
    """Without its second quote, a value would swallow the rows up to the next quote in the file."""
    row, separators, line, limit = list[str](), 0, 1, csv.field_size_limit(2**31 - 1)

    def lines(file: io.TextIOWrapper) -> Iterator[str]:
        for text in file:
            row.append(text)
            yield text

    def refuse(line: int) -> NoReturn:
        advice = 'Close it, and write a quote inside a value twice ("").'
        raise DataError(f"{path}: a quote in line {line} is not closed as it should be. {advice}")

    with _utf8(path, encoding) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as file:
        rows = csv.reader(lines(file), delimiter=delimiter, strict=True)
        try:
            for values in rows:
                separators = separators or max(len(values) - 1, 0)
                if _are_rows(row, delimiter, separators):
                    refuse(line)
                line = rows.line_num + 1
                row.clear()
        except csv.Error:
            refuse(line + _breaks_before_quote("".join(row), delimiter))
        finally:
            csv.field_size_limit(limit)


def _are_rows(lines: list[str], delimiter: str, separators: int) -> bool:
    """Whether each line of what is read as one row has the separators of a whole row: its last quote belongs to another
    value. One each may be chance in the lines of a text, so there must be two after the first line."""
    return (len(lines) - 1) * separators >= 2 and all(line.count(delimiter) == separators for line in lines)


def _breaks_before_quote(row: str, delimiter: str) -> int:
    """Line ends in front of the first quote of a row that is closed wrongly or never."""
    sound = re.match(
        rf'(?:"(?:[^"]++|"")*+"(?=[{delimiter}\r\n])|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|{delimiter})*+', row
    )
    return len(re.findall(r"\r\n?|\n", sound[0])) if sound else 0


def _encoding(path: Path, remarks: Remarks) -> str:
    """UTF-8, UTF-16 if the file says so, else what Windows uses in the West; anything but UTF-8 is noted."""
    if _is_utf8(path):
        return UTF8
    with _binary(path) as stream:
        content = stream.read()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and _decodes(content, "utf-16"):
        found = "utf-16"
    elif b"\0" in content:
        raise DataError(f"{path}: is not text. {_SAVE_AS}")
    else:
        # Some bytes mean nothing in Windows-1252; Latin-1 has a sign for each.
        found = "cp1252" if _decodes(content, "cp1252") else "latin-1"
    done = f"read as {found}"
    remarks.note(str(path), Oddity("text that is not UTF-8", "UTF-8", done, "Look at words with accents."))
    return found


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder(UTF8)()
    with _readable(path), _binary(path) as stream:
        try:
            while chunk := stream.read(_BLOCK):
                decoder.decode(chunk)
                # Zeros are valid UTF-8 but in no text.
                if b"\0" in chunk:
                    return False
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _binary(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed if they are gzipped."""
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if gzipped else path.open("rb") as stream:
        yield stream


@contextmanager
def _utf8(path: Path, encoding: str) -> Iterator[Any]:
    """The bytes of a text file in UTF-8."""
    with _binary(path) as stream:
        yield stream if encoding == UTF8 else io.BytesIO(stream.read().decode(encoding).encode(UTF8))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Any error of a reader means that the file is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, KeyError, csv.Error, zlib.error) as error:
        if reason := getattr(error, "strerror", None):
            raise DataError(f"{path}: cannot be read: {reason}.") from error
        raise DataError(f"{path}: damaged or cut short: {_shortened(str(error))}") from error


def _shortened(text: str, longest: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}..."
