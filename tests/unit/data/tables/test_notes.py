from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from g3nn.data.tables.edge_table import EdgeColumns
from g3nn.data.tables.node_table import NodeColumns
from g3nn.data.tables.notes import TableNotes
from g3nn.data.tables.schema import Category, FeatureSchema, Number, Text
from g3nn.errors import DataError

COLUMNS = {
    "age": Number(0.1, 1e-300),
    "active": Number(0.0, 1.0, "boolean"),
    "city": Category(("Oslo", "Rome"), other=True),
    "abstract": Text({"deep": 1.1, "graph": 2 / 3}),
}


def notes(ids: tuple[Any, ...] = ("a", "b")) -> TableNotes:
    columns = NodeColumns("id", ("x", "y"), text=("abstract",), split="part")
    schema = FeatureSchema(("w0", "w1"), dict(COLUMNS))
    return TableNotes(
        columns, EdgeColumns("from", "to", "w"), schema, list(map(str, ids)), isinstance(ids[0], int), typed=True
    )


@pytest.mark.parametrize("ids", [("a", "b"), (7, -(2**63)), ("7", "8")])
def test_there_and_back(ids):
    before = notes(ids)
    after = TableNotes.from_json(json.loads(json.dumps(before.to_json())))
    assert after == before
    assert list(after.schema.columns) == list(COLUMNS)
    assert after.node_ids.to_pylist() == list(ids)
    assert before.to_json() == json.loads(json.dumps(before.to_json()))


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("node_columns", lambda content: content.update(node_columns={})),
        ("edge_columns", lambda content: content.update(edge_columns=None)),
        ("typed", lambda content: content.pop("typed")),
        ("ids", lambda content: content.update(ids=[1, "b"])),
        ("whole", lambda content: content.update(whole=None)),
        ("schema", lambda content: content.update(schema=3)),
        ("schema.columns", lambda content: content["schema"].update(columns=[])),
        ("schema.counts", lambda content: content["schema"].update(counts="w0")),
        ("age", lambda content: content["schema"]["columns"].update(age=7)),
        ("mean", lambda content: content["schema"]["columns"]["age"].pop("mean")),
        ("mean", lambda content: content["schema"]["columns"]["age"].update(mean="3")),
        ("mean", lambda content: content["schema"]["columns"]["age"].update(mean=float("nan"))),
        ("mean", lambda content: content["schema"]["columns"]["age"].update(mean=10**400)),
        ("scale", lambda content: content["schema"]["columns"]["age"].update(scale=0)),
        ("city", lambda content: content["schema"]["columns"]["city"].update(categories=[1])),
        ("city", lambda content: content["schema"]["columns"]["city"].update(other=1)),
        ("abstract", lambda content: content["schema"]["columns"]["abstract"].update(words=["deep"])),
        ("abstract", lambda content: content["schema"]["columns"]["abstract"].update(words={"deep": "1"})),
    ],
)
def test_damage_is_named(place, change):
    content = copy.deepcopy(notes().to_json())
    change(content)
    with pytest.raises(DataError, match=f"its notes are damaged.*{place}"):
        TableNotes.from_json(content)


@pytest.mark.parametrize("content", [None, 3, [], "text", {}])
def test_something_else(content):
    with pytest.raises(DataError, match="not fitted on tables"):
        TableNotes.from_json(content)
