from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from g3nn.errors import Problems
from g3nn.estimator.labels import Labels, check_train, encode, read_labels, split_validation


def read(y, n=None):
    problems = Problems()
    found = read_labels(y, len(y) if n is None else n, problems)
    return found, [str(problem) for problem in problems.found]


@pytest.mark.parametrize(
    ("given", "classes", "codes"),
    [
        (["b", None, "a"], ["a", "b"], [1, -1, 0]),
        (np.array(["b", "a", "b"]), ["a", "b"], [1, 0, 1]),
        (np.array([7, -1, 3]), [3, 7], [1, -1, 0]),
        (np.array([np.nan, 2.0, -1.0, 0.0]), [0, 2], [-1, 1, -1, 0]),
        ([True, None, False], [False, True], [1, -1, 0]),
        (np.array([True, False]), [False, True], [1, 0]),
        ([5, float("nan"), -1, 4], [4, 5], [1, -1, -1, 0]),
        ([np.int64(5), None, np.float32(4.0)], [4, 5], [1, -1, 0]),
        (pa.chunked_array([["x", None], ["y"]]), ["x", "y"], [0, -1, 1]),
        (torch.tensor([1, 0, -1]), [0, 1], [1, 0, -1]),
    ],
)
def test_labels_of_any_kind(given, classes, codes):
    found, problems = read(given)
    assert problems == []
    assert found.classes.tolist() == classes
    assert found.codes.tolist() == codes
    assert found.known.tolist() == [i for i, code in enumerate(codes) if code >= 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.5, 1.0], "values such as 0.5"),
        (["a", 1], "strings and whole numbers mixed"),
        ([True, "a"], "booleans and strings mixed"),
        (["a", None, "a"], "2 labels of 1 classes"),
        ([-1, None], "0 labels of 0 classes"),
        ([(1, 2), (3, 4)], "values such as (1, 2)"),
    ],
)
def test_what_are_no_labels_is_refused(given, said):
    found, (problem,) = read(given)
    assert found is None
    assert said in problem


def test_one_label_for_each_node():
    assert "3 nodes" in read([0, 1], n=3)[1][0]
    assert "shape (2, 1)" in read(np.zeros((2, 1)))[1][0]


def test_encode_names_what_is_not_a_class():
    problems = Problems()
    assert encode(["b", "a"], np.array(["a", "b"]), problems).tolist() == [1, 0]
    assert problems.found == []
    encode([0, 9, 8], np.array([0, 1]), problems)
    assert problems.found[0].given == "8, 9"


def split(counts, share):
    codes = np.repeat(np.arange(len(counts)), counts)
    problems = Problems()
    labels = Labels(np.array(list("abc")[: len(counts)]), codes)
    chosen = split_validation(labels, share, np.random.RandomState(0), problems)
    return np.bincount(codes[chosen], minlength=len(counts)).tolist(), [str(one) for one in problems.found]


def test_a_share_of_each_class_is_held_back():
    assert split([10, 50, 100], 0.2) == ([2, 10, 20], [])


def test_each_class_keeps_a_node_on_either_side():
    assert split([2, 3, 40], 0.01) == ([1, 1, 1], [])
    assert split([2, 3, 40], 0.99) == ([1, 2, 39], [])


def test_a_class_seen_once_cannot_be_split():
    (problem,) = split([1, 5], 0.2)[1]
    assert "class 'a' with a single labelled node" in problem


def test_given_validation_nodes_are_labelled_and_leave_something_to_train_on():
    labels = Labels(np.array(["a", "b"]), np.array([0, 0, 1, -1]))
    problems = Problems()
    check_train(labels, np.array([1]), problems)
    assert problems.found == []
    check_train(labels, np.array([2, 3]), problems)
    check_train(labels, np.zeros(0, dtype=int), problems)
    found = [problem.given for problem in problems.found]
    assert found == ["1 nodes without a label", "every label of class 'b'", "no node"]
