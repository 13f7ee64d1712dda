from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import parquet_file, read_nodes, text_file

from g3nn.data.tables.labels import as_given, check_split, label_values
from g3nn.errors import InputError, Problems
from g3nn.outcomes import OUTCOMES, Labels

NAN = float("nan")


def column(values: Any) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])


def table_file(folder: Path, columns: list[list[Any]], typed: bool) -> tuple[Path, tuple[str, ...]]:
    """Label columns a, b, ... beside an id and a feature."""
    rows, names = range(len(columns[0])), tuple("abcd"[: len(columns)])
    if typed:
        labels = dict(zip(names, columns, strict=True))
        return parquet_file(folder, {"id": list(rows), **labels, "x": list(rows)}), names
    lines = [",".join([str(row), *(values[row] or "" for values in columns), str(row)]) for row in rows]
    return text_file(folder, "\n".join([",".join(["id", *names, "x"]), *lines]) + "\n"), names


@pytest.mark.parametrize(
    ("columns", "typed", "outcome"),
    [
        ([["1.5", "2", ""]], False, "real"),
        ([["1.0", "2.0", None]], False, "classes"),
        ([["1", "2", "NaN"]], False, "classes"),
        ([["a", "1.5"]], False, "classes"),
        ([["1e-3", "2"]], False, "real"),
        ([[1.5, 2.0, None]], True, "real"),
        ([[1.0, 2.0, None]], True, "classes"),
        ([[1, 2]], True, "classes"),
        ([["1.5", "2.5"]], True, "classes"),
        ([[1, 0], [0, 1]], True, "tags"),
    ],
)
def test_what_labels_are_is_seen(tmp_path, columns, typed, outcome):
    path, names = table_file(tmp_path, columns, typed)
    assert read_nodes(path, "id", *names).outcome == outcome


@pytest.mark.parametrize(
    ("values", "typed", "expected"),
    [
        (["a", " ", " b"], False, ["a", None, "b"]),
        (["1", "", "0"], False, [1, None, 0]),
        (["1.0", "", "0."], False, [1, None, 0]),
        (["1", "NaN", "-3"], False, [1, None, -3]),
        (["01", "", "2"], False, ["01", None, "2"]),
        (["-0", "1"], False, ["-0", "1"]),
        (["9" * 20, "1"], False, ["9" * 20, "1"]),
        (["True", "", "false"], False, [True, None, False]),
        (["NA", "", "nan"], False, ["NA", None, "nan"]),
        (["", "", ""], False, [None, None, None]),
        (["1", None, ""], True, ["1", None, None]),
        ([1, None, -1], True, [1, None, -1]),
        (pa.array([1, 2**64 - 1], pa.uint64()), True, ["1", str(2**64 - 1)]),
        ([True, None, False], True, [True, None, False]),
        ([None, None], True, [None, None]),
    ],
)
def test_classes(values, typed, expected):
    found = label_values(column(values), typed, classes=True).tolist()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("values", "typed", "expected"),
    [
        (["1.5", "", " -2 ", "NA"], False, [1.5, None, -2.0, None]),
        (["True", "false", "", "1"], False, [True, False, None, 1.0]),
        (["x", "1_0", "-Inf"], False, ["x", "1_0", -np.inf]),
        ([True, None], True, [True, None]),
    ],
)
def test_numbers(values, typed, expected):
    found = label_values(column(values), typed).tolist()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize("values", [[1.5, None], [3, None], pa.array([1, None]).cast(pa.decimal128(25, 2))])
def test_floats(values):
    found = label_values(column(values), typed=True)
    assert found.dtype == np.float64
    assert np.isnan(found).tolist() == [False, True]


@pytest.mark.parametrize(
    ("columns", "typed", "outcome", "said"),
    [
        ([[1.5, 2.0]], True, "classes", "column 'a': got values such as 1.5"),
        ([[1e300, 2.0]], True, "classes", "values such as 1e+300"),
        ([[[1], [2]]], True, "classes", "values such as [1]"),
        ([[datetime.date(2020, 1, 1)] * 2], True, "classes", "values such as datetime.date"),
        ([["u", "u"]], False, "classes", "column 'a': got 2 labels of 1 classes"),
        ([[1, -1]], True, "classes", "-1, None or NaN is an unknown label"),
        ([["1.5", "x"]], False, "real", "values such as 'x'"),
        ([["u", "v"]], True, "real", "values such as 'u'"),
        ([[True, False]], True, "counts", "got true and false"),
        ([["inf", "1"]], False, "real", "1 values such as inf"),
        ([[1e200, 1.0]], True, "real", "values such as 1e+200"),
        ([[-1, 2]], True, "counts", "values such as -1"),
        ([["1", "0"], ["2", "1"]], False, "tags", "column 'b': got 1 values such as 2"),
        ([[1, 0], [1, 1]], True, "tags", "column 'b': got the same value, or none"),
        ([[1, 0], [0, 1]], True, "real", "2 columns for --outcome real"),
    ],
)
def test_what_the_outcome_does_not_allow(tmp_path, columns, typed, outcome, said):
    path, names = table_file(tmp_path, columns, typed)
    with pytest.raises(InputError) as caught:
        read_nodes(path, "id", *names, outcome=outcome)
    assert said in str(caught.value)


def labels_of(values: Any, outcome: str = "classes") -> Labels:
    labels = OUTCOMES[outcome].read(values, len(values), Problems())
    assert labels is not None
    return labels


TAGS = [[1, 0], [0, 1], [1, 1], [0, 0], [NAN, NAN]]


@pytest.mark.parametrize(
    ("outcome", "values", "split", "said"),
    [
        ("classes", ["a", "a", "b", "c", None], None, "n.csv, labels: got class 'b', 'c' with a single labelled node"),
        ("classes", ["a", "a", "b", "b"], ["train", "val", "val", "val"], "n.csv, split: got every label of class 'b'"),
        ("classes", ["a", "a", "b", "b"], ["train"] * 4, "no labelled node for validation"),
        ("classes", ["a", "a", "b", "b", "c"], ["train", "val"] * 2 + ["test"], "every label of class 'c'"),
        ("tags", TAGS[:2], None, "n.csv, labels: got 2 labelled nodes, of which none can be spared"),
        (
            "tags",
            TAGS,
            ["train", "test", "train", "val", "val"],
            "none left to train on in column 0",
        ),
        ("tags", TAGS, ["train"] * 4 + ["val"], "no labelled node for validation"),
    ],
)
def test_a_split_that_leaves_too_little(outcome, values, split, said):
    problems = Problems()
    check_split("n.csv", labels_of(values, outcome), None if split is None else np.array(split), outcome, problems)
    (problem,) = problems.found
    assert said in str(problem)


def test_test_labels_are_kept_apart():
    problems, labels = Problems(), labels_of(["a", "a", "b", "b", "a", None, None])
    parts = np.array(["train", "val", "train", "val", "test", "val", "test"])
    seen, val, test = check_split("n.csv", labels, parts, "classes", problems)
    assert problems.found == []
    assert val is not None
    assert (val.tolist(), test.tolist()) == ([1, 3], [4])
    assert as_given(seen).tolist() == ["a", "a", "b", "b", None, None, None]
    seen, val, test = check_split("n.csv", labels, None, "classes", problems)
    assert (as_given(seen).tolist(), val, test.tolist()) == (["a", "a", "b", "b", "a", None, None], None, [])


def test_labels_in_the_form_of_an_estimator():
    np.testing.assert_array_equal(as_given(labels_of([1.5, NAN, 2], "real")), [1.5, NAN, 2])
    tags = labels_of(pa.table({"new": [1, 0], "old": [0, 1]}), "tags")
    assert as_given(tags).to_pydict() == {"new": [1, 0], "old": [0, 1]}
