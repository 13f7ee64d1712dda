"""Columns that are seldom meant as they are read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import read_graph

from g3nn.base.errors import DataError
from g3nn.graph.tables.fitted_tables import FittedTables

N = 200
RNG = np.random.default_rng(0)
CLASSES = RNG.choice(3, N, p=(0.5, 0.3, 0.2))
Y = np.array(["art", "law", "tea"])[CLASSES]
AMOUNTS = RNG.normal(50.0, 9.0, N)


def notes(x: Any, y: Any = Y, name: str = "x", **options: Any) -> list[str]:
    graph = read_graph(pa.table({"y": y, name: x, "noise": RNG.normal(size=N)}), **options)
    return [note.removeprefix("nodes (data frame), ") for note in graph.notes]


class TestLeaks:
    @pytest.mark.parametrize(
        "x",
        [np.array(["A1", "B1", "C1"])[CLASSES], 10 * CLASSES + RNG.normal(size=N), CLASSES + 1],
        ids=["categories", "thresholds", "numbers"],
    )
    def test_a_column_that_decides_the_class(self, x):
        (note,) = notes(x)
        assert re.fullmatch(
            r"column 'x': it decides the label, alone it is right about (99\.\d|100\.0)% of the labels, and the most "
            r"frequent one is 4\d\.\d%; used like others. If it is not known before the label is, ignore=\['x'\] "
            r"leaves it out\.",
            note,
        )
        assert notes(x, ignore=["x"]) == []

    def test_a_tag_or_a_number_is_decided_as_well(self):
        flags = pa.table({"a": CLASSES == 0, "b": RNG.random(N) < 0.5, "x": CLASSES * 1.5, "z": RNG.normal(size=N)})
        (note,) = read_graph(flags, label=["a", "b"]).notes
        assert "column 'x': it decides the label, alone it is right about 100.0% of the labels" in note
        (note,) = notes(3 * AMOUNTS + 1, AMOUNTS)
        assert "column 'x': it decides the label, alone it explains 9" in note

    @pytest.mark.parametrize(
        "x",
        [
            np.where(RNG.random(N) < 0.1, RNG.integers(3, size=N), CLASSES),
            RNG.normal(size=N),
            [f"v{i % 90}" for i in range(N)],
        ],
        ids=["nearly", "nothing", "few rows of a value"],
    )
    def test_what_says_less_is_not_noted(self, x):
        assert notes(x) == []

    def test_the_most_frequent_class_alone_is_no_leak(self):
        rare = np.where(np.arange(N) < 3, "yes", "no")
        assert notes(RNG.normal(size=N), rare) == []

    def test_labels_of_test_nodes_are_not_looked_at(self):
        y = np.where(np.arange(N) < 20, Y, None)
        assert notes(CLASSES * 1.0, y.tolist()) == []


class TestNoQuantities:
    @pytest.mark.parametrize(
        ("name", "x", "what"),
        [
            ("facebook_id", RNG.integers(10**9, 10**12, N), "whole numbers that differ like ids"),
            ("x", RNG.permutation(N), "whole numbers that differ like ids"),
            ("link_type", RNG.integers(0, 4, N), "4 whole numbers, like codes"),
            ("x", RNG.choice([3, 17, 404, 1000], N), "4 whole numbers, like codes"),
        ],
    )
    def test_ids_and_codes(self, name, x, what):
        (note,) = notes(x, name=name)
        assert f"column '{name}': {what}, alone it is right about " in note
        assert note.endswith(
            f"read as a quantity. ignore=['{name}'] leaves it out, categorical=['{name}'] reads categories."
        )
        without = read_graph(pa.table({name: x, "noise": RNG.normal(size=N)}), label=())
        assert f"column '{name}': {what}; read as a quantity" in without.notes[0]

    @pytest.mark.parametrize(
        ("name", "x"),
        [
            ("year", RNG.integers(1990, 2020, N)),
            ("stars", RNG.integers(1, 6, N)),
            ("visits", RNG.poisson(3, N) ** 3),
            ("income", RNG.integers(10**4, 10**6, N)),
            ("paid", RNG.integers(0, 2, N)),
            ("width", RNG.integers(0, 9, N) / 2),
        ],
    )
    def test_quantities(self, name, x):
        assert notes(x, name=name) == []


def test_kinds_of_nodes_that_never_have_a_label():
    kind = np.where(np.arange(N) < 150, "driver", "circuit")
    y = [label if i < 150 and i % 3 else None for i, label in enumerate(Y)]
    table = pa.table({"y": y, "sort": kind, "x": RNG.normal(size=N), "town": RNG.choice(["u", "v"], N)})
    graph = read_graph(table)
    (note,) = graph.notes
    assert note.endswith(
        "column 'sort': no label for 50 nodes with 'circuit'; their answers are marked as never-labelled"
    )
    assert graph.never.tolist() == list(range(150, 200))
    tables = FittedTables.of(graph)
    assert FittedTables.from_json(tables.to_json()).never == graph.never.tolist()
    assert read_graph(table.slice(0, 158)).notes == ()
    assert read_graph(table.slice(0, 164)).notes == (), "of 14 nodes 9 would have a label"


def test_traps_are_kept_with_a_model():
    table = {"y": Y, "x": CLASSES + 1, "link_type": RNG.integers(0, 4, N), "noise": RNG.normal(size=N)}
    tables = FittedTables.of(read_graph(pa.table(table)))
    leak, code = tables.traps
    assert (leak.column, leak.kind, code.column, code.kind) == ("x", "leak", "link_type", "code")
    assert leak.score > 0.98
    assert code.score < 0.6
    assert leak.simplest == code.simplest == pytest.approx(np.bincount(CLASSES).max() / N)
    content = tables.to_json()
    assert FittedTables.from_json(content) == tables
    with pytest.raises(DataError, match="traps"):
        FittedTables.from_json({**content, "traps": [["x", "other", 1.0, 0.5]]})
    without = FittedTables.of(read_graph(pa.table({"y": Y, "noise": table["noise"]}))).to_json()
    assert not {"traps", "never"} & set(without)


class TestEdges:
    """Columns of edges that decide the label of the nodes they join, and types that do."""

    @staticmethod
    def notes(**column: Any) -> tuple[list[str], tuple[Any, ...]]:
        rng = np.random.default_rng(1)
        first, second = np.repeat(np.arange(N), 3), rng.integers(N, 2 * N, 3 * N)
        edges = pa.table({"source": first, "target": second, **{name: made(first) for name, made in column.items()}})
        nodes = pa.table({"y": [*Y, *[None] * N], "noise": rng.normal(size=2 * N)})
        graph = read_graph(nodes, edges, label="y")
        return [note for note in graph.notes if "decides the label" in note], graph.traps

    @pytest.mark.parametrize("name", ["said", "type"])
    def test_a_column_that_tells_the_label_of_an_end(self, name):
        (note,), (trap,) = self.notes(**{name: lambda first: Y[first]})
        assert note.startswith(
            f"edges (data frame), column '{name}': it decides the label, alone it is right about 100.0%"
        )
        assert note.endswith(f"If it is not known before the label is, ignore=['{name}'] leaves it out.")
        assert (trap.column, trap.kind, trap.score) == (f"{name} (of edges)", "leak", 1.0)

    @pytest.mark.parametrize("name", ["said", "type"])
    def test_what_does_not_tell_is_not_noted(self, name):
        assert self.notes(**{name: lambda first: np.random.default_rng(2).choice(["a", "b"], len(first))}) == ([], ())

    def test_an_amount(self):
        (note,), _ = self.notes(paid=lambda first: 100.0 * CLASSES[first] + np.arange(len(first)) % 7)
        assert "column 'paid': it decides the label" in note

    def test_a_file_for_each_type(self, tmp_path):
        nodes = pa.table({"y": Y, "noise": RNG.normal(size=N)})
        files = {
            name: pa.table({"source": np.flatnonzero(name == Y), "target": np.roll(np.flatnonzero(name == Y), 1)})
            for name in ("art", "law", "tea")
        }
        graph = read_graph(nodes, files)
        (note,) = [note for note in graph.notes if "decides the label" in note]
        assert note.endswith('If it is not known before the label is, edge_type="none" leaves it out.')
