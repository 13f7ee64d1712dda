from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pytest
from small_tables import parquet_file, read_edges, read_nodes, text_file

from g3nn.data.tables.labels import as_given
from g3nn.errors import DataError

NODES = "id,label,age,city,active\na,x,1,Rome,true\nb,y,2.5,Oslo,false\nc,,3,Rome,true\n"


def test_csv(tmp_path):
    nodes = read_nodes(text_file(tmp_path, NODES), "id", "label")
    assert nodes.ids.to_pylist() == ["a", "b", "c"]
    assert nodes.labels is not None
    assert as_given(nodes.labels).tolist() == ["x", "y", None]
    assert dict(nodes.kinds) == {"age": "numeric", "city": "categorical", "active": "boolean"}
    assert nodes.features.to_pydict()["age"] == [1, 2.5, 3]
    assert not nodes.typed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n.tsv", NODES.replace(",", "\t")),
        ("n.csv", NODES.replace(",", ";")),
        ("n.txt", NODES),
        ("n.csv", NODES.replace("\n", "\r\n")),
        ("n.csv", "\ufeff" + NODES),
        ("n.csv", NODES.replace(",", ", ")),
        ("n.csv", NODES.replace("age", '"age"')),
        ("n.csv", "\n" + NODES.replace("\n", "\n\n")),
    ],
    ids=["tabs", "semicolons", "another suffix", "windows", "byte order mark", "blanks", "quotes", "empty lines"],
)
def test_dialects(tmp_path, name, text):
    nodes = read_nodes(text_file(tmp_path, text, name), "id", "label")
    assert nodes.ids.to_pylist() == ["a", "b", "c"]
    assert (nodes.kinds["age"], nodes.kinds["city"]) == ("numeric", "categorical")
    assert nodes.features.to_pydict()["city"] == ["Rome", "Oslo", "Rome"]


@pytest.mark.parametrize("name", ["nodes.csv.gz", "nodes.csv"])
def test_gzip_is_seen_by_its_content(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(NODES.encode(), mtime=0))
    assert read_nodes(tmp_path / name, "id", "label").num_nodes == 3


@pytest.mark.parametrize("name", ["nodes.parquet", "nodes.csv"])
def test_parquet_is_seen_by_its_content(tmp_path, name):
    path = parquet_file(tmp_path, {"id": [1, 2], "x": [0.5, 1.5]}, name)
    nodes = read_nodes(path, "id")
    assert (nodes.ids.to_pylist(), nodes.typed, nodes.labels) == ([1, 2], True, None)


def test_text_may_run_over_lines(tmp_path):
    nodes = read_nodes(text_file(tmp_path, 'id,words\n1,"a\nb, c"\n2,d\n'), "id", text=["words"])
    assert nodes.features.to_pydict() == {"words": ["a\nb, c", "d"]}
    assert dict(nodes.kinds) == {"words": "text"}


def test_row_numbers_of_pandas_are_no_feature(tmp_path):
    nodes = read_nodes(text_file(tmp_path, ",id,x\n0,a,1\n1,b,2\n"), "id")
    assert list(nodes.kinds) == ["x"]
    path = parquet_file(tmp_path, {"id": ["a"], "x": [1], "__index_level_0__": [7]})
    assert list(read_nodes(path, "id").kinds) == ["x"]
    edges = read_edges(text_file(tmp_path, ",a,b\n0,1,2\n", "edges.csv"))
    assert edges.columns == ("a", "b")


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "n.csv", "is empty"),
        (b"", "n.parquet", "is empty"),
        (b" \n\n", "n.csv", "is empty"),
        (gzip.compress(b"", mtime=0), "n.csv.gz", "is empty"),
        (b"id,x\n", "n.csv", "no rows"),
        (b"id,x", "n.csv", "no rows"),
        (b"id,x\n1,2\n3\n", "n.csv", "1 row with more or fewer values than the header, e.g. 1 instead of 2 in '3'"),
        (b"id,x\na,1\nb,\xe9\n", "n.csv", "not UTF-8 text, first in line 3"),
        (b"id,\xe9\na,1\n", "n.csv", "not UTF-8 text, first in line 1"),
        (b"id,x\n\xe9,1\n", "n.csv", "not UTF-8 text, first in line 2"),
        ("id,x\na,1\n".encode("utf-16"), "n.csv", "UTF-16"),
        (b"id,x\n1,2\n", "n.parquet", "does not begin like a Parquet file"),
        (b"PAR1", "n.parquet", "damaged or cut short"),
        (b"PK\x03\x04zzzz", "n.xlsx", "Excel"),
        (gzip.compress(b"id,x\n1,2\n" * 99, mtime=0)[:-9], "n.csv.gz", "damaged or cut short"),
        (b"\x1f\x8bzzzzzzzzzzzz", "n.csv.gz", "damaged or cut short"),
        (b"id,x,x\n1,2,3\n", "n.csv", "several columns are called 'x'"),
        (b"id,x,\n1,2,3\n", "n.csv", "a column has no name"),
    ],
)
def test_what_cannot_be_read(tmp_path, content, name, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_nodes(path, "id")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.99])
def test_a_parquet_file_cut_short(tmp_path, kept):
    path = parquet_file(tmp_path, {"id": list(range(10_000)), "x": np.random.default_rng(0).random(10_000)})
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_nodes(path, "id")


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_nodes(tmp_path / "n.csv", "id")
    with pytest.raises(DataError, match="is a folder"):
        read_edges(tmp_path)


def test_text_that_is_no_text_in_a_parquet_file(tmp_path):
    broken = pa.array([b"a", b"\xff"]).cast(pa.binary()).view(pa.string())
    with pytest.raises(DataError, match="UTF"):
        read_nodes(parquet_file(tmp_path, {"id": [1, 2], "x": broken}), "id")
