"""Text files with a header line, gzipped or not: their encoding, their separators, their quotes and their cells.

Values are separated by tabs in a .tsv file, otherwise by whichever of comma, semicolon and tab the header has most of.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from g3nn.base.errors import DataError, G3NNError, counted
from g3nn.base.threads import host_memory
from g3nn.graph.tables.remarks import Remarks

DELIMITERS = (",", ";", "\t")

SAVE_AS = "Save it as Parquet, or as CSV in UTF-8."

PER_BYTE, PER_CELL = 4, 32
"""Memory that text takes at least, as was measured: it is held as cells, as checked columns and as features."""

_BLOCK = 2**24
"""Bytes of text that are parsed at once. No row may be longer."""

_MOST_BAD_ROWS = 1000
"""Rows that do not fit the header, after which the others are not counted any more."""


def check_memory(path: Path, needed: int) -> None:
    """Raise if a file would take more memory than there is; a small one may hold very much, well compressed."""
    if needed > (free := host_memory()[0]):
        amounts = f"reading it takes more than {needed / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free"
        advice = "Leave out rows or columns, or use a larger machine."
        raise DataError(f"{path}: is too large for the memory of this machine: {amounts}. {advice}")


def shortened(text: str, longest: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}..."


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever a reader raises means that the file is damaged."""
    try:
        yield
    except G3NNError:
        raise
    except Exception as error:  # readers raise whatever their parsers do
        if reason := getattr(error, "strerror", None):
            raise DataError(f"{path}: cannot be read: {reason}.") from error
        raise DataError(f"{path}: damaged or cut short: {shortened(str(error) or repr(error))}") from error


def read_text(path: Path, remarks: Remarks) -> bytes:
    """The content of a text file in UTF-8, decompressed if it is gzipped.

    A file is in UTF-8, in UTF-16 if it says so, else in what Windows uses in the West; anything but UTF-8 is noted.
    """
    whole, needed = io.BytesIO(), 0
    with readable(path):
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if gzipped else path.open("rb") as stream:
            while chunk := stream.read(_BLOCK):
                cells = [max(map(chunk.count, signs)) for signs in ((b",", b";", b"\t"), (b"\n", b"\r"))]
                needed += PER_BYTE * len(chunk) + PER_CELL * sum(cells)
                check_memory(path, needed)
                whole.write(chunk)
    content = whole.getvalue()
    encodings = ["utf-16"] if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else []
    # Zeros are valid UTF-8 but in no text. Some bytes mean nothing in Windows-1252; Latin-1 has a sign for each.
    encodings += ["utf-8", "cp1252", "latin-1"] if b"\0" not in content else []
    for encoding in encodings:
        with suppress(UnicodeDecodeError):
            text = content.decode(encoding)
            if encoding == "utf-8":
                return content
            done = f"read as {encoding}"
            remarks.note(str(path), "text that is not UTF-8", "UTF-8", done, "Look at words with accents.")
            return text.encode()
    raise DataError(f"{path}: is not text. {SAVE_AS}")


def open_csv(path: Path, remarks: Remarks) -> tuple[bytes, list[str], str]:
    """The content in UTF-8, the names in the first line that is not blank, and what separates them."""
    content = read_text(path, remarks)
    with readable(path):
        lines = _lines(path, content)
        first = next((line for line in lines if line.strip()), "")
        if not first:
            raise DataError(f"{path}: is empty.")
        unquoted = re.sub(r'"[^"]*"', "", first)
        tabs = path.name.lower().removesuffix(".gz").endswith(".tsv")
        delimiter = "\t" if tabs else max(DELIMITERS, key=unquoted.count)
        try:
            # A name in quotes may continue on the next line.
            return content, next(csv.reader(chain([first], lines), delimiter=delimiter, strict=True)), delimiter
        except csv.Error:
            _check_quotes(path, content, delimiter)
            raise


def read_csv(
    path: Path, content: bytes, delimiter: str, columns: list[str], text: list[str], nulls: Sequence[str]
) -> pa.Table:
    """Some columns, of which those in `text` stay text. nulls: what stands for a missing value among numbers."""
    bad: list[Any] = []

    def skip(row: Any) -> str:
        bad.append(row)
        return "skip" if len(bad) < _MOST_BAD_ROWS else "error"

    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip)
    kinds = dict.fromkeys(text, pa.large_string())
    convert = pa_csv.ConvertOptions(include_columns=columns, column_types=kinds, null_values=list(nulls))
    table = pa.table({name: pa.nulls(0) for name in columns})
    with readable(path):
        try:
            table = pa_csv.read_csv(pa.BufferReader(content), pa_csv.ReadOptions(block_size=_BLOCK), parse, convert)
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error) and not bad:
                _check_quotes(path, content, delimiter)
                raise
    quotes, ends = content.count(b'"'), content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    lines = ends + (not content.endswith((b"\n", b"\r")))
    # A value may have swallowed rows.
    if quotes and (lines > table.num_rows + 1 or quotes % 2):
        _check_quotes(path, content, delimiter)
    if bad:
        first, least = bad[0], "at least " if len(bad) >= _MOST_BAD_ROWS else ""
        what = f"{least}{counted(len(bad), 'row')} with more or fewer values than the header"
        example = f"{first.actual_columns} instead of {first.expected_columns} in {shortened(first.text)!r}"
        raise DataError(f"{path}: {what}, e.g. {example}. Put values that contain a separator in quotes.")
    return table


def _check_quotes(path: Path, content: bytes, delimiter: str) -> None:
    """Without its second quote, a value would swallow the rows up to the next quote in the file."""
    row, separators, line, limit = list[str](), 0, 1, csv.field_size_limit(_BLOCK)

    def noted(lines: Iterator[str]) -> Iterator[str]:
        for text in lines:
            row.append(text)
            yield text

    def refuse(line: int) -> NoReturn:
        advice = 'Close it, and write a quote inside a value twice ("").'
        raise DataError(f"{path}: a quote in line {line} is not closed as it should be. {advice}")

    rows = csv.reader(noted(_lines(path, content)), delimiter=delimiter, strict=True)
    try:
        for values in rows:
            separators = separators or max(len(values) - 1, 0)
            # Where each line of what is read as one row has the separators of a whole row, its last quote belongs to
            # another value. One each may be chance in the lines of a text, so there must be two after the first line.
            if (len(row) - 1) * separators >= 2 and all(text.count(delimiter) == separators for text in row):
                refuse(line)
            line = rows.line_num + 1
            row.clear()
    except csv.Error:
        refuse(line + _breaks_before_quote("".join(row), delimiter))
    finally:
        csv.field_size_limit(limit)


def _breaks_before_quote(row: str, delimiter: str) -> int:
    """Line ends in front of the first quote of a row that is closed wrongly or never."""
    sound = re.match(
        rf'(?:"(?:[^"]++|"")*+"(?=[{delimiter}\r\n])|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|{delimiter})*+', row
    )
    return len(re.findall(r"\r\n?|\n", sound[0])) if sound else 0


def _lines(path: Path, content: bytes) -> Iterator[str]:
    """The lines of a text, none of which may be longer than a row may be."""
    file = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    for number, line in enumerate(iter(lambda: file.readline(_BLOCK + 1), ""), 1):
        if len(line) > _BLOCK:
            raise DataError(f"{path}: line {number} has more than {_BLOCK:,} characters. {SAVE_AS}")
        yield line
