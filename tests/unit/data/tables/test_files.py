from __future__ import annotations

import gzip
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from small_tables import labels, parquet_file, read_edges, read_graph, read_nodes, said, text_file, write

from g3nn.base.errors import DataError, G3NNWarning
from g3nn.graph.tables import csv_files
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.graph import NodeColumns, load_nodes
from g3nn.graph.tables.remarks import Remarks

NODES = "id,label,age,city,active\na,x,1,Rome,true\nb,y,2.5,Oslo,false\nc,,3,Rome,true\n"


def test_dialects(tmp_path):
    cases = [
        ("n.csv", NODES),
        ("n.tsv", NODES.replace(",", "\t")),
        ("n.csv", NODES.replace(",", ";")),
        ("n.txt", NODES),
        ("n.csv", NODES.replace("\n", "\r\n")),
        ("n.csv", "\ufeff" + NODES),
        ("n.csv", NODES.replace(",", ", ")),
        ("n.csv", NODES.replace("age", '"age"').replace("Rome", '"Rome"')),
        ("n.csv", "\n" + NODES.replace("\n", "\n\n").replace("Rome", '"Rome"')),
    ]
    for name, text in cases:
        nodes = read_nodes(text_file(tmp_path, text, name), "id", "label")
        assert nodes.ids.to_pylist() == ["a", "b", "c"]
        assert nodes.features.to_pydict()["city"] == ["Rome", "Oslo", "Rome"]
        assert nodes.labels is not None
        assert (nodes.labels.names.tolist(), nodes.labels.values.tolist()) == (["x", "y"], [0, 1, -1])
        assert not nodes.typed


@pytest.mark.parametrize(
    ("word", "encoding", "found", "gzipped"),
    [
        ("Zoë", "latin-1", "cp1252", False),
        ("5 €", "cp1252", "cp1252", True),
        ("\x81é", "latin-1", "latin-1", False),
        ("Łódź", "utf-16", "utf-16", False),
        ("Łódź", "utf-16", "utf-16", True),
        ("Łódź", "utf-8", None, True),
    ],
)
def test_encodings(tmp_path, word, encoding, found, gzipped):
    content = f"y,x,n\na,{word},1\nb,u,2\na,u,4\nb,{word},5\n".encode(encoding)
    (tmp_path / "n.csv").write_bytes(gzip.compress(content, mtime=0) if gzipped else content)
    graph = read_graph(tmp_path / "n.csv")
    note = f": text that is not UTF-8; read as {found}. Look at words with accents."
    assert said(graph) == ([note] if found else [])
    assert graph.nodes.features["x"].to_pylist() == [word, "u", "u", word]


def test_parquet_is_seen_by_its_content(tmp_path):
    path = parquet_file(tmp_path, {"id": [1, 2], "a.b": [0.5, 1.5]}, "nodes.csv")
    nodes = read_nodes(path, "id")
    assert (nodes.ids.to_pylist(), nodes.typed, nodes.labels) == ([1, 2], True, None)
    assert nodes.features.to_pydict() == {"a.b": [0.5, 1.5]}


def test_row_numbers_of_pandas_are_no_column(tmp_path):
    assert read_nodes(text_file(tmp_path, ",id,x\n0,a,1\n1,b,2\n"), "id").features.column_names == ["x"]
    path = parquet_file(tmp_path, {"id": ["a"], "x": [1], "__index_level_0__": [7]})
    assert read_nodes(path, "id").features.column_names == ["x"]
    assert read_edges(text_file(tmp_path, ",a,b\n0,1,2\n", "edges.csv")).columns.source == "a"


class TestQuotes:
    def test_text_may_run_over_lines(self, tmp_path):
        text = 'id,words\n1,"a\nb, ""c"""\n2,5" disk\n3,' + f'"{"long " * 40_000}\n"\n4,"a\nb, c\nd; e"\n'
        words = read_nodes(text_file(tmp_path, text), "id").features["words"].to_pylist()
        assert [word[:9] for word in words] == ['a\nb, "c"', '5" disk', "long long", "a\nb, c\nd;"]

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('id,x\n1,a\n2,"b\n3,c\n4,d\n', 3),
            ('id,x\n1,a\n2,"b\n3,c', 3),
            ('id,x\n1,"a"\n\n2,"b\n3,"c"\n4,"d"\n', 4),
            ('id,x,z\n1,"a,2\n3,b,4\n', 2),
            ('id,x\r1,a\r2,"b\r3,c\r', 3),
            ('id,x\n1,a\n2,b\n3,"c\n', 4),
            ('id,x\n1,a\n2,b\n3,"c\r4,d\r5,e\r', 4),
            ('id,x\n1,a\n2,"b\n3,c\n4,d"\n5,e\n', 3),
            ('id,x,z\n1,"a\na",b\n2,"b\n\nc","d\n3,e,f\n', 6),
            ('\ufeff"id,x\n1,a\n2,b\n', 1),
        ],
        ids=[
            "last column",
            "no line end",
            "up to the next quote",
            "first column",
            "old line ends",
            "last row",
            "mixed line ends",
            "up to a stray quote",
            "after text over lines",
            "header",
        ],
    )
    def test_a_quote_that_is_not_closed_swallows_no_rows(self, tmp_path, text, line):
        with pytest.raises(DataError, match=f"nodes.csv: a quote in line {line} is not closed"):
            read_nodes(text_file(tmp_path, text), "id")
        (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        with pytest.raises(DataError, match=f"a quote in line {line} is not closed"):
            read_edges(tmp_path / "edges.csv.gz")


def test_what_cannot_be_read(tmp_path):
    cases = [
        (b"", "n.csv", "is empty"),
        (b" \n\n", "n.csv", "is empty"),
        (gzip.compress(b"", mtime=0), "n.csv.gz", "is empty"),
        (b"id,x\n", "n.csv", "has a header but no rows"),
        (b"id,x\n1,2\n3\n", "n.csv", "1 row with more or fewer values than the header, e.g. 1 instead of 2 in '3'"),
        ("id,x\na,1\n".encode("utf-16-le"), "n.csv", "is not text"),
        ("id,x\na,1\n".encode("utf-16")[:-1], "n.csv", "is not text"),
        (b"id,x\n1,2\n", "n.parquet", "does not begin like a Parquet file"),
        (b"PAR1", "n.parquet", "damaged or cut short"),
        (b"\xd0\xcf\x11\xe0zzzz", "n.xls", "is an old Excel file. Save it as Parquet"),
        (gzip.compress(b"id,x\n1,2\n" * 99, mtime=0)[:-9], "n.csv.gz", "damaged or cut short"),
        (b"id,x,x\n1,2,3\n", "n.csv", "several columns are called 'x'"),
        (b"id,x,\n1,2,3\n", "n.csv", "a column has no name"),
    ]
    for content, name, words in cases:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_nodes(path, "id")
        assert words in str(caught.value)
        assert str(path) in str(caught.value)


def test_damaged_parquet(tmp_path):
    path = parquet_file(tmp_path, {"id": list(range(10_000)), "x": np.random.default_rng(0).random(10_000)})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_nodes(path, "id")
    broken = pa.array([b"a", b"\xff"]).cast(pa.binary()).view(pa.string())
    with pytest.raises(DataError, match="UTF"):
        read_nodes(parquet_file(tmp_path, {"id": [1, 2], "x": broken}), "id")


def test_a_column_name_that_is_no_text(tmp_path):
    path = parquet_file(tmp_path, {"name": [1, 2], "x": [1, 2]})
    path.write_bytes(path.read_bytes().replace(b"name", b"na\xff\xfe"))
    with pytest.raises(DataError, match=r"nodes\.parquet: damaged or cut short: 'utf-8' codec can't decode"):
        read_nodes(path, None)


class TestMemory:
    def test_a_file_that_holds_more_than_fits_is_refused_before_it_is_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(csv_files, "host_memory", lambda: (10**6, 10**9))
        text = tmp_path / "n.csv.gz"
        text.write_bytes(gzip.compress(b"id,x\n" + b"1,2\n" * 50_000, mtime=0))
        repeated = parquet_file(tmp_path, {"id": np.zeros(10**6, dtype=np.int64)})
        book = tmp_path / "n.xlsx"
        with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as parts:
            parts.writestr("xl/workbook.xml", " " * 10**6)
        for path in (text, repeated, book):
            assert path.stat().st_size < 10**4
            with pytest.raises(DataError, match=r"too large for the memory.*GB of memory, and 0\.001 GB are free"):
                read_nodes(path, "id")

    def test_a_line_without_end_is_not_read_to_its_end(self, tmp_path):
        path = tmp_path / "n.csv.gz"
        path.write_bytes(gzip.compress(b"a" * (2**24 + 2), 1, mtime=0))
        with pytest.raises(DataError, match="line 1 has more than 16,777,216 characters"):
            read_nodes(path, None)

    def test_rows_that_do_not_fit_are_not_all_kept(self, tmp_path):
        path = text_file(tmp_path, "id,x\n" + "1\n" * 5000)
        with pytest.raises(DataError, match="at least 1,000 rows with more or fewer values"):
            read_nodes(path, "id")


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_nodes(tmp_path / "n.csv", "id")
    with pytest.raises(DataError, match="is a folder"):
        read_edges(tmp_path)


def test_a_table_is_opened_once(tmp_path):
    path = write(tmp_path / "n.csv", {"y": labels(4), "x": [1, 2, 4, 5]})
    source = Source.open(path, "nodes", Remarks())
    assert Source.open(source, "nodes", Remarks()) is source
    assert read_nodes(source, None, "y").num_nodes == 4


class TestJSON:
    ROWS = ('{"id": "a", "y": "x", "age": 1, "city": "Rome"}', '{"id": "b", "y": "z", "age": 2.5, "tags": ["u"]}')

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("n.json", f"[{', '.join(ROWS)}]"),
            ("n.txt", f"\ufeff[\n  {ROWS[0]},\n  {ROWS[1]}\n]\n"),
            ("n.jsonl", f"{ROWS[0]}\n\n{ROWS[1]}\r\n"),
            ("n.json", f'{{"nodes": [{", ".join(ROWS)}], "links": []}}'),
        ],
        ids=["list", "without a suffix", "lines", "node-link"],
    )
    def test_what_it_may_look_like(self, tmp_path, name, text):
        path, remarks = text_file(tmp_path, text, name), Remarks()
        nodes = load_nodes(path, NodeColumns("id", ("y",)), remarks)
        assert nodes is not None
        assert nodes.typed
        assert nodes.content.to_pydict() == {
            "id": ["a", "b"],
            "y": ["x", "z"],
            "age": [1, 2.5],
            "city": ["Rome", None],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", G3NNWarning)
            remarks.tell()
        assert "column 'tags': lists or objects; left out" in remarks.notes[-1]
        assert any("and nothing else ('links')" in note for note in remarks.notes) == ("links" in text)

    def test_edges_of_one_file_and_gzipped(self, tmp_path):
        links = '"links": [{"source": 0, "target": 1}, {"source": 2, "target": 3}]'
        path = tmp_path / "graph.json.gz"
        rows = ", ".join(f'{{"y": "{y}", "x": {x}}}' for y, x in zip(labels(4), (1, 5, 3, 8), strict=True))
        path.write_bytes(gzip.compress(f'{{"nodes": [{rows}], {links}}}'.encode()))
        graph = read_graph(path, path)
        assert graph.edges.tolist() == [[0, 2], [1, 3]]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('[{"id": 1}, {"id": ', "damaged or cut short: Expecting value: line 1 column 20"),
            ('{"id": 1}\n{"id": 2\n', "line 2 is no JSON: Expecting ',' delimiter"),
            ("[1, 2]", 'no list of objects such as \\[{"id": 1}'),
            ("[]", "no list of objects"),
            ('{"id": {"0": 1, "1": 2}, "y": {"0": "a", "1": "b"}}', "no list of objects"),
            ('[{"id": "\\ud800"}]', "damaged or cut short"),
        ],
    )
    def test_damaged_ones(self, tmp_path, text, words):
        with pytest.raises(DataError, match=words):
            Source.open(text_file(tmp_path, text, "n.json"), "nodes", Remarks())
