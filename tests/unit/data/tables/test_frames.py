from __future__ import annotations

import datetime
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import labels, matrix, read_graph, read_nodes, said, text_file

from g3nn.base.errors import DataError
from g3nn.graph.tables.files import from_frame, read_excel
from g3nn.graph.tables.frames import check_excel, native_frame, write_table

openpyxl: Any = pytest.importorskip("openpyxl")
pd: Any = pytest.importorskip("pandas")

ROWS = """id,y,age,money,share,day,when,city,vip,words,gaps,mostly,-
p0,a,1.5,"$ 1,200",5%,2020-01-31,01.02.2020 10:00,Rome,true,the cat sat on the mat,1,3,same
p1,b,2.5,$ 300,7%,2021-02-28,03.02.2020 10:30,Oslo,false,the dog sat on the cat,-,4,same
p2,a,3.5,"$ 2,500.50",12.5 %,2020-01-31,13.02.2020 09:00,Rome,,a fish and a dog ran,3,x,same
p3,NA,0.1,$ 7,1%,2019-07-04,01.02.2020 10:00,,true,a cat and a fish swam,?,5,same
p4,b,1e-3,$ 8,3%,2020-01-31,28.02.2020 10:00,Rome,false,the mat was on a fish,5,6,same
"""


def sheet(path: Path, *rows: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_columns_of_objects():
    frame = pd.DataFrame(
        {
            "mixed": pd.Series([1, "x", 2.5, None], dtype=object),
            "stored as text": pd.Series([1, "2", 2.5, None], dtype=object),
            "code": pd.Series([14, "007", 3, None], dtype=object),
            "huge": pd.Series([2**70, 1, 2, None], dtype=object),
            "truth": pd.Series([True, None, False, np.nan], dtype=object),
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "kind": pd.Categorical(["u", None, "v", "u"]),
            "day": pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"]),
            7: [0.5, np.nan, 1.5, 2.5],
        }
    )
    table = from_frame(frame, "nodes")
    day = datetime.datetime(2020, 1, 1)
    assert table.to_pydict() == {
        "mixed": ["1", "x", "2.5", None],
        "stored as text": [1.0, 2.0, 2.5, None],
        "code": ["14", "007", "3", None],
        "huge": [str(2**70), "1", "2", None],
        "truth": [True, None, False, None],
        "whole": [1, None, 3, 4],
        "kind": ["u", None, "v", "u"],
        "day": [day, None, day.replace(day=3), day.replace(day=4)],
        "7": [0.5, None, 1.5, 2.5],
    }


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1, 2], "nodes: list is neither a path nor a data frame"),
        (pd.Series([1]), "nodes: Series is neither"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "nodes: several columns have the same name"),
    ],
)
def test_what_is_no_frame(table, words):
    with pytest.raises(DataError, match=words):
        from_frame(table, "nodes")


def test_a_csv_file_and_its_pandas_frame_say_the_same(tmp_path):
    path = text_file(tmp_path, ROWS)
    file, frame = read_graph(path, id="id"), read_graph(pd.read_csv(path), id="id")
    assert file.features.names == frame.features.names
    assert file.features.kinds.tolist() == frame.features.kinds.tolist()
    np.testing.assert_allclose(matrix(file.features), matrix(frame.features), rtol=0, atol=1e-12)
    assert file.labels.values.tolist() == frame.labels.values.tolist() == [0, 1, 0, -1, 1]
    assert [one[:2] for one in file.columns] == [one[:2] for one in frame.columns]
    kinds = {one.column: one.kind for one in file.columns}
    numbers = dict.fromkeys(["age", "money", "share", "gaps", "mostly"], "numeric")
    rest = {"day": "date", "when": "date", "city": "categorical", "vip": "boolean", "words": "text", "-": "left out"}
    assert kinds == {"id": "id", "y": "label (classes)", **numbers, **rest}
    # pandas does not say that a label was NA.
    assert said(file)[1:] == said(frame)
    assert said(file) == [
        "column 'y': 1 label written as 'NA'; taken as unknown. keep_na=True takes them as they are.",
        "column 'mostly': 1 value that is no number ('x'); taken as missing",
        "columns 'vip', 'gaps': missing numbers; filled in from the neighbours, or with the mean",
        "column 'words': sentences; their words become features. ignore=[...] leaves them out.",
        "column '-': the same value in every row; left out",
    ]


def test_an_arrow_table_says_the_same_too(tmp_path):
    frame = pd.read_csv(text_file(tmp_path, ROWS))
    arrow = read_graph(pa.Table.from_pandas(frame, preserve_index=False), id="id")
    np.testing.assert_array_equal(matrix(arrow.features), matrix(read_graph(frame, id="id").features))


def test_excel(tmp_path):
    day = datetime.datetime(2020, 1, 31)
    rows = [["a", 14, day, 1, "x"], [None] * 5, ["b", 15.0, day, "2", 7], ["a", 16, None, 3.5, None]]
    path = sheet(tmp_path / "n.xlsx", [None] * 5, ["y", "id", "day", "number", "mixed", None], *rows, [None] * 7)
    assert read_excel(path).to_pydict() == {
        "y": ["a", "b", "a"],
        "id": [14, 15, 16],
        "day": [day, day, None],
        "number": [1, 2, 3.5],
        "mixed": ["x", "7", None],
    }
    assert read_nodes(path, "id").ids.to_pylist() == [14, 15, 16]
    with pytest.raises(DataError, match=r"n\.xlsx: has a header but no rows"):
        read_nodes(sheet(path, ["id", "y"]), "id")


def test_excel_that_cannot_be_read(tmp_path, monkeypatch):
    empty = sheet(tmp_path / "empty.xlsx", [None])
    with pytest.raises(DataError, match=r"empty\.xlsx: is empty"):
        read_excel(empty)
    (tmp_path / "n.zip").write_bytes(b"PK\x03\x04zzzz")
    with pytest.raises(DataError, match="is a zip file but no Excel sheet that can be read"):
        read_nodes(tmp_path / "n.zip", "id")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for use in (read_excel, check_excel):
        with pytest.raises(DataError, match=r"need the package openpyxl: pip install 'g3nn\[excel\]'"):
            use(empty)
    check_excel(tmp_path / "answers.csv")


def test_excel_with_a_style_that_is_not_there_prints_nothing(tmp_path, capsys):
    write_table(pa.table({"a": [1]}), tmp_path / "fine.xlsx")
    with zipfile.ZipFile(tmp_path / "fine.xlsx") as fine, zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as odd:
        for name in fine.namelist():
            content = fine.read(name)
            changed = content.replace(b'name="Normal" xfId="0"', b'name="Normal" xfId="7"')
            assert (changed != content) == (name == "xl/styles.xml")
            odd.writestr(name, changed)
    with pytest.raises(DataError, match="no Excel sheet that can be read"):
        read_excel(tmp_path / "odd.xlsx")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_tables_are_written_by_their_ending(tmp_path, suffix):
    table = pa.table({"id": ["=1+1", "b"], "p": [0.25, 1.0], "tags": [["x", "y"], None]})
    path = tmp_path / f"answers{suffix.upper()}"
    write_table(table, path)
    again = read_nodes(path, "id").content.to_pydict()
    tags = [["x", "y"], None] if suffix == ".parquet" else ["x | y", "" if suffix == ".csv" else None]
    assert again == {"id": ["=1+1", "b"], "p": [0.25, 1.0], "tags": tags}
    if suffix == ".xlsx":
        assert openpyxl.load_workbook(path).active["A2"].data_type == "s"


def test_the_frame_that_comes_back(monkeypatch):
    table = pa.table({"y": labels(4)})
    assert isinstance(native_frame(table), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert native_frame(table) is table
