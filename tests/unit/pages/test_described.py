from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from g3nn.base.errors import Problems
from g3nn.pages import described as module
from g3nn.pages.described import described


def of(nodes, id=None, labels=(), ids=None):
    """What is found in a table of three nodes. ids: those of the fit, if it was made with tables."""
    columns = SimpleNamespace(id=id, labels=labels)
    tables = None if ids is None else SimpleNamespace(ids=ids, node_columns=columns, added=0)
    problems = Problems()
    found = described(3, tables, nodes, problems)
    return found, [problem.argument for problem in problems.found]


def test_ids_come_from_the_fit_or_the_column_id_or_are_numbers():
    frame = pd.DataFrame({"ID": ["x", "y", "z"], "age": [1.25, None, 3.0]})
    assert of(None)[0].ids == ["0", "1", "2"]
    assert of(frame)[0].ids == ["x", "y", "z"]
    assert of(None, ids=["a", "b", "c"])[0].ids == ["a", "b", "c"]
    found = of(frame, id="ID", ids=["a", "b", "c"])[0]
    assert found.ids == ["a", "b", "c"]
    assert found.columns == {"age": ["1.25", None, "3"]}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["city", "name", "title"], "name"),
        (["title", "Full Name"], "title"),
        (["rank", "team_name"], "team_name"),
        (["label", "city"], None),
        (["rank", "city"], None),
    ],
)
def test_a_column_with_names_is_guessed(names, expected):
    table = pa.table({name: ["Ann", "Bo", None] for name in names})
    assert of(table, labels=("label",), ids=["a", "b", "c"])[0].title == expected


def test_numbers_are_no_names():
    assert of(pa.table({"name": [1, 2, 3]}))[0].title is None


def test_columns_are_left_out_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    monkeypatch.setattr(module, "LONGEST", 5)
    found = of(pa.table({"a": ["x"] * 3, "b": ["a long text"] * 3, "name": ["Ann"] * 3}))[0]
    assert (list(found.columns), found.title, found.left_out) == (["a", "name"], "name", 1)
    monkeypatch.setattr(module, "MOST_COLUMNS", 3)
    monkeypatch.setattr(module, "MOST_BYTES", 30)
    assert list(of(pa.table({"a": ["漢字"] * 3, "b": ["x"] * 3}))[0].columns) == ["a"]
    assert of(pa.table({"b": ["a long text"] * 3}))[0].columns["b"] == ["a lo…"] * 3


def test_tables_that_do_not_belong_to_the_fit():
    assert of(pa.table({"name": ["Ann"]}))[1] == ["nodes"]
    assert of(["Ann", "Bo", "Cy"])[1] == ["nodes"]


def test_what_is_shown_of_some_nodes():
    found = of(pa.table({"id": [7, 8, 9], "name": ["Ann", "Bo", "Cy"]}))[0]
    shown = found.at(np.array([2, 0]))
    assert (shown["ids"], shown["columns"]) == (["9", "7"], {"name": ["Cy", "Ann"]})
