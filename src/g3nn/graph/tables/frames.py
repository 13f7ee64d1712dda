"""Data frames and Excel files as Arrow tables, and tables as the files or frames that people want."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from g3nn.base.errors import DataError
from g3nn.base.parse import is_frame
from g3nn.base.threads import free_memory
from g3nn.graph.outcomes.labels import is_missing

EXCEL = b"PK\x03\x04"
"""How an Excel file begins, as any zip file does."""

_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"
"""Among cells of several types; no code such as 007, and no number that a float would round."""

PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = (".csv", *PARQUET_SUFFIXES, ".xlsx")
"""The files that `write_table` can write."""

_TOO_LARGE = "is too large for the memory of this machine"
_NEEDS_OPENPYXL = "Excel files need the package openpyxl: pip install 'g3nn[excel]'"


PER_BYTE, PER_CELL = 4, 32
"""Memory that text takes at least, as was measured: it is held as cells, as checked columns and as features."""


def check_room(path: Path, needed: int) -> None:
    """Raise if a file would take more memory than there is; a small one may hold very much, well compressed."""
    if needed > (free := free_memory()):
        amounts = f"reading it takes more than {needed / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free"
        raise DataError(f"{path}: {_TOO_LARGE}: {amounts}. Leave out rows or columns, or use a larger machine.")


def shortened(text: str, longest: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[:longest]}..."


def from_frame(frame: Any, argument: str) -> pa.Table:
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


def _array(column: Any) -> Any:
    try:
        return column.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _from_objects(column.to_list())


def _from_objects(items: Sequence[Any]) -> pa.Array:
    """Values of one type as they are, of several types as text, or as numbers if all of them are."""
    items = [None if is_missing(item) else item for item in items]
    try:
        return pa.array(items)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = pa.array([None if item is None else str(item) for item in items], pa.large_string())
    return pc.cast(texts, pa.float64()) if pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py() else texts


def read_excel(path: Path) -> pa.Table:
    """The first sheet; its first row holds the names of the columns."""
    try:
        import openpyxl
    except ImportError as error:
        raise DataError(f"{path}: {_NEEDS_OPENPYXL}") from error
    try:
        # A path would have to end as Excel wants it.
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as parts:
                check_room(path, PER_BYTE * sum(part.file_size for part in parts.infolist()))
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


def write_table(table: pa.Table, path: Path) -> None:
    """As CSV, Parquet or Excel by the ending of the path."""
    suffix = path.suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        pa_parquet.write_table(table, path)
    elif suffix == ".xlsx":
        _write_excel(_flat(table), path)
    else:
        pa_csv.write_csv(_flat(table), path)


def _flat(table: pa.Table) -> pa.Table:
    """Lists as text, since the cells of a sheet hold one value each."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = [None if items is None else " | ".join(map(str, items)) for items in table[place].to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.large_string()))
    return table


def check_excel(path: Path) -> None:
    """Raise, before any work is done, if this Excel file could not be written."""
    if path.suffix.lower() == ".xlsx":
        try:
            import openpyxl  # noqa: F401
        except ImportError as error:
            raise DataError(f"{path}: {_NEEDS_OPENPYXL}") from error


def _write_excel(table: pa.Table, path: Path) -> None:
    import openpyxl
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("answers")

    def cell(value: Any) -> Any:
        """Text that begins like a formula stays text."""
        if not (isinstance(value, str) and value.startswith("=")):
            return value
        text = WriteOnlyCell(sheet, value)
        text.data_type = "s"
        return text

    sheet.append([cell(name) for name in table.column_names])
    for batch in table.to_batches():
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            sheet.append([cell(value) for value in row])
    book.save(path)


def html_table(table: pa.Table, caption: str, most: int = 20) -> str:
    """The first rows of a table for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = table.slice(0, most).to_pylist()
    cells = ["".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    more = f" (the first {most} of {table.num_rows:,})" if table.num_rows > most else ""
    title = f"<caption>{escape(caption)}{more}</caption>"
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def native_frame(table: pa.Table) -> Any:
    """A pandas data frame where pandas is installed, else the Arrow table."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        return table
    return table.to_pandas()
