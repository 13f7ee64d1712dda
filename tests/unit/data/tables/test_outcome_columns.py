from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from g3nn.data.tables.outcome_columns import check_numbers, decided, number_labels
from g3nn.errors import Problems

NAN = float("nan")


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("columns", "typed", "outcome"),
    [
        ([["1.5", "2", ""]], False, "real"),
        ([["1.0", "2.0", None]], False, "classes"),
        ([["1", "2", "NaN"]], False, "classes"),
        ([["a", "1.5"]], False, "classes"),
        ([["", None]], False, "classes"),
        ([["1e-3", "2"]], False, "real"),
        ([[1.5, None]], True, "real"),
        ([[1.0, None]], True, "classes"),
        ([[1, 2]], True, "classes"),
        ([["1.5", "2.5"]], True, "classes"),
        ([[1, 0], [0, 1]], True, "tags"),
    ],
)
def test_what_labels_are_is_seen(columns, typed, outcome):
    assert decided("auto", [column(one) for one in columns], typed) == outcome
    assert decided("counts", [column(one) for one in columns], typed) == "counts"


@pytest.mark.parametrize(
    ("values", "typed", "outcome", "expected"),
    [
        (["1.5", "", " -2 ", "NA"], False, "real", [1.5, NAN, -2, NAN]),
        (["True", "false", "", "1"], False, "tags", [1, 0, NAN, 1]),
        ([True, None, False], True, "tags", [1, NAN, 0]),
        ([3, None], True, "counts", [3, NAN]),
        ([None, None], True, "real", [NAN, NAN]),
    ],
)
def test_numbers_are_read(values, typed, outcome, expected):
    problems = Problems()
    np.testing.assert_array_equal(number_labels("here", column(values), typed, outcome, problems), expected)
    assert problems.found == []


@pytest.mark.parametrize(
    ("values", "typed", "outcome", "said"),
    [
        (["1.5", "x", "y"], False, "real", "text such as 'x', 'y'"),
        (["a"], True, "real", "values of type string"),
        ([True, False], True, "counts", "values of type bool"),
        (["inf", "1"], False, "real", "values such as inf"),
        ([1e200, 1.0], True, "real", "values such as 1e+200"),
        ([-1, 2], True, "counts", "values such as -1.0"),
        ([0.5, 2], True, "counts", "values such as 0.5"),
        (["2", "1"], False, "tags", "values such as 2.0"),
    ],
)
def test_what_are_no_such_numbers_is_refused(values, typed, outcome, said):
    problems = Problems()
    assert number_labels("here", column(values), typed, outcome, problems) is None
    assert said in str(problems.found[0])
    assert "outcome" in problems.found[0].advice


@pytest.mark.parametrize(
    ("values", "split", "said"),
    [
        ([[1, 0], [1, 1], [NAN, 1]], None, ["column 'a': got the same value, or none;"]),
        ([[NAN, 0], [NAN, 1], [NAN, 1]], None, ["column 'a'"]),
        ([[1, 0], [0, 1], [1, 1]], ["train", "test", "val"], ["columns 'a', 'b': got the same value, or none among"]),
        ([[1, 0], [0, 1], [NAN, NAN]], ["train", "train", "val"], ["no labelled node for validation"]),
        ([[1, 0], [0, 1], [1, 1]], ["train", "train", "val"], []),
    ],
)
def test_columns_must_differ_where_they_are_learned(values, split, said):
    problems = Problems()
    parts = None if split is None else np.array(split)
    check_numbers("nodes.csv", ("a", "b"), np.array(values, dtype=float), parts, "tags", problems)
    found = [str(problem) for problem in problems.found]
    assert len(found) == len(said)
    assert all(words in problem for words, problem in zip(said, found, strict=True))
