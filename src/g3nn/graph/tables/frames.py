"""Tables as the files or frames that people want, and a task as example tables."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.folders import check_new_folder, new_folder
from g3nn.base.parse import UNKNOWN, is_frame
from g3nn.graph.tables.files import PARQUET_SUFFIXES, openpyxl_for
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import is_binary

TABLE_SUFFIXES = (".csv", *PARQUET_SUFFIXES, ".xlsx")
"""The files that `write_table` can write."""

EXAMPLE_FILES = ("nodes.parquet", "edges.csv", "answers.parquet")
"""The files that `export` writes."""


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
        openpyxl_for(path)


def _write_excel(table: pa.Table, path: Path) -> None:
    import openpyxl
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("answers")

    def cell(value: object) -> object:
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


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def library_of(frame: object) -> str:
    """The library whose data frames are given back for this: its own; pandas for Arrow tables and whatever is none."""
    library = nw.from_native(frame, eager_only=True).implementation.value if is_frame(frame) else "pyarrow"
    return "pandas" if library == "pyarrow" else library


def native_frame(table: pa.Table, library: str = "pandas") -> object:
    """A data frame of a library; instead of pandas, where that is not installed, the Arrow table."""
    if library != "pandas":
        backend: Any = library  # One of many that narwhals lists.
        return nw.from_arrow(table, backend=backend).to_native()
    try:
        import pandas  # noqa: F401
    except ImportError:
        return table
    return table.to_pandas()


def export(task: NodeTask, folder: str | Path) -> Path:
    """Write the tables into a new folder.

    nodes.parquet:   id, label (only of training and validation nodes), split (train, val, test or empty), and one
                     column for each feature: w0, w1, ... if none is negative, otherwise x0, x1, ...
    edges.csv:       source and target, one row per edge.
    answers.parquet: id and label of the test nodes.

    Binary features that were divided by the sum of their row are written as 0 and 1.
    """
    folder, problems = Path(folder), Problems()
    check_new_folder(folder, problems, "export")
    if not task.kind.exclusive:
        problems.add("task", f"{task.name} with the outcome {task.outcome}", "labels that are classes")
    problems.raise_if_any()
    ids = pa.array([f"paper-{node}" for node in range(task.num_nodes)])
    answers = {"id": ids.take(pa.array(task.test)), "label": pa.array(task.labels[task.test])}
    edges = "".join(f"paper-{i},paper-{j}\n" for i, j in task.edges.T.tolist())
    with new_folder(folder) as draft:
        pa_parquet.write_table(_nodes(task, ids), draft / "nodes.parquet")
        (draft / "edges.csv").write_text(f"source,target\n{edges}")
        pa_parquet.write_table(pa.table(answers), draft / "answers.parquet")
    return folder


def _nodes(task: NodeTask, ids: pa.Array) -> pa.Table:
    split = np.full(task.num_nodes, None, dtype=object)
    for part in ("train", "val", "test"):
        split[getattr(task, part)] = part
    visible = np.isin(split, ("train", "val")) & (task.labels != UNKNOWN)
    labels = pa.array(task.labels, mask=~visible)
    values = _values(task)
    letter = "x" if values.min(initial=0) < 0 else "w"
    features = {f"{letter}{feature}": values[:, feature] for feature in range(task.num_features)}
    return pa.table({"id": ids, "label": labels, "split": pa.array(split, pa.string()), **features})


def _values(task: NodeTask) -> np.ndarray:
    """(n, d): 0 and 1 if all features of a row are zero or equal, in every row; otherwise unchanged."""
    dense = task.features.toarray() if sp.issparse(task.features) else task.features
    return np.asfortranarray((dense != 0).astype(np.uint8) if is_binary(task.features) else dense)
