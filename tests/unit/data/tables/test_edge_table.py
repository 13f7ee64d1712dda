from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import labels, parquet_file, read_edges, read_graph, said, text_file

from g3nn.base.errors import InputError
from g3nn.graph.tables.edge_table import REPEATS, EdgeColumns, EdgeTable, join, load_edges
from g3nn.graph.tables.remarks import Remarks

NODES = pa.table({"y": labels(4), "x": [1, 2, 4, 9]})


class TestReading:
    def test_ends(self, tmp_path):
        cases = [
            ("x,Target,SOURCE", ("SOURCE", "Target")),
            ("dst,src,source", ("src", "dst")),
            ("from,w,to", ("from", "to")),
            ("paper,cites,w", ("paper", "cites")),
        ]
        for header, ends in cases:
            edges = read_edges(text_file(tmp_path, f"{header}\n1,2,3\n"))
            assert (edges.columns.source, edges.columns.target) == ends

    def test_chosen_columns(self, tmp_path):
        edges = read_edges(text_file(tmp_path, "source,target,a,b,w\n1,2,3,4,5\n"), "b", "a", "w")
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == ([4], [3])
        assert (edges.weights, edges.columns) == (np.array([5.0]), EdgeColumns("b", "a", "w"))

    def test_problems(self, tmp_path):
        cases = [
            ("a\n1\n", {}, "one column 'a'"),
            ("a,b\n1,2\n", {"source": "a"}, "both names or none"),
            ("a,b\n1,2\n", {"source": "a", "target": "c", "weight": "w"}, "2 problems"),
            ("a,b\n1,2\n", {"source": "a", "target": "a"}, "which is also the source column"),
            ("a,b\n1,2\n2,3\n3,x\n", {}, "column 'b': got whole numbers and 1 other value ('x')"),
            ("a,b,w\n1,2,-1\n2,3,\n4,5,inf\n", {"weight": "w"}, "infinite weights (-1.0, None, inf); expected numbers"),
            ("a,b,weight\n1,2,heavy\n2,3,1\n", {}, 'expected numbers of at least 0. weight="none"'),
        ]
        for text, options, words in cases:
            with pytest.raises(InputError) as caught:
                read_edges(text_file(tmp_path, text), **options)
            assert words in str(caught.value)

    def test_ends_of_two_types(self, tmp_path):
        with pytest.raises(InputError, match="text in one of the columns 'a', 'b' and whole numbers in the other"):
            read_edges(parquet_file(tmp_path, {"a": ["1"], "b": [1]}))
        edges = read_edges(text_file(tmp_path, "a,b\n1,007\n"))
        assert (edges.source.to_pylist(), edges.target.to_pylist()) == (["1"], ["007"])


class TestNotes:
    def test_weights_are_found_by_name(self, tmp_path):
        path = text_file(tmp_path, 'source,target,Weight,when,how\n0,1,0,1,2\n2,3,"1,5",1,2\n', "e.csv")
        graph = read_graph(NODES, path)
        assert said(graph) == [
            ": a column 'Weight'; its numbers are the weights of the edges. weight=\"none\" ignores them.",
            "; 'how', 'when' left out",
        ]
        assert graph.weights is not None
        assert (graph.edges.tolist(), graph.weights.tolist()) == ([[2], [3]], [1.5])

    def test_weights_may_be_ignored(self, tmp_path):
        graph = read_graph(NODES, text_file(tmp_path, "a,b,weight\n0,1,0\n2,3,-5\n", "e.csv"), weight="none")
        assert (graph.edges.tolist(), graph.weights, graph.notes) == ([[0, 2], [1, 3]], None, ())

    @pytest.mark.parametrize("name", ["e.csv", "frame"])
    def test_a_header_without_rows_is_a_graph_without_edges(self, tmp_path, name):
        nodes = NODES.append_column("id", pa.array(["u", "v", "w", "z"]))
        empty: Any = pa.table({"source": pa.nulls(0), "target": pa.nulls(0), "weight": pa.nulls(0)})
        table = text_file(tmp_path, "source,target,weight\n", name) if name == "e.csv" else empty
        graph = read_graph(nodes, table, id="id")
        assert graph.edges.shape == (2, 0)
        assert said(graph)[-1] == ": no rows; there are no edges"

    def test_a_first_line_that_is_probably_an_edge(self, tmp_path):
        graph = read_graph(NODES, text_file(tmp_path, "0,1\n1,2\n", "e.csv"))
        assert said(graph) == [
            ": numbers for names of columns; the first line is no edge. If it is one, write a line with names above it."
        ]

    def test_columns_that_are_not_needed_are_not_read(self, tmp_path):
        day = datetime.date(2020, 1, 1)
        path = parquet_file(tmp_path, {"a.b": [1], "c": [2], "when": [day], "deep": [[1]]}, "e.parquet")
        assert read_edges(path).columns == EdgeColumns("a.b", "c")


def edge_table(source: list[Any], target: list[Any], typed: bool = False) -> EdgeTable:
    return EdgeTable("e.csv", pa.array(source), pa.array(target), EdgeColumns("source", "target"), typed=typed)


def pairs(edges: EdgeTable, ids: Any, typed: bool = False, **options: Any) -> Any:
    return join(edges, pa.array(ids), typed, Remarks(), **options)[0].tolist()


class TestJoin:
    def test_positions(self):
        rng = np.random.default_rng(0)
        ids, ends = rng.permutation(1000), rng.integers(0, 1000, (2, 5000))
        for names in (ids, ids.astype(str)):
            edges = edge_table(names[ends[0]].tolist(), names[ends[1]].tolist())
            assert pairs(edges, names.tolist()) == ends.tolist()

    def test_numbers_of_a_csv_file_match_the_same_text(self):
        assert pairs(edge_table([7], [7]), ["7", "a"], typed=True) == [[0], [0]]
        assert pairs(edge_table(["7"], ["7"]), [7, 8]) == [[0], [0]]

    def test_types_that_two_tables_state_must_agree(self):
        words = "columns 'source', 'target': got ids that are text; expected whole numbers, as in the node table"
        with pytest.raises(InputError, match=words):
            pairs(edge_table(["7"], ["8"], typed=True), [7, 8], typed=True)

    def test_unknown_ids(self):
        edges, remarks = edge_table(["a", *"tuvwxyz"], ["a", *"bbbbbbb"]), Remarks(strict=True)
        with pytest.raises(InputError) as caught:
            pairs(edges, ["a", "b"])
        assert "7 of 8 edges with ids that no node has ('t', 'u', 'v', 'w', 'x' and 2 more)" in str(caught.value)
        assert "drop_unknown_edges=True" in str(caught.value)
        assert join(edges, pa.array(["a", "b"]), False, remarks, drop_unknown=True)[0].tolist() == [[0], [0]]
        assert remarks.notes == ["e.csv: 1 edge in 8 rows; the others are 7 with ids that no node has"]
        assert remarks.found == []

    @pytest.mark.parametrize("drop_unknown", [True, False])
    def test_all_edges_are_never_dropped(self, drop_unknown):
        with pytest.raises(InputError, match='Both tables must use the same ids; id="COL" names the column'):
            pairs(edge_table(["x"], ["y"]), ["a"], drop_unknown=drop_unknown)


class TestEachEdgeOnce:
    ROWS = "source,target\n0,1\n1,0\n0,1\n0,1\n2,2\n2,3\n3,2\n1,9\n"

    def test_the_note_adds_up_and_repeats_are_weights(self, tmp_path):
        """Three times in one direction is three, whatever the other says; once in both is one."""
        graph = read_graph(NODES, text_file(tmp_path, self.ROWS, "e.csv"), drop_unknown_edges=True)
        assert said(graph) == [
            ": 2 edges in 8 rows; the others are 1 self-loop, 2 repeats, 2 stated both ways, 1 with ids that no node "
            'has. An edge weighs as much as it was repeated; weight="none" counts each once.'
        ]
        assert graph.weights is not None
        assert (graph.edges.tolist(), graph.weights.tolist()) == ([[0, 2], [1, 3]], [3, 1])
        assert graph.edge_columns == EdgeColumns("source", "target", REPEATS)

    @pytest.mark.parametrize(
        ("rows", "options", "edges", "weights"),
        [
            ("source,target\n3,2\n0,1\n", {}, [[3, 0], [2, 1]], None),
            ("source,target\n3,2\n2,3\n", {}, [[2], [3]], None),
            (ROWS, {"weight": "none"}, [[0, 2], [1, 3]], None),
            (ROWS, {"directed": True}, [[0, 1, 2, 3], [1, 0, 3, 2]], None),
            ("source,target,weight\n0,1,2\n0,1,3\n1,0,4\n", {}, [[0], [1]], [9]),
        ],
        ids=["nothing to merge", "both ways", "none", "directed", "weights"],
    )
    def test_weights_only_where_repeats_may_be_counted(self, tmp_path, rows, options, edges, weights):
        graph = read_graph(NODES, text_file(tmp_path, rows, "e.csv"), drop_unknown_edges=True, **options)
        assert graph.edges.tolist() == edges
        assert (None if graph.weights is None else graph.weights.tolist()) == weights

    def test_later_tables_count_as_the_fit_did(self):
        edges, remarks = pa.table({"source": [0, 1, 2], "target": [1, 0, 3]}), Remarks()
        table = load_edges(edges, EdgeColumns("source", "target", REPEATS), remarks)
        assert table is not None
        found, weights = join(table, pa.array([0, 1, 2, 3]), True, remarks)
        assert weights is not None
        assert (found.tolist(), weights.tolist()) == ([[0, 2], [1, 3]], [1, 1])
