"""Columns of an edge table become features of the nodes at both ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import matrix, read_graph

from g3nn import G3NNClassifier
from g3nn.base.errors import InputError
from g3nn.graph.tables.fitted_tables import FittedTables, read_new_nodes
from g3nn.graph.tables.remarks import Remarks

NODES = pa.table({"id": ["u", "v", "w", "z"], "y": ["a", "b", "a", "b"], "age": [1.0, 5.0, 2.0, 9.0]})
EDGES = pa.table(
    {
        "source": ["u", "u", "v"],
        "target": ["v", "w", "w"],
        "amount": [10.0, 30.0, None],
        "how": ["web", "shop", "web"],
        "same": [1, 1, 1],
        "tx": ["t1", "t2", "t3"],
    }
)


def read(nodes: Any = NODES, edges: Any = EDGES, **options: Any) -> Any:
    return read_graph(nodes, edges, id="id", **options)


def columns(graph: Any) -> dict[str, list[float]]:
    return dict(zip(graph.features.names, matrix(graph.features).T.tolist(), strict=True))


def test_numbers_and_categories_of_the_edges_of_each_node():
    graph = read(NODES, EDGES.set_column(3, "how", [["web", "shop", "shop"]]))
    found = columns(graph)
    assert found.pop("age") == [1, 5, 2, 9]
    np.testing.assert_equal(
        found,
        {
            "edges": [2, 2, 2, 0],
            "how = other (mean of edges)": [0.5, 0.5, 0, 0],
            "how = shop (mean of edges)": [0.5, 0.5, 1, 0],
            "amount (mean of edges)": [20, 10, 30, np.nan],
            "amount (least of edges)": [10, 10, 30, np.nan],
            "amount (most of edges)": [30, 10, 30, np.nan],
            "amount (sum of edges)": [40, 10, 30, 0],
        },
    )
    (note,) = graph.notes
    assert "'how', 'amount' summed up" in note or "'amount', 'how' summed up" in note
    assert "'same', 'tx' left out" in note


def test_directed_edges_are_summed_up_at_either_end():
    found = columns(read(directed=True))
    assert (found["edges out"], found["edges in"]) == ([2, 1, 0, 0], [0, 1, 2, 0])
    np.testing.assert_equal(found["amount (sum of edges out)"], [40, 0, 0, 0])
    np.testing.assert_equal(found["amount (mean of edges in)"], [np.nan, 10, 30, np.nan])


def test_columns_may_be_ignored_in_either_table():
    graph = read(ignore=["amount", "tx", "how"])
    assert (list(columns(graph)), graph.notes) == (["age"], ("edges (data frame); 'same' left out",))
    with pytest.raises(InputError, match="no 'amuont'"):
        read(ignore=["amuont"])


def test_tables_of_several_types_have_columns_of_their_own():
    calls = pa.table({"source": ["u"], "target": ["z"], "minutes": [3.0]})
    calls = pa.concat_tables([calls, pa.table({"source": ["v"], "target": ["z"], "minutes": [5.0]})])
    found = columns(read(NODES, {"pay": EDGES, "call": calls}))
    np.testing.assert_equal(found["minutes (mean of edges)"], [3, 5, np.nan, 4])
    np.testing.assert_equal(found["amount (sum of edges)"], [40, 10, 30, 0])
    assert found["edges"] == [3, 3, 2, 2]


def test_without_columns_of_nodes_positions_in_the_graph_are_features_too():
    graph = read(NODES.drop_columns(["age"]))
    assert {"degree", "position 1", "amount (sum of edges)"} <= {*columns(graph)}
    assert "further features" in graph.notes[-1]
    again = FittedTables.from_json(FittedTables.of(graph).to_json())
    new = read_new_nodes(again, pa.table({"id": ["n"]}), EDGES.slice(0, 0), Remarks())
    assert new is not None
    assert new.features.names == graph.features.names
    assert np.isnan(matrix(new.features)[0, -1])


def test_loops_alone_say_nothing_of_positions():
    loops = pa.table({"source": ["u", "v", "w"], "target": ["u", "v", "w"], "amount": [1.0, 2.0, 5.0]})
    found = columns(read(NODES.drop_columns(["age"]), loops))
    assert (found["degree"], found["position 1"]) == ([0] * 4, [0] * 4)


def test_edges_of_new_nodes_are_summed_up_likewise():
    tables = FittedTables.from_json(FittedTables.of(read()).to_json())
    later = pa.table(
        {"source": ["n", "n"], "target": ["u", "z"], "amount": [4.0, 6.0], "how": ["web", "new"], "tx": ["a", "b"]}
    )
    remarks = Remarks()
    new = read_new_nodes(tables, pa.table({"id": ["n"], "age": [3.0]}), later, remarks)
    assert remarks.found == []
    assert new is not None
    assert new.features.names is not None
    found = dict(zip(new.features.names, matrix(new.features)[0].tolist(), strict=True))
    assert (found["edges"], found["amount (mean of edges)"], found["amount (most of edges)"]) == (2, 5, 6)
    assert (
        read_new_nodes(tables, pa.table({"id": ["n"], "age": [3.0]}), later.drop_columns(["amount"]), remarks) is None
    )
    assert "no column 'amount'" in str(remarks.found[0])


@pytest.mark.slow
@pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly", "few_models")
def test_amounts_tell_classes_apart_that_nothing_else_does():
    rng, n = np.random.default_rng(0), 200
    classes = rng.integers(0, 2, n)
    ends = rng.integers(0, n, (2, 1500))
    ends = ends[:, ends[0] != ends[1]]
    amounts = np.exp(rng.normal(size=ends.shape[1]) + 2.0 * classes[ends[0]])
    labels = np.where(rng.random(n) < 0.5, np.array(["a", "b"])[classes], "")
    nodes = pa.table({"id": np.arange(n), "y": labels, "age": rng.random(n)})
    edges = pa.table({"source": ends[0], "target": ends[1], "amount": amounts})
    graph = read(nodes, edges, label="y", directed=True)
    fitted = G3NNClassifier(effort="quick", random_state=0, directed=True).fit(graph)
    later = pa.table({"id": [n], "age": [0.5]})
    with pytest.raises(InputError, match="pairs of node numbers; expected a table with the columns 'amount'"):
        fitted.predict(later, np.array([[n], [0]]))
    for answer, usual in (("a", 0.0), ("b", 2.0)):
        paid = {"source": [n] * 9, "target": range(9), "amount": np.exp(np.linspace(-1.5, 1.5, 9) + usual)}
        assert fitted.predict(later, pa.table(paid)).tolist() == [answer]
    asked = labels == ""
    assert (fitted.predict()[asked] == np.array(["a", "b"])[classes[asked]]).mean() > 0.9
