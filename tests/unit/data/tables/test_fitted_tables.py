from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa
import pytest
from small_tables import labels, read_graph

from g3nn.base.errors import DataError
from g3nn.graph.tables.edge_table import EdgeColumns
from g3nn.graph.tables.fitted_tables import FittedTables

COLUMNS = {
    "y": labels(6),
    "age": [0.1, 1e-300, 2 / 3, 4.0, 5.0, None],
    "active": [True, False, True, True, None, True],
    "city": ["Oslo", "Rome", "Bonn", "Oslo", "Rome", "Oslo"],
    "day": ["01.02.2020", "13.02.2020", "05.03.2020", "01.02.2020", "NA", "01.02.2020"],
    "abstract": ["deep graph", "graph sea", "deep sea", "sea fish", "fish", "deep"],
    "price": ["1,5", "2,25", "3", "4,5", "5", "6"],
    "same": [1] * 6,
}


def fitted(ids: tuple[Any, ...] = tuple("uvwxyz")) -> FittedTables:
    edges = pa.table({"from": [ids[0]], "to": [ids[1]]})
    return FittedTables.of(read_graph(pa.table({"id": ids, **COLUMNS}), edges, id="id", text=["abstract"], na=["x"]))


@pytest.mark.parametrize("ids", [tuple("abcdef"), (7, -(2**63), 1, 2, 3, 4), tuple("789012")])
def test_there_and_back(ids):
    before = fitted(ids)
    content = before.to_json()
    assert content == json.loads(json.dumps(content))
    after = FittedTables.from_json(content)
    assert after == before
    assert after.node_ids.to_pylist() == list(ids)
    assert [one.kind for one in after.schema.columns.values()] == [
        *["numeric", "boolean", "categorical", "date", "text", "numeric"]
    ]
    assert after.schema.left_out == {"same"}
    assert after.node_columns.nulls[-1] == "x"


def test_edges_that_counted_alike_will_do_so_later():
    assert fitted().edge_columns == EdgeColumns("from", "to", "none")


def test_damage_is_named():
    cases = [
        ("node_columns", lambda content: content.update(node_columns=3)),
        ("edge_columns", lambda content: content.update(edge_columns=None)),
        ("typed", lambda content: content.pop("typed")),
        ("ids", lambda content: content.update(ids=[1, "b"])),
        ("schema.columns", lambda content: content["schema"].update(columns=[])),
        ("age", lambda content: content["schema"]["columns"].update(age=7)),
        ("price", lambda content: content["schema"]["columns"]["price"].update(decimal=";")),
        ("day", lambda content: content["schema"]["columns"]["day"].update(latest=float("nan"))),
        ("day", lambda content: content["schema"]["columns"]["day"].update(latest=1e200)),
        ("city", lambda content: content["schema"]["columns"]["city"].update(categories=[1])),
        ("abstract", lambda content: content["schema"]["columns"]["abstract"].update(words={"deep": "1"})),
    ]
    for place, change in cases:
        content = copy.deepcopy(fitted().to_json())
        change(content)
        with pytest.raises(DataError, match=f"what the model remembers of its tables is damaged.*{place}"):
            FittedTables.from_json(content)


def test_something_else():
    cases = [None, [], {}]
    for content in cases:
        with pytest.raises(DataError, match="is damaged"):
            FittedTables.from_json(content)
