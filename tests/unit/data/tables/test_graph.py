from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from small_tables import edge_columns, labels, matrix, node_columns, read_graph, said, text_file, write

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.graph.tables.graph import read_tables

NODES = "id,y,x\np0,a,1\np1,b,4\np2,a,9\np3,b,16\n"


def test_a_graph(tmp_path):
    nodes = write(tmp_path / "n.csv", node_columns())
    graph = read_graph(nodes, write(tmp_path / "e.csv", edge_columns()), id="id", label="group", text=["notes"])
    assert graph.notes == ()
    assert graph.edges[:, :2].tolist() == [[0, 1], [3, 4]]
    assert (graph.weights, graph.directed, graph.val, graph.test.size) == (None, False, None, 0)
    assert matrix(graph.features).shape == (60, len(graph.features.names))
    assert graph.features.names[:4] == ("age", "member", "city = Oslo", "city = Rome")
    assert [(one.column, one.kind, one.missing) for one in graph.columns] == [
        ("id", "id", 0),
        ("group", "label (classes)", 15),
        ("age", "numeric", 0),
        ("member", "boolean", 0),
        ("city", "categorical", 0),
        ("notes", "text", 0),
    ]
    assert graph.columns[1].became == "45 labels of 3 classes"


def test_columns_are_told_as_they_were_read(tmp_path):
    text = "id,y,split,x,z,same\n0,a,train,1,?,1\n1,b,,2,u,1\n2,a,val,4,u,1\n3,b,val,8,v,1\n4,,,3,v,1\n"
    graph = read_graph(text_file(tmp_path, text), id="id", ignore=["z"])
    assert [tuple(one) for one in graph.columns] == [
        ("id", "id", 0, "names of the nodes"),
        ("y", "label (classes)", 1, "4 labels of 2 classes"),
        ("split", "split", 2, "which labels train, validate and test"),
        ("x", "numeric", 0, "a number"),
        ("z", "ignored", 1, "not used"),
        ("same", "left out", 0, "the same value in every row"),
    ]


def test_notes_are_warnings_and_in_the_result(tmp_path):
    path = text_file(tmp_path, NODES + "p4,?,\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = read_tables(path, text_file(tmp_path, "a,b\np0,p9\np0,p1\n", "e.csv"), **OPTIONS)
    assert [str(one.message) for one in caught] == list(graph.notes)
    assert {one.category for one in caught} == {G3NNWarning}
    assert said(graph) == [
        "column 'y': 1 label written as '?'; taken as unknown. keep_na=True takes them as they are.",
        ": 1 edge in 2 rows; the others are 1 with ids that no node has",
        "column 'x': missing numbers; filled in from the neighbours, or with the mean",
    ]


OPTIONS = {"id": "id", "label": "y", "drop_unknown_edges": True}


def test_every_note_is_an_error_for_a_strict_caller(tmp_path):
    nodes = "id,y,x,same,name,day,words\n" + "".join(
        f"{i},{y},{x},1,n{i},0{i}/02/2020,{words}\n"
        for i, (y, x, words) in enumerate(
            [
                ("NA", "", "the cat sat on me"),
                ("unknown", 2, "the cat sat on it"),
                ("yes", 3, "a dog ran to me"),
                ("YES", 5, "a dog ran to it"),
                *[("unknown", 6, "so the dog sat down"), ("yes", 7, ""), ("YES", 7, "")],
            ],
            start=1,
        )
    )
    edges = text_file(tmp_path, "source,target,weight,more\n1,2,1,1\n", "e.csv")
    path = text_file(tmp_path, nodes)
    notes = [note for note in read_graph(path, edges, id="id").notes if not note.endswith("e.csv; 'more' left out")]
    with pytest.raises(InputError) as caught:
        read_graph(path, edges, id="id", strict=True)
    assert len(caught.value.problems) == len(notes) == 9
    assert [str(one).split(": got ")[0] for one in caught.value.problems] == [note.split(": ")[0] for note in notes]


def test_all_problems_of_both_tables_are_one_error(tmp_path):
    problems = Problems()
    problems.add("model", "'gnc'", "gcn")
    with pytest.raises(InputError) as caught:
        read_graph(
            text_file(tmp_path, "id,y,x\np0,a,1\np0,a,4\n"),
            text_file(tmp_path, "a\n1\n", "e.csv"),
            id="id",
            outcome="clases",
            categorical=["city"],
            problems=problems,
        )
    assert [str(one).replace(f"{tmp_path}/", "").split("; ")[0] for one in caught.value.problems] == [
        "model: got 'gnc'",
        "outcome: got 'clases'",
        "nodes.csv, categorical column: got no 'city' among 'id', 'y', 'x'",
        "nodes.csv, column 'id': got 1 id in more than one row ('p0')",
        "nodes.csv, column 'y': got 2 labels of 1 classes",
        "e.csv: got one column 'a'",
    ]
    with pytest.raises(InputError, match=r"(?s)2 problems.*nodes: got .*no such file.*edges: got .*no such file"):
        read_graph(tmp_path / "n.csv", tmp_path / "f.csv")


def test_without_any_column_that_describes_the_nodes(tmp_path):
    graph = read_graph(text_file(tmp_path, "id,y\nu,a\nv,b\nw,a\nz,b\n"), id="id")
    assert graph.features.matrix.shape == (4, 0)
    assert said(graph) == [
        ": no column that describes the nodes; degrees and positions in the graph will be the features"
    ]


def test_ids_meet_across_kinds_of_tables(tmp_path):
    floats = pa.table({"id": [14.0, 15.0, 16.0, 17.0], "y": labels(4), "x": [1, 4, 9, 16]})
    file = text_file(tmp_path, "id,y,x\n14,a,1\n15.0,b,4\n16,a,9\n17,b,16\n")
    links = [pa.table({"a": [14.0], "b": [17.0]}), text_file(tmp_path, "a,b\n14,17.0\n", "e.csv")]
    for nodes in (floats, file):
        assert [read_graph(nodes, edges, id="id").edges.tolist() for edges in links] == [[[0], [3]]] * 2
    codes = text_file(tmp_path, "id,y,x\n007,a,1\n7,b,4\n08,a,9\n9,b,16\n", "codes.csv")
    graph = read_graph(codes, text_file(tmp_path, "a,b\n7,007\n9,08\n", "f.csv"), id="id")
    np.testing.assert_array_equal(graph.edges, [[1, 3], [0, 2]])
