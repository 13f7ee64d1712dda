"""Scores of labels that are only partly known."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.estimator.estimators import explained, share_of_classes, share_of_tag_sets

CLASSES = np.array(["a", "b"])
ANSWERS = np.array(["a", "a", "b", "b"])


@pytest.mark.parametrize("unknown", [None, float("nan"), -1])
def test_unknown_classes_do_not_count(unknown):
    assert share_of_classes(ANSWERS, ["a", unknown, "a", "b"], CLASSES, None) == pytest.approx(2 / 3)
    assert share_of_classes(ANSWERS, ["a", unknown, "a", "b"], CLASSES, [1, 9, 2, 1]) == pytest.approx(2 / 4)
    assert share_of_classes(ANSWERS, ["c", unknown, unknown, unknown], CLASSES, None) == 0


def test_minus_one_counts_where_it_is_a_class():
    assert share_of_classes(np.array([-1, 1]), [-1, -1], np.array([-1, 1]), None) == 0.5
    assert share_of_classes(np.array([-1, 1]), np.array([-1, 0]), np.array([0, 1]), None) == 0


def test_unknown_tags_do_not_count():
    answers = np.array([[1, 0], [0, 0], [1, 1]])
    assert share_of_tag_sets(answers, [[1, None], [np.nan, np.nan], [1, 0]], None) == 0.5


def test_unknown_numbers_do_not_count():
    answers = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 9.0]])
    y = np.array([[1.0, np.nan], [2.0, 6.0], [3.0, 8.0]])
    assert explained(answers, y, None) == pytest.approx((1 + 0.5) / 2)
    assert explained(answers[:, 0], [1, None, 3], None) == 1


@pytest.mark.parametrize(
    ("y", "weight", "said"),
    [
        (["a", "a"], None, "shape"),
        (None, None, "shape"),
        ([None] * 4, None, "no known label"),
        (["a"] * 4, [1], "a weight for each"),
    ],
)
def test_what_cannot_be_scored_is_refused(y, weight, said):
    with pytest.raises(InputError, match=said):
        share_of_classes(ANSWERS, y, CLASSES, weight)
