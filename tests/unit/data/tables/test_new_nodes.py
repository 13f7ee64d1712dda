from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import labels, matrix, read_graph, text_file

from g3nn.base.errors import G3NNWarning
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, read_new_nodes
from g3nn.graph.tables.remarks import Remarks

ROWS = "id,y,age,city,same,z\nu,a,1,Rome,1,5\nv,b,,Oslo,1,6\nw,a,4,Rome,1,7\nx,b,8,Oslo,1,5\n"


def fitted(folder: Path, text: str = ROWS, edges: str = "a,b\nu,v\n", **options: Any) -> FittedTables:
    graph = read_graph(text_file(folder, text), text_file(folder, edges, "e.csv"), **options)
    return FittedTables.from_json(FittedTables.of(graph).to_json())


@pytest.fixture
def tables(tmp_path: Path) -> FittedTables:
    return fitted(tmp_path, id="id", ignore=["z"])


def read(tables: FittedTables, nodes: Any, edges: Any = None, **options: Any) -> tuple[NewNodes, list[str]]:
    remarks = Remarks()
    new = read_new_nodes(tables, nodes, edges, remarks, **options)
    assert remarks.found == []
    assert new is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        remarks.tell()
    return new, remarks.notes


def problems(tables: FittedTables, nodes: Any, edges: Any = None) -> list[str]:
    remarks = Remarks()
    assert read_new_nodes(tables, nodes, edges, remarks) is None
    return [str(problem).split("; ")[0] for problem in remarks.found]


def test_new_and_old_rows(tables, tmp_path):
    nodes = pa.table({"id": ["n1", "v", "n2"], "age": [2.0, 3.0, 4.0], "city": ["Rome", "Rome", "Oslo"]})
    edges = text_file(tmp_path, "a,b,weight\nn1,u,5\nn2,n1,5\n", "new.csv")
    new, notes = read(tables, nodes, edges)
    assert (new.ids.to_pylist(), new.numbers.tolist(), new.count) == (["n1", "v", "n2"], [4, 1, 5], 2)
    assert matrix(new.features).tolist() == [[2, 0, 1], [4, 1, 0]]
    # The weights of these edges are not used, as there were none in the fit.
    assert (new.edges.tolist(), new.weights) == ([[4, 5], [0, 4]], None)
    assert notes == ["nodes (data frame): 1 of 3 ids were in the fit; their answers are those of the fit"]
    assert new.content.column_names == ["id", "age", "city"]


def test_columns_that_the_fit_did_not_use_are_not_mentioned(tables, tmp_path):
    path = text_file(tmp_path, "id,y,age,city,same,z,more\nn1,?,2,Rome,x,y,1\n", "new.csv")
    new, notes = read(tables, path)
    assert new.count == 1
    assert notes == [f"{path}, column 'more': columns that the model was not fitted with; left out"]


def test_what_is_odd_about_a_file_is_said_once(tables, tmp_path):
    (tmp_path / "new.csv").write_bytes("id,age,city\nn1,2,Zoë\n".encode("latin-1"))
    _, notes = read(tables, tmp_path / "new.csv")
    assert [note.split("; ")[0].rpartition("/")[2] for note in notes] == [
        "new.csv: text that is not UTF-8",
        "new.csv, column 'city': 1 value that the fit has not seen ('Zoë')",
    ]


def test_all_problems_at_once(tables, tmp_path):
    path = text_file(tmp_path, "id,age\nn1,old\nn2,young\n", "new.csv")
    edges = text_file(tmp_path, "a,b\nn1,nobody\nn1,u\n", "links.csv")
    assert [line.replace(f"{tmp_path}/", "") for line in problems(tables, path, edges)] == [
        "new.csv: got no column 'city'",
        "new.csv, column 'age': got 'old', 'young', which are no numbers",
        "links.csv: got 1 of 2 edges with ids that no node has ('nobody')",
    ]
    assert problems(tables, text_file(tmp_path, "age,city\n1,Rome\n", "new.csv"))[0].endswith(
        "id column: got no 'id' among 'age', 'city'"
    )
    assert "no such file" in problems(tables, tmp_path / "none.csv")[0]
    _, notes = read(tables, pa.table({"id": ["n1"], "age": [1], "city": ["Rome"]}), edges, drop_unknown=True)
    assert notes == [f"{edges}: 1 edge in 2 rows; the others are 1 with ids that no node has"]


def test_types_of_ids_must_agree():
    table = pa.table({"id": [1, 2, 3, 4], "y": labels(4), "x": [1, 4, 9, 17]})
    tables = FittedTables.of(read_graph(table, id="id"))
    assert problems(tables, pa.table({"id": ["n"], "x": [1]})) == ["nodes (data frame), ids: got ids that are text"]
    new, _ = read(tables, pa.table({"id": [4.0, 5.0], "x": [1, 2]}))
    assert new.numbers.tolist() == [3, 4]


def test_rows_without_ids_are_new(tmp_path):
    tables = fitted(tmp_path, "y,x\na,1\nb,4\na,9\nb,17\n", "a,b\n0,1\n")
    new, notes = read(tables, text_file(tmp_path, "x\n3\n5\n", "new.csv"), text_file(tmp_path, "a,b\n4,0\n", "f.csv"))
    assert (new.numbers.tolist(), new.edges.tolist(), notes) == ([4, 5], [[4], [0]], [])


def test_nodes_that_no_column_describes_are_counted(tmp_path):
    tables = fitted(tmp_path, "id,y\nu,a\nv,b\nw,a\nx,b\n", id="id")
    new, _ = read(tables, pa.table({"id": ["n1", "u", "n2"]}))
    assert (new.count, new.features.matrix.shape, new.numbers.tolist()) == (2, (2, 0), [4, 0, 5])


def test_numbers_are_read_as_in_the_fit(tmp_path):
    rows = "".join(f'{y},"{x}"\n' for y, x in zip("abab", ["1,5", "2,25", "1.234,5", "3"], strict=True))
    tables = fitted(tmp_path, "y,x\n" + rows, "a,b\n0,1\n")
    new, _ = read(tables, text_file(tmp_path, 'x\n"1,234"\n"x"\n"2,5"\n', "new.csv"))
    np.testing.assert_array_equal(matrix(new.features)[:, 0], [1.234, np.nan, 2.5])
