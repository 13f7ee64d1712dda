from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from g3nn.errors import Problems
from g3nn.estimator.numbers import Numbers, as_columns, check_numbers, is_table, read_numbers, split_numbers

NAN = float("nan")


def read(y, outcome="real", n=None):
    problems = Problems()
    found = read_numbers(y, len(y) if n is None else n, outcome, problems)
    return found, [str(problem) for problem in problems.found]


@pytest.mark.parametrize(
    ("given", "outcome", "codes", "flat"),
    [
        ([1.5, None, 2], "real", [[1.5], [NAN], [2.0]], True),
        (np.array([1, 2, 3]), "counts", [[1], [2], [3]], True),
        (np.array([[1.0, NAN], [2.0, 5.0], [NAN, 6.0]]), "real", [[1, NAN], [2, 5], [NAN, 6]], False),
        (torch.tensor([0.5, 1.5]), "real", [[0.5], [1.5]], True),
        (pa.chunked_array([[0.5], [None, 2.5]]), "real", [[0.5], [NAN], [2.5]], True),
        (np.array([[True, False], [False, True]]), "tags", [[1, 0], [0, 1]], False),
        ([[1, 0], [0, None], [0, 1]], "tags", [[1, 0], [0, NAN], [0, 1]], False),
    ],
)
def test_numbers_of_any_kind(given, outcome, codes, flat):
    found, problems = read(given, outcome)
    assert problems == []
    np.testing.assert_array_equal(found.codes, codes)
    assert (found.flat, found.outcome) == (flat, outcome)
    assert found.known.tolist() == [i for i, row in enumerate(codes) if not np.isnan(row).all()]


def test_columns_keep_their_names():
    frame = pa.table({"red": [1, 0, None], "blue": [0, 1, 1]})
    assert read(frame, "tags", 3)[0].classes.tolist() == ["red", "blue"]
    assert read(sp.csr_array(np.eye(3)), "tags", 3)[0].classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "outcome", "said"),
    [
        (["a", "b"], "real", "Classes are for G3NNClassifier"),
        ([True, False], "real", "G3NNClassifier"),
        ([1.0, float("inf")], "real", "1 values such as inf"),
        ([1.0, 1e200], "real", "1 values such as 1e+200"),
        ([1.0, 1.0, None], "real", "the same value, or none, wherever one is known"),
        ([None, None], "real", "the same value, or none"),
        ([[1.0, 2.0], [2.0, 2.0]], "real", "in column 1"),
        ([-1, 2], "counts", "1 values such as -1"),
        ([0.5, 2], "counts", "outcome='real'"),
        ([[0, 2], [1, 1]], "tags", "one column (n,) of labels"),
        ([[0, 0.5], [1, 1]], "tags", "G3NNRegressor"),
        ([[0, -1], [1, 1]], "tags", "1 values such as -1"),
        ([["a", 0], ["b", 1]], "tags", "Tags and classes do not mix"),
        ([[0, 1], [0, 0]], "tags", "in column 0"),
        ([[0, 1], [1, 1]], "tags", "Leave out tags that no node has"),
    ],
)
def test_what_are_no_such_numbers_is_refused(given, outcome, said):
    found, (problem,) = read(given, outcome)
    assert found is None
    assert problem.startswith("y: got")
    assert said in problem


def test_one_row_for_each_node():
    assert "shape (2,)" in read([1.0, 2.0], n=3)[1][0]
    assert "shape (2, 2, 1)" in read(np.zeros((2, 2, 1)))[1][0]
    assert "shape (2, 0)" in read(np.zeros((2, 0)))[1][0]


def test_what_is_a_table():
    assert all(map(is_table, (np.eye(2), [[1, 0], [0, 1]], sp.eye_array(2), pa.table({"a": [1]}), torch.eye(2))))
    assert not any(map(is_table, (np.ones(3), ["a", "b"], [["a"], ["b", "c"]], [1, 0], torch.ones(2), [])))


def tags(codes):
    codes = np.array(codes, dtype=float)
    return Numbers(np.arange(codes.shape[1]), codes, "tags", False)


def test_a_split_leaves_each_tag_with_and_without_for_training():
    rng = np.random.default_rng(0)
    codes = np.zeros((200, 5))
    codes[:, 0] = rng.random(200) < 0.5
    for t in range(1, 5):
        codes[rng.choice(200, 2, replace=False), t] = 1
    codes[150:] = np.nan
    codes[0, 1:] = 1
    codes[1, 1:] = 1
    labels = tags(codes)
    for seed in range(20):
        problems = Problems()
        val = split_numbers(labels, 0.2, np.random.RandomState(seed), problems)
        assert problems.found == []
        assert len(val) == 30
        assert labels.varies(np.setdiff1d(labels.known, val)).all()


def test_rare_values_that_cannot_be_spared_are_said():
    problems = Problems()
    assert split_numbers(tags([[0], [1], [np.nan]]), 0.5, np.random.RandomState(0), problems).size == 0
    assert "none can be spared" in str(problems.found[0])


@pytest.mark.parametrize(
    ("val", "said"),
    [([2], "1 nodes without a label"), ([], "no node"), ([1], "left to train on")],
)
def test_given_validation_nodes_are_checked(val, said):
    problems = Problems()
    check_numbers(tags([[0], [1], [np.nan], [0]]), np.array(val, dtype=int), problems)
    assert any(said in str(problem) for problem in problems.found)


@pytest.mark.parametrize(
    ("y", "outcome", "columns", "said"),
    [
        ([1.0, None], "real", 1, "1 nodes without a value"),
        ([[1.0, 2.0]], "real", 1, "1 column, as in the fit"),
        (["a"], "real", 1, "values such as 'a'"),
        ([-1], "counts", 1, "values such as -1"),
    ],
)
def test_values_to_judge_by_are_checked(y, outcome, columns, said):
    problems = Problems()
    as_columns(y, outcome, columns, problems)
    assert said in str(problems.found[0])
