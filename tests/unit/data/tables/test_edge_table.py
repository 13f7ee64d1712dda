from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import parquet_file, read_edges, text_file

from g3nn.data.tables.edge_table import EdgeTable, join
from g3nn.errors import G3NNWarning, InputError


class TestReading:
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
        assert read_edges(text_file(tmp_path, f"{header}\n{values}\n")).columns == columns

    def test_chosen_columns(self, tmp_path):
        edges = read_edges(text_file(tmp_path, "source,target,a,b\n1,2,3,4\n"), "b", "a")
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == ([4], [3])

    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("a\n1\n", {}, "one column 'a'"),
            ("a,b\n1,2\n", {"source": "a"}, "both names or none"),
            ("a,b\n1,2\n", {"source": "a", "target": "c"}, "target column: got 'c'"),
            ("a,b\n1,2\n", {"source": "a", "target": "a"}, "which is also the source column"),
            ("a,b\n1,2\n", {"weight": "w"}, "weight column: got 'w'"),
            ("a,b\n1,\n", {}, "1 missing id (row 1)"),
            ("a,b\n1,2\n2,3\n3,x\n", {}, "column 'b': got whole numbers and 1 other value ('x')"),
            ("a,b,w\n1,2,-1\n2,3,\n", {"weight": "w"}, "missing, negative or infinite weights (-1.0, nan)"),
            ("a,b,w\n1,2,inf\n", {"weight": "w"}, "weights (inf)"),
            ("a,b,w\n1,2,x\n", {"weight": "w"}, "numbers of at least 0"),
        ],
    )
    def test_problems(self, tmp_path, text, options, words):
        with pytest.raises(InputError) as caught:
            read_edges(text_file(tmp_path, text), **options)
        assert words in str(caught.value)

    def test_ends_of_two_types(self, tmp_path):
        with pytest.raises(InputError, match="text in one of the columns 'a', 'b' and whole numbers in the other"):
            read_edges(parquet_file(tmp_path, {"a": ["1"], "b": [1]}))
        edges = read_edges(text_file(tmp_path, "a,b\n1,007\n"))
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == (["1"], ["007"])

    def test_an_edge_of_weight_zero_is_none(self, tmp_path):
        edges = read_edges(text_file(tmp_path, "a,b,w\n1,2,0.5\n2,3,0\n3,1,2\n"), weight="w")
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == ([1, 3], [2, 1])

    @pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
    def test_columns_that_are_not_needed_are_not_read(self, tmp_path, name):
        columns = {"a.b": [1], "c": [2], "when": [datetime.date(2020, 1, 1)]}
        if name == "e.csv":
            path = text_file(tmp_path, "a.b,c,when\n1,2,2020-01-01\n", name)
        else:
            path = parquet_file(tmp_path, columns, name)
        assert read_edges(path).columns == ("a.b", "c")


def edge_table(source: list[Any], target: list[Any], typed: bool = False) -> EdgeTable:
    return EdgeTable("e.csv", pa.array(source), pa.array(target), ("source", "target"), typed)


class TestJoin:
    @pytest.mark.parametrize("ids", [["a", "b", "c"], [5, 0, 3]])
    def test_positions(self, ids):
        edges = edge_table([ids[2], ids[0]], [ids[1], ids[0]])
        pairs = join(edges, pa.array(ids), typed=True)
        assert pairs.tolist() == [[2, 0], [1, 0]]
        assert pairs.dtype == np.int64

    @pytest.mark.parametrize(("ids", "ends", "typed"), [(["7", "a"], [7, 7], True), ([7, 8], ["7", "7"], False)])
    def test_numbers_of_a_csv_file_match_the_same_text(self, ids, ends, typed):
        assert join(edge_table(ends, ends), pa.array(ids), typed=typed).tolist() == [[0, 0], [0, 0]]

    def test_types_that_two_files_state_must_agree(self):
        with pytest.raises(
            InputError, match=r"columns 'source', 'target': got ids that are text; expected whole numbers, as"
        ):
            join(edge_table(["7"], ["8"], typed=True), pa.array([7, 8]), typed=True)

    def test_unknown_ids(self):
        edges = edge_table(["a", *"tuvwxyz"], ["a", *"bbbbbbb"])
        with pytest.raises(InputError) as caught:
            join(edges, pa.array(["a", "b"]), typed=False)
        assert "7 of 8 edges with ids that no node has ('t', 'u', 'v', 'w', 'x' and 2 more)" in str(caught.value)
        assert "--drop-unknown-edges" in str(caught.value)

    def test_unknown_ids_are_dropped_when_asked(self):
        edges = edge_table(["a", "x", "b"], ["b", "a", "y"])
        with pytest.warns(G3NNWarning, match="left out 2 of 3 edges"):
            pairs = join(edges, pa.array(["a", "b"]), typed=False, drop_unknown=True)
        assert pairs.tolist() == [[0], [1]]

    def test_all_edges_are_never_dropped(self):
        with pytest.raises(InputError, match="Both tables must use the same ids"):
            join(edge_table(["x"], ["y"]), pa.array(["a"]), typed=False, drop_unknown=True)

    def test_many(self):
        rng = np.random.default_rng(0)
        ids = rng.permutation(1000)
        pairs = rng.integers(0, 1000, (2, 5000))
        edges = edge_table(ids[pairs[0]].tolist(), ids[pairs[1]].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(join(edges, pa.array(ids), typed=False), pairs)
