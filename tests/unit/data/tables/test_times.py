"""Times of nodes and edges."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from small_tables import read_graph

from g3nn.base.errors import InputError

IDS = [f"n{place}" for place in range(10)]
NODES = pa.table(
    {
        "id": IDS,
        "y": ["a", "b"] * 4 + ["", ""],
        "when": [f"2020-01-{day:02}" for day in range(1, 11)],
        "age": [float(3 * place % 7) for place in range(10)],
    }
)
EDGES = pa.table(
    {
        "source": ["n0", "n1", "n4", "n8"],
        "target": ["n1", "n8", "n9", "n9"],
        "when": ["2020-01-02", "2020-01-02", "2020-01-04", "2020-02-01"],
    }
)


def read(nodes: Any = NODES, edges: Any = EDGES, time: str = "when", **options: Any) -> Any:
    return read_graph(nodes, edges, id="id", label="y", time=time, **options)


def test_the_latest_labels_validate_and_later_edges_are_left_out():
    """n0 has its label before its only edge; nodes without labels hear all of theirs."""
    graph = read()
    assert graph.val.tolist() == [6, 7]
    assert graph.edges.T.tolist() == [[1, 8], [4, 9], [8, 9]]
    assert any("the 2 latest labels, from 2020-01-07, validate" in note for note in graph.notes)
    assert any("3 edges in 4 rows; the others are 1 later than the label of an end" in note for note in graph.notes)


def test_times_of_nodes_alone_divide_the_labels():
    graph = read(NODES.set_column(2, "when", [list(range(10, 0, -1))]), EDGES.drop_columns(["when"]))
    assert (graph.val.tolist(), graph.edges.shape[1]) == ([1, 0], 4)


def test_with_times_of_edges_alone_a_node_is_as_late_as_its_last_edge():
    graph = read(NODES.drop_columns(["when"]))
    assert (graph.val.tolist(), graph.edges.shape[1]) == ([1, 4], 4)


def test_a_split_is_kept():
    parts = ["val", "val", *["train"] * 6, "", ""]
    graph = read(NODES.append_column("split", [parts]))
    assert (graph.val.tolist(), graph.edges.shape[1]) == ([0, 1], 3)


@pytest.mark.parametrize(
    ("nodes", "edges", "time", "words"),
    [
        (NODES, EDGES, "wen", "time: got 'wen'; expected .*Did you mean 'when'"),
        (NODES, EDGES, "y", "column 'y': got values such as 'a', 'b'; expected dates or numbers"),
        (NODES.set_column(2, "when", [list(range(10))]), EDGES, "when", "numbers of nodes and dates of edges"),
        (
            NODES.set_column(2, "when", [[None, "", *NODES["when"].to_pylist()[2:]]]),
            EDGES,
            "when",
            "2 labels without a time; expected a time for each label",
        ),
    ],
)
def test_what_is_no_time_is_refused(nodes, edges, time, words):
    with pytest.raises(InputError, match=words):
        read(nodes, edges, time)
