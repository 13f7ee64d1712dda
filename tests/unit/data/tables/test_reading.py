from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from g3nn.data.tables.checks import check_labels
from g3nn.data.tables.reading import NodeTable, read_edge_table, read_node_table
from g3nn.errors import DataError, InputError, Problems

NODES = "id,label,age,city,active\na,x,1,Rome,true\nb,y,2.5,Oslo,false\nc,,3,Rome,true\n"


def csv(folder: Path, text: str, name: str = "nodes.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def parquet(folder: Path, columns: dict[str, Any], name: str = "nodes.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def problems_of(path: Path, *words: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_node_table(path, *words, **options)
    return str(caught.value)


class TestFiles:
    def test_csv(self, tmp_path):
        nodes = read_node_table(csv(tmp_path, NODES), "id", "label")
        assert nodes.ids.to_pylist() == ["a", "b", "c"]
        assert nodes.labels is not None
        assert nodes.labels.to_pylist() == ["x", "y", None]
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
    def test_dialects(self, tmp_path, name, text):
        nodes = read_node_table(csv(tmp_path, text, name), "id", "label")
        assert nodes.ids.to_pylist() == ["a", "b", "c"]
        assert (nodes.kinds["age"], nodes.kinds["city"]) == ("numeric", "categorical")
        assert nodes.features.to_pydict()["city"] == ["Rome", "Oslo", "Rome"]

    @pytest.mark.parametrize("name", ["nodes.csv.gz", "nodes.csv"])
    def test_gzip_is_seen_by_its_content(self, tmp_path, name):
        (tmp_path / name).write_bytes(gzip.compress(NODES.encode(), mtime=0))
        assert read_node_table(tmp_path / name, "id", "label").num_nodes == 3

    @pytest.mark.parametrize("name", ["nodes.parquet", "nodes.csv"])
    def test_parquet_is_seen_by_its_content(self, tmp_path, name):
        path = parquet(tmp_path, {"id": [1, 2], "x": [0.5, 1.5]}, name)
        nodes = read_node_table(path, "id")
        assert (nodes.ids.to_pylist(), nodes.typed, nodes.labels) == ([1, 2], True, None)

    def test_text_may_run_over_lines(self, tmp_path):
        nodes = read_node_table(csv(tmp_path, 'id,words\n1,"a\nb, c"\n2,d\n'), "id", text=["words"])
        assert nodes.features.to_pydict() == {"words": ["a\nb, c", "d"]}
        assert dict(nodes.kinds) == {"words": "text"}

    def test_row_numbers_of_pandas_are_no_feature(self, tmp_path):
        nodes = read_node_table(csv(tmp_path, ",id,x\n0,a,1\n1,b,2\n"), "id")
        assert list(nodes.kinds) == ["x"]
        path = parquet(tmp_path, {"id": ["a"], "x": [1], "__index_level_0__": [7]})
        assert list(read_node_table(path, "id").kinds) == ["x"]
        edges = read_edge_table(csv(tmp_path, ",a,b\n0,1,2\n", "edges.csv"))
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
            (b"id,x\n1,2\n3\n", "n.csv", "1 rows that do not fit the header, e.g. '3' with 1 instead of 2 values"),
            (b"id,x\na,1\nb,\xe9\n", "n.csv", "not UTF-8 text, first in line 3"),
            (b"id,\xe9\na,1\n", "n.csv", "not UTF-8 text, first in line 1"),
            (b"id,x\n\xe9,1\n", "n.csv", "not UTF-8 text, first in line 2"),
            ("id,x\na,1\n".encode("utf-16"), "n.csv", "UTF-16"),
            (b"id,x\n1,2\n", "n.parquet", "does not begin as a Parquet file"),
            (b"PAR1", "n.parquet", "damaged or cut short"),
            (b"PK\x03\x04zzzz", "n.xlsx", "Excel"),
            (gzip.compress(b"id,x\n1,2\n" * 99, mtime=0)[:-9], "n.csv.gz", "damaged or cut short"),
            (b"\x1f\x8bzzzzzzzzzzzz", "n.csv.gz", "damaged or cut short"),
            (b"id,x,x\n1,2,3\n", "n.csv", "several columns are called 'x'"),
            (b"id,x,\n1,2,3\n", "n.csv", "a column has no name"),
        ],
    )
    def test_what_cannot_be_read(self, tmp_path, content, name, words):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_node_table(path, "id")
        assert words in str(caught.value)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("kept", [0.2, 0.5, 0.99])
    def test_a_parquet_file_cut_short(self, tmp_path, kept):
        path = parquet(tmp_path, {"id": list(range(10_000)), "x": np.random.default_rng(0).random(10_000)})
        path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
        with pytest.raises(DataError, match="damaged or cut short"):
            read_node_table(path, "id")

    def test_no_file_and_a_folder(self, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            read_node_table(tmp_path / "n.csv", "id")
        with pytest.raises(DataError, match="is a folder"):
            read_edge_table(tmp_path)

    def test_text_that_is_no_text_in_a_parquet_file(self, tmp_path):
        broken = pa.array([b"a", b"\xff"]).cast(pa.binary()).view(pa.string())
        with pytest.raises(DataError, match="UTF"):
            read_node_table(parquet(tmp_path, {"id": [1, 2], "x": broken}), "id")


class TestIds:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["7", "0", "-3"], [7, 0, -3]),
            (["007", "12"], ["007", "12"]),
            (["a", "7"], ["a", "7"]),
            (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
            (["-0", "1"], ["-0", "1"]),
            (["0x1F", "1"], ["0x1F", "1"]),
            (["1.0", "2.0"], ["1.0", "2.0"]),
            (["NA", "null"], ["NA", "null"]),
            (["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-02"]),
        ],
    )
    def test_a_csv_file_holds_numbers_where_they_give_back_the_text(self, tmp_path, texts, expected):
        rows = "".join(f"{text},{number}\n" for number, text in enumerate(texts))
        assert read_node_table(csv(tmp_path, "id,x\n" + rows), "id").ids.to_pylist() == expected

    @pytest.mark.parametrize(
        ("ids", "expected"),
        [
            (pa.array(["7", "8"]), ["7", "8"]),
            (pa.array(["7", "8"]).dictionary_encode(), ["7", "8"]),
            (pa.array([7, 8], pa.int8()), [7, 8]),
            (pa.array([7, 2**64 - 1], pa.uint64()), ["7", str(2**64 - 1)]),
            (pa.array([" a", "a"]), [" a", "a"]),
        ],
    )
    def test_a_parquet_file_says_what_its_ids_are(self, tmp_path, ids, expected):
        assert read_node_table(parquet(tmp_path, {"id": ids, "x": [1, 2]}), "id").ids.to_pylist() == expected

    @pytest.mark.parametrize("ids", [[1.0, 2.0], [True, False], [datetime.date(2020, 1, 1)] * 2, [[1], [2]]])
    def test_other_types_are_no_ids(self, tmp_path, ids):
        assert "text or whole numbers" in problems_of(parquet(tmp_path, {"id": ids, "x": [1, 2]}), "id")

    def test_mixed(self, tmp_path):
        message = problems_of(csv(tmp_path, "id,x\n1,1\n2,2\n3,3\nx4,4\n"), "id")
        assert "whole numbers and 1 other values: 'x4'; expected ids of one type" in message

    def test_double(self, tmp_path):
        rows = "".join(f"{name},{number}\n" for number, name in enumerate("abcdefgabcdefg"))
        message = problems_of(csv(tmp_path, "id,x\n" + rows), "id")
        assert "7 ids in more than one row: 'a', 'b', 'c', 'd', 'e' and 2 more; expected each id once" in message

    @pytest.mark.parametrize("gap", ["", " "])
    def test_missing(self, tmp_path, gap):
        message = problems_of(csv(tmp_path, f"id,x\na,1\n{gap},2\n"), "id")
        assert "1 missing ids, in rows 2; expected an id in every row" in message
        assert "2 missing ids" in problems_of(parquet(tmp_path, {"id": [None, None], "x": [1, 2]}), "id")


class TestLabels:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["a", "", "b"], ["a", None, "b"]),
            (["1", "", "0"], [1, None, 0]),
            (["1.0", "", "0.0"], [1, None, 0]),
            (["1", "NaN", "0"], [1, None, 0]),
            (["1", "-1", "0"], [1, None, 0]),
            (["01", "", "02"], ["01", None, "02"]),
            (["True", "", "false"], [True, None, False]),
            (["NA", "", "nan"], ["NA", None, "nan"]),
            (["", "", ""], [None, None, None]),
        ],
    )
    def test_csv(self, tmp_path, texts, expected):
        rows = "".join(f"{number},{text},{number}\n" for number, text in enumerate(texts))
        nodes = read_node_table(csv(tmp_path, "id,y,x\n" + rows), "id", "y")
        assert nodes.labels is not None
        assert nodes.labels.to_pylist() == expected

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (["1", None, ""], ["1", None, None]),
            ([1, None, -1], [1, None, None]),
            ([1.0, None, float("nan")], [1, None, None]),
            ([True, None, False], [True, None, False]),
            ([None, None, None], [None, None, None]),
        ],
    )
    def test_parquet(self, tmp_path, labels, expected):
        nodes = read_node_table(parquet(tmp_path, {"id": [1, 2, 3], "y": labels, "x": [1, 2, 3]}), "id", "y")
        assert nodes.labels is not None
        assert nodes.labels.to_pylist() == expected

    @pytest.mark.parametrize("labels", [[1.5, 2.0], [float("inf"), 1.0], [[1], [2]], [datetime.date(2020, 1, 1)] * 2])
    def test_what_is_no_class(self, tmp_path, labels):
        path = parquet(tmp_path, {"id": [1, 2], "y": labels, "x": [1, 2]})
        assert "expected text, whole numbers or booleans" in problems_of(path, "id", "y")

    def table(self, labels: list[Any], split: list[str] | None = None) -> NodeTable:
        parts = None if split is None else np.array(split)
        return NodeTable("n.csv", pa.array(range(len(labels))), pa.table({}), {}, pa.array(labels), parts)

    @pytest.mark.parametrize(
        ("labels", "split", "words"),
        [
            (["a", "a", None], None, "one class, 'a'; expected at least two classes"),
            ([1, 1, None], None, "-1 means that there is no label"),
            ([None, None], None, "got none; expected at least two classes"),
            (["a", "a", "b", "c", None], None, "2 classes with one label: 'b', 'c'; expected two labels of each class"),
            (["a", "a", "b", "b"], ["train", "val", "train", "test"], "1 classes with one label: 'b'"),
            (["a", "a", "b", "b"], ["train", "val", "val", "val"], "no training label of 'b'"),
            (["a", "a", "b", "b"], ["train"] * 4, "no labelled node for validation"),
            (["a", "a", "b", "b", "c"], ["train", "val"] * 2 + ["test"], "test labels of 'c', which no other node has"),
        ],
    )
    def test_classes_that_cannot_be_learned(self, labels, split, words):
        problems = Problems()
        check_labels(self.table(labels, split), problems)
        (problem,) = problems.found
        assert words in str(problem)

    @pytest.mark.parametrize("split", [None, ["train", "val", "train", "val", "test"]])
    @pytest.mark.parametrize("last", [None, "a"])
    def test_classes_that_can(self, split, last):
        problems = Problems()
        check_labels(self.table(["a", "a", "b", "b", last], split), problems)
        assert problems.found == []

    def test_split(self, tmp_path):
        rows = ["train", "VAL", "test", "", "validation"]
        text = "id,part,x\n" + "".join(f"{number},{part},{number}\n" for number, part in enumerate(rows))
        nodes = read_node_table(csv(tmp_path, text), "id", split="part")
        assert nodes.split is not None
        assert nodes.split.tolist() == ["train", "val", "test", "train", "val"]
        assert list(nodes.kinds) == ["x"]
        message = problems_of(csv(tmp_path, text.replace("train", "trian")), "id", split="part")
        assert "1 other values: 'trian'; expected train, val, test, or nothing" in message

    @pytest.mark.parametrize(
        ("parts", "options", "found"),
        [
            (["train", "", "test"], {}, True),
            (["train", "", "test"], {"ignore": ["split"]}, False),
            (["train", "", "test"], {"categorical": ["split"]}, False),
            (["train", "", "other"], {}, False),
            (["1", "", "2"], {}, False),
            (["", "", ""], {}, False),
        ],
    )
    def test_a_column_that_looks_like_a_split_is_one(self, tmp_path, parts, options, found):
        text = "id,split,x\n" + "".join(f"{number},{part},{number}\n" for number, part in enumerate(parts))
        nodes = read_node_table(csv(tmp_path, text), "id", **options)
        assert (nodes.split is not None, nodes.split_column) == (found, "split" if found else None)
        assert ("split" in nodes.kinds) == (not found and "ignore" not in options)


class TestColumns:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (pa.array([1, 2], pa.uint8()), "numeric"),
            (pa.array([1, 2], pa.float16()), "numeric"),
            (pa.array([1, 2]).cast(pa.decimal128(25, 2)), "numeric"),
            (pa.array([None, None]), "numeric"),
            (pa.array([True, None]), "boolean"),
            (pa.array(["a", None]), "categorical"),
            (pa.array(["a", "b"]).dictionary_encode(), "categorical"),
        ],
    )
    def test_kinds(self, tmp_path, values, kind):
        assert dict(read_node_table(parquet(tmp_path, {"id": [1, 2], "x": values}), "id").kinds) == {"x": kind}

    def test_chosen_kinds(self, tmp_path):
        path = csv(tmp_path, "id,zip,words,x,z\n1,007,12,1,2\n2,008,13,2,3\n")
        nodes = read_node_table(path, "id", text=["words"], ignore=["z"], categorical=["zip"])
        assert dict(nodes.kinds) == {"zip": "categorical", "words": "text", "x": "numeric"}
        assert nodes.features.to_pydict() == {"zip": ["007", "008"], "words": ["12", "13"], "x": [1, 2]}

    @pytest.mark.parametrize(
        ("values", "advice"),
        [
            ([datetime.date(2020, 1, 1)] * 2, "days since"),
            ([datetime.datetime(2020, 1, 1)] * 2, "days since"),
            ([datetime.timedelta(1)] * 2, "days since"),
            ([[1, 2], [3]], "one column for each number"),
            ([{"a": 1}, {"a": 2}], "one column for each number"),
            ([b"a", b"b"], "one column for each number"),
        ],
    )
    def test_dates_and_nested_columns_are_refused(self, tmp_path, values, advice):
        message = problems_of(parquet(tmp_path, {"id": [1, 2], "when": values}), "id")
        assert "column 'when'" in message
        assert "--ignore" in message
        assert advice in message

    def test_dates_in_a_csv_file(self, tmp_path):
        path = csv(tmp_path, "id,when,x\n1,2020-01-01,1\n2,2020-01-02,2\n")
        assert "column 'when': got values of type date32" in problems_of(path, "id")
        assert list(read_node_table(path, "id", ignore=["when"]).kinds) == ["x"]

    def test_numbers_and_words_in_one_column(self, tmp_path):
        path = csv(tmp_path, "id,x\n1,1\n2,2\n3,unknown\n")
        message = problems_of(path, "id")
        assert "column 'x': got numbers and 1 other values: 'unknown'" in message
        assert "--categorical" in message
        assert dict(read_node_table(path, "id", categorical=["x"]).kinds) == {"x": "categorical"}

    def test_missing_columns_and_double_roles_at_once(self, tmp_path):
        path = csv(tmp_path, NODES)
        message = problems_of(path, "Id", "labl", ["city", "words"], ["agee", "city"], split="active")
        assert "6 problems" in message
        assert "id column: got 'Id'" in message
        assert "Did you mean 'id'?" in message
        assert "Did you mean 'label'?" in message
        assert "Did you mean 'age'?" in message
        assert "text column: got 'words'" in message
        assert "ignored column: got 'city', which is the text column too" in message
        assert "column 'active': got 3 other values: 'true', 'false'" in message

    def test_nothing_describes_the_nodes(self, tmp_path):
        assert "no column that describes the nodes" in problems_of(csv(tmp_path, "id,y\n1,2\n"), "id", "y")


class TestEdges:
    @pytest.mark.parametrize(
        ("header", "columns"),
        [
            ("source,target", ("source", "target")),
            ("x,Target,SOURCE", ("SOURCE", "Target")),
            ("dst,src,source", ("src", "dst")),
            ("from,w,to", ("from", "to")),
            ("paper,cites,w", ("paper", "cites")),
        ],
    )
    def test_columns(self, tmp_path, header, columns):
        values = ",".join("123"[: header.count(",") + 1])
        assert read_edge_table(csv(tmp_path, f"{header}\n{values}\n")).columns == columns

    def test_chosen_columns(self, tmp_path):
        edges = read_edge_table(csv(tmp_path, "source,target,a,b\n1,2,3,4\n"), "b", "a")
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == ([4], [3])

    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("a\n1\n", {}, "one column 'a'"),
            ("a,b\n1,2\n", {"source": "a"}, "both names or none"),
            ("a,b\n1,2\n", {"source": "a", "target": "c"}, "target column: got 'c'"),
            ("a,b\n1,2\n", {"source": "a", "target": "a"}, "which is the source column too"),
            ("a,b\n1,2\n", {"weight": "w"}, "weight column: got 'w'"),
            ("a,b\n1,\n", {}, "1 missing ids, in rows 1"),
            ("a,b\n1,2\n2,3\n3,x\n", {}, "column 'b': got whole numbers and 1 other values: 'x'"),
            ("a,b,w\n1,2,-1\n2,3,\n", {"weight": "w"}, "2 weights that are missing, negative or infinite: -1.0, nan"),
            ("a,b,w\n1,2,inf\n", {"weight": "w"}, "1 weights"),
            ("a,b,w\n1,2,x\n", {"weight": "w"}, "numbers of at least 0"),
        ],
    )
    def test_problems(self, tmp_path, text, options, words):
        with pytest.raises(InputError) as caught:
            read_edge_table(csv(tmp_path, text), **options)
        assert words in str(caught.value)

    def test_ends_of_two_types(self, tmp_path):
        with pytest.raises(InputError, match="text in one of the columns 'a', 'b' and whole numbers in the other"):
            read_edge_table(parquet(tmp_path, {"a": ["1"], "b": [1]}))
        edges = read_edge_table(csv(tmp_path, "a,b\n1,007\n"))
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == (["1"], ["007"])

    def test_an_edge_of_weight_zero_is_none(self, tmp_path):
        edges = read_edge_table(csv(tmp_path, "a,b,w\n1,2,0.5\n2,3,0\n3,1,2\n"), weight="w")
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == ([1, 3], [2, 1])

    @pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
    def test_columns_that_are_not_needed_are_not_read(self, tmp_path, name):
        columns = {"a.b": [1], "c": [2], "when": [datetime.date(2020, 1, 1)]}
        if name == "e.csv":
            path = csv(tmp_path, "a.b,c,when\n1,2,2020-01-01\n", name)
        else:
            path = parquet(tmp_path, columns, name)
        assert read_edge_table(path).columns == ("a.b", "c")
