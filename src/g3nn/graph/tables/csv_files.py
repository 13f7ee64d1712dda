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
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from g3nn.base.errors import DataError, G3NNError
from g3nn.graph.tables.columns import counted
from g3nn.graph.tables.frames import PER_BYTE, PER_CELL, check_room, shortened
from g3nn.graph.tables.remarks import Oddity, Remarks

DELIMITERS = (",", ";", "\t")
UTF8 = "utf-8"

SAVE_AS = "Save it as Parquet, or as CSV in UTF-8."

_BLOCK = 2**24
"""Bytes of text that are parsed at once. No row may be longer."""

_MOST_BAD_ROWS = 1000
"""Rows that do not fit the header, after which the others are not counted any more."""


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


def read_csv(
    path: Path, encoding: str, delimiter: str, columns: list[str], text: Sequence[str], nulls: Sequence[str]
) -> pa.Table:
    """Some columns, of which those in `text` stay text. nulls: what stands for a missing value among numbers."""
    bad: list[Any] = []

    def skip(row: Any) -> str:
        bad.append(row)
        return "skip" if len(bad) < _MOST_BAD_ROWS else "error"

    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip)
    kinds = dict.fromkeys(text, pa.large_string())
    convert = pa_csv.ConvertOptions(include_columns=columns, column_types=kinds, null_values=list(nulls))
    rows = 0
    with _utf8(path, encoding) as stream:
        try:
            table = pa_csv.read_csv(stream, pa_csv.ReadOptions(block_size=_BLOCK), parse, convert)
            rows = table.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                table = pa.table({name: pa.nulls(0) for name in columns})
            elif not bad:
                _check_quotes(path, encoding, delimiter)
                raise
    if _may_swallow_rows(path, encoding, rows):
        _check_quotes(path, encoding, delimiter)
    if bad:
        first, least = bad[0], "at least " if len(bad) >= _MOST_BAD_ROWS else ""
        what = f"{least}{counted(len(bad), 'row')} with more or fewer values than the header"
        example = f"{first.actual_columns} instead of {first.expected_columns} in {shortened(first.text)!r}"
        raise DataError(f"{path}: {what}, e.g. {example}. Put values that contain a separator in quotes.")
    return table


def header(path: Path, encoding: str) -> tuple[list[str], str]:
    """The names in the first line that is not blank, and what separates them."""
    with readable(path), _lines(path, encoding) as lines:
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
    row, separators, line, limit = list[str](), 0, 1, csv.field_size_limit(2 * _BLOCK)

    def noted(lines: Iterator[str]) -> Iterator[str]:
        size = 0
        for text in lines:
            size = len(text) + (size if row else 0)
            row.append(text)
            if size > _BLOCK:
                raise csv.Error
            yield text

    def refuse(line: int) -> NoReturn:
        advice = 'Close it, and write a quote inside a value twice ("").'
        raise DataError(f"{path}: a quote in line {line} is not closed as it should be. {advice}")

    with _lines(path, encoding) as lines:
        rows = csv.reader(noted(lines), delimiter=delimiter, strict=True)
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


def encoding_of(path: Path, remarks: Remarks) -> str:
    """UTF-8, UTF-16 if the file says so, else what Windows uses in the West; anything but UTF-8 is noted."""
    with readable(path):
        if _is_utf8(path):
            return UTF8
        with _binary(path) as stream:
            content = stream.read()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and _decodes(content, "utf-16"):
        found = "utf-16"
    elif b"\0" in content:
        raise DataError(f"{path}: is not text. {SAVE_AS}")
    else:
        # Some bytes mean nothing in Windows-1252; Latin-1 has a sign for each.
        found = "cp1252" if _decodes(content, "cp1252") else "latin-1"
    done = f"read as {found}"
    remarks.note(str(path), Oddity("text that is not UTF-8", "UTF-8", done, "Look at words with accents."))
    return found


def _is_utf8(path: Path) -> bool:
    """Reads the whole file, whatever it holds, and stops where it is too large for the memory."""
    decoder, needed, is_utf8 = codecs.getincrementaldecoder(UTF8)(), 0, True
    with _binary(path) as stream:
        while chunk := stream.read(_BLOCK):
            cells = [max(map(chunk.count, signs)) for signs in ((b",", b";", b"\t"), (b"\n", b"\r"))]
            needed += PER_BYTE * len(chunk) + PER_CELL * sum(cells)
            check_room(path, needed)
            # Zeros are valid UTF-8 but in no text.
            is_utf8 = is_utf8 and b"\0" not in chunk and _decodes(chunk, decoder)
    return is_utf8 and _decodes(b"", decoder, final=True)


def _decodes(content: bytes, encoding: str | codecs.IncrementalDecoder, final: bool = False) -> bool:
    try:
        if isinstance(encoding, str):
            content.decode(encoding)
        else:
            encoding.decode(content, final)
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
def _lines(path: Path, encoding: str) -> Iterator[Iterator[str]]:
    """The lines of a text file, none of which may be longer than a row may be."""
    with _binary(path) as stream:
        file = io.TextIOWrapper(stream, "utf-8-sig" if encoding == UTF8 else encoding, newline="")
        yield _no_longer(path, iter(lambda: file.readline(_BLOCK + 1), ""))


def _no_longer(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > _BLOCK:
            raise DataError(f"{path}: line {number} has more than {_BLOCK:,} characters. {SAVE_AS}")
        yield line
