from __future__ import annotations

import datetime
import math
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import Columns, parquet_file, read_graph, said, text_file, write

from g3nn.base.errors import InputError, Problems
from g3nn.graph.outcomes import OUTCOMES, Labels
from g3nn.graph.tables.cells import label_values
from g3nn.graph.tables.labels import check_split
from g3nn.graph.tables.remarks import Remarks

NAN = float("nan")
NULLS = ["NA", "N/A", "nan", "null", "None", "?", "-"]


def nodes(folder: Any, *columns: list[Any]) -> Any:
    """A CSV file with label columns a, b, ... and a feature x."""
    names = "abcd"[: len(columns)]
    return write(
        folder / "n.csv", {**dict(zip(names, columns, strict=True)), "x": [n**2 for n in range(len(columns[0]))]}
    )


class TestOutcome:
    def test_of_a_csv_file_is_seen(self, tmp_path):
        cases = [
            ([["1.5", "2", "", "3"]], "real"),
            ([["1,5", "2,25", "3,0", ""]], "real"),
            ([["1.0", "2.0", "", "1", "2"]], "classes"),
            ([["a", "1.5", "a", "1.5"]], "classes"),
            ([[1, 0, 1, 0], [0, 1, 1, 0]], "tags"),
        ]
        for columns, outcome in cases:
            assert read_graph(nodes(tmp_path, *columns), label=list("ab"[: len(columns)])).outcome == outcome

    def test_of_a_typed_table_is_seen(self):
        cases = [
            ([1.5, 2.0, None, 3.0], "real"),
            ([1.0, 2.0, 1.0, 2.0, None], "classes"),
            (["1.5", "2"] * 2, "classes"),
        ]
        for values, outcome in cases:
            assert read_graph(pa.table({"y": values, "x": [n**2 for n in range(len(values))]})).outcome == outcome

    def test_what_it_does_not_allow(self):
        cases = [
            ([1.5, 2.0], "classes", "column 'y': got values such as 1.5"),
            ([[1], [2]], "classes", "values such as [1]"),
            ([datetime.date(2020, 1, 1)] * 2, "classes", "values such as np.datetime64('2020-01-01')"),
            (pa.array([2**40, 2**41], pa.timestamp("s")), "classes", "values such as np.datetime64('36812-"),
            (pa.array([1, 2], pa.duration("s")), "real", "values such as np.timedelta64(1,'s')"),
            (pa.array([1, 2], pa.duration("s")), "classes", "values such as np.timedelta64(1,'s')"),
            (["u", "u"], "auto", "column 'y': got 2 labels of 1 classes"),
            (["u", "v"], "real", "values such as 'u'"),
            ([True, False], "counts", "got true and false"),
            ([1e200, 1.0], "real", "values such as 1e+200"),
            ([math.inf, 1.0], "auto", "values such as inf"),
            ([-1, 2], "counts", "values such as -1"),
            ([1, 2], "ral", "outcome: got 'ral'"),
        ]
        for values, outcome, words in cases:
            with pytest.raises(InputError) as caught:
                read_graph(pa.table({"y": values, "x": [1, 3]}), outcome=outcome)
            assert words in str(caught.value)

    def test_several_columns_are_tags(self, tmp_path):
        graph = read_graph(nodes(tmp_path, ["1", "", "0", "1"], ["true", "false", "true", "NA"]), label=["a", "b"])
        assert graph.labels.names.tolist() == ["a", "b"]
        np.testing.assert_array_equal(graph.labels.values, [[1, 1], [NAN, 0], [0, 1], [1, NAN]])
        with pytest.raises(InputError, match="2 columns for outcome='real'; expected one column"):
            read_graph(nodes(tmp_path, [1, 0], [0, 1]), label=["a", "b"], outcome="real")
        with pytest.raises(InputError, match="column 'b': got 1 values such as 2"):
            read_graph(nodes(tmp_path, [1, 0], [0, 2]), label=["a", "b"])


class TestUnknown:
    @pytest.mark.parametrize(("classes", "names"), [("ab", ["a", "b"]), ("01", [0, 1])])
    def test_words_for_nothing(self, tmp_path, classes, names):
        graph = read_graph(nodes(tmp_path, [*NULLS, "", *classes, *classes]), label="a")
        assert said(graph) == [
            "column 'a': 7 labels written as 'NA', 'N/A', 'nan', 'null', 'None' and 2 more; taken as unknown. "
            "keep_na=True takes them as they are."
        ]
        assert graph.labels.names.tolist() == names
        assert graph.labels.values.tolist() == [-1] * 8 + [0, 1, 0, 1]
        assert graph.columns[0].missing == 8

    def test_minus_one_in_a_table_is_a_class(self, tmp_path):
        graph = read_graph(nodes(tmp_path, [-1, 0, 1, -1, 0, 1, ""]), label="a")
        assert (graph.labels.names.tolist(), graph.labels.values.tolist()) == ([-1, 0, 1], [0, 1, 2, 0, 1, 2, -1])
        assert len(graph.notes) == 1

    def test_words_that_the_caller_names(self, tmp_path):
        path = nodes(tmp_path, ["x", "0", "1", "0", "1", "x"])
        graph = read_graph(path, label="a", na=("x",), strict=True)
        assert graph.labels.values.tolist() == [-1, 0, 1, 0, 1, -1]

    def test_words_that_the_caller_keeps(self, tmp_path):
        graph = read_graph(nodes(tmp_path, ["NA", "1", "", "NA", "1", "-", "-"]), label="a", keep_na=True)
        assert graph.labels.names.tolist() == ["-", "1", "NA"]
        assert (graph.labels.values[2], graph.notes) == (-1, ())


@pytest.mark.parametrize(
    ("values", "notes"),
    [
        (
            ["unknown", "a", "b"] * 2,
            [
                "column 'a': 2 labels called 'unknown'; taken as a class. "
                'If it means that the label is not known, use na=["unknown"].'
            ],
        ),
        (
            ["yes", "YES", "no"] * 2,
            ["column 'a': classes that differ only in case or blanks ('YES', 'yes'); taken as different classes"],
        ),
        (
            [*range(21)] * 2,
            [
                "column 'a': 21 whole numbers from 0 to 20; each is taken as a class of its own. "
                'If they have an order, use outcome="real" (numbers) or outcome="counts".'
            ],
        ),
        ([*range(20)] * 2, []),
    ],
    ids=["unknown", "case", "numbers", "few numbers"],
)
def test_classes_that_are_probably_meant_in_another_way(tmp_path, values, notes):
    path = nodes(tmp_path, values)
    assert said(read_graph(path, label="a")) == notes
    if notes:
        with pytest.raises(InputError, match=notes[0].split(":")[0]):
            read_graph(path, label="a", strict=True)


def test_classes():
    cases = [
        (["1.0", None, "0."], False, [1, None, 0]),
        (["01", "2"], False, ["01", "2"]),
        (["-0", "1"], False, ["-0", "1"]),
        (["9" * 20, "1"], False, ["9" * 20, "1"]),
        (["True", None, "false"], False, [True, None, False]),
        (["1", None], True, ["1", None]),
        (pa.array([1, 2**64 - 1], pa.uint64()), True, ["1", str(2**64 - 1)]),
        ([None, None], True, [None, None]),
        ([Decimal(2**53 + 1), Decimal(2**53), None], True, [2**53 + 1, 2**53, None]),
    ]
    for values, typed, expected in cases:
        found = label_values(pa.array(values), typed, classes=True).tolist()
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))


def test_a_few_long_labels_take_little_memory(tmp_path):
    long = ["u" * 20_000, "v" * 20_000] * 2
    table = pa.table({"y": [*long, *["a", "b"] * 5000], "x": np.arange(10_004) % 7})
    tracemalloc.start()
    graph = read_graph(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.labels.names.tolist() == ["a", "b", "u" * 20_000, "v" * 20_000]
    # One string of numpy's for each row would take 800 MB.
    assert peak < 5e7


def labels_of(values: Any, outcome: str = "classes") -> Labels:
    labels = OUTCOMES[outcome].read(values, len(values), Problems())
    assert labels is not None
    return labels


TAGS = [[1, 0], [0, 1], [1, 1], [0, 0], [NAN, NAN]]


def test_a_split_that_leaves_too_little():
    cases = [
        ("classes", ["a", "a", "b", "b"], ["train", "val", "val", "val"], "n.csv, split: got every label of class 'b'"),
        ("classes", ["a", "a", "b", "b", "c"], ["train", "val"] * 2 + ["test"], "every label of class 'c'"),
        ("tags", TAGS[:2], None, "n.csv, labels: got 2 labelled nodes, of which none can be spared"),
        ("tags", TAGS, ["train", "test", "train", "val", "val"], "none left to train on in column 0"),
    ]
    for outcome, values, split, words in cases:
        remarks = Remarks()
        check_split("n.csv", labels_of(values, outcome), None if split is None else np.array(split), outcome, remarks)
        (problem,) = remarks.found
        assert words in str(problem)


def test_test_labels_are_kept_apart(tmp_path):
    rows = ["a,train", "a,val", "b,train", "b,val", "a,test", ",val", ",test", "b,"]
    text = "y,split,x\n" + "".join(f"{row},{number**2}\n" for number, row in enumerate(rows))
    graph = read_graph(text_file(tmp_path, text))
    assert graph.val is not None
    assert (graph.val.tolist(), graph.test.tolist(), graph.test_labels.values.tolist()) == ([1, 3], [4], [0])
    assert graph.labels.values.tolist() == [0, 0, 1, 1, -1, -1, -1, 1]
    graph = read_graph(text_file(tmp_path, text), ignore=["split"])
    assert (graph.labels.values[4], graph.val, graph.test.tolist()) == (0, None, [])


@pytest.mark.parametrize("typed", [True, False])
def test_minus_one_may_stand_for_an_unknown_label(tmp_path, typed):
    columns: Columns = {"a": [-1, 0, 1, 0, 1, 2, 2, -1], "x": [1, 2, -1, 5, 6, 8, 9, 7]}
    path = parquet_file(tmp_path, columns) if typed else write(tmp_path / "nodes.csv", columns)
    advice = 'If it means that the label is not known, use na=["-1"].'
    graph = read_graph(path, label="a")
    assert said(graph) == [f"column 'a': 2 labels of -1; taken as a class. {advice}"]
    graph = read_graph(path, label="a", na=["-1"])
    assert graph.labels is not None
    assert graph.labels.names.tolist() == [0, 1, 2]
    assert [(one.column, one.missing) for one in graph.columns] == [("a", 2), ("x", 1)]
    graph = read_graph(path, label="a", outcome="real")
    assert said(graph) == [f"column 'a': 2 labels of -1; taken as a number. {advice}"]


@pytest.mark.parametrize("values", [[-1, 1] * 4, [-2, -1, 0, 1] * 2, [0, 1] * 4])
def test_minus_one_beside_other_signs_is_a_class(tmp_path, values):
    assert said(read_graph(nodes(tmp_path, values), label="a")) == []
