"""Tasks whose labels are numbers: what is accepted, what is refused and how, and that a task stays whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.errors import InputError
from g3nn.outcomes import OUTCOMES
from g3nn.task import NodeTask

N = 6
X = np.arange(12.0).reshape(N, 2)
EDGES = np.array([[0, 1, 3], [1, 2, 4]])
SOUND = {
    "tags": np.array([0.0, 1.0, 1.0, 0.0, 1.0, np.nan]),
    "real": np.array([0.5, -1.0, 2.0, 3.0, 1.5, np.nan]),
    "counts": np.array([0.0, 3.0, 2.0, 7.0, 1.0, np.nan]),
}


def build(outcome: str, labels: Any, **changes: Any) -> NodeTask:
    split = {"train": [0, 1, 2], "val": [3], "test": [4], **changes}
    return NodeTask.build(X, EDGES, labels, **split, outcome=outcome)


def with_value(outcome: str, value: float) -> np.ndarray:
    labels = SOUND[outcome].copy()
    labels[5] = value
    return labels


def constant(outcome: str) -> np.ndarray:
    labels = SOUND[outcome].copy()
    labels[:3] = 1.0
    return labels


BAD = {
    "negative count": ("counts", with_value("counts", -1.0), "labels", "such as -1; .*whole numbers"),
    "fractional count": ("counts", with_value("counts", 2.5), "labels", "such as 2.5.*outcome 'real'"),
    "infinite count": ("counts", with_value("counts", np.inf), "labels", "such as inf"),
    "infinite number": ("real", with_value("real", -np.inf), "labels", "such as -inf; .*finite"),
    "a class as a tag": ("tags", with_value("tags", 2.0), "labels", "such as 2; .*outcome 'classes'"),
    "half a tag": ("tags", with_value("tags", 0.5), "labels", "such as 0.5; .*0 or 1"),
    "constant number": ("real", constant("real"), "labels", "same value.*nothing to learn"),
    "constant count": ("counts", constant("counts"), "labels", "same value.*nothing to learn"),
    "tag never seen": ("tags", 1 - constant("tags"), "labels", "same value.*tags that no node has"),
    "words": ("real", np.array(list("abcdef")), "labels", "such as 'a'"),
    "words among objects": ("real", np.array([1, 2, "3", 4, 5, None], dtype=object), "labels", "such as '3'"),
    "complex numbers": ("real", np.arange(6) * 1j, "labels", "such as 0j"),
    "flags as numbers": ("real", np.arange(6) > 2, "labels", "outcome 'tags'"),
    "a row too few": ("real", np.arange(5.0), "labels", r"shape \(5,\).*\(6, T\)"),
    "no column": ("real", np.zeros((6, 0)), "labels", r"shape \(6, 0\)"),
    "three dimensions": ("counts", np.zeros((6, 1, 1)), "labels", "shape"),
    "an unknown outcome": ("reel", SOUND["real"], "outcome", "Did you mean 'real'"),
}


class TestBadInput:
    @pytest.mark.parametrize(("outcome", "labels", "argument", "message"), BAD.values(), ids=BAD)
    def test_is_named(self, outcome, labels, argument, message):
        with pytest.raises(InputError, match=f"(?s){message}") as caught:
            build(outcome, labels)
        assert argument in {problem.argument for problem in caught.value.problems}

    @pytest.mark.parametrize("outcome", SOUND)
    def test_several_problems_are_listed_together(self, outcome):
        labels = np.stack([with_value(outcome, np.inf), constant(outcome)], axis=1)
        with pytest.raises(InputError) as caught:
            build(outcome, labels, val=[2, 3], test=[5], train=[0, 1, 2])
        found = [problem.argument for problem in caught.value.problems]
        assert sorted(found) == ["labels", "labels", "train and val"]

    @pytest.mark.parametrize("outcome", SOUND)
    def test_a_split_needs_labelled_nodes(self, outcome):
        with pytest.raises(InputError, match="1 nodes without a label"):
            build(outcome, SOUND[outcome], test=[5])

    def test_the_number_of_columns_is_not_chosen(self):
        with pytest.raises(InputError, match="num_classes: given 3; allowed: 1"):
            NodeTask.build(X, EDGES, SOUND["real"], [0, 1], [2], outcome="real", num_classes=3)


class TestForms:
    @pytest.mark.parametrize("outcome", SOUND)
    def test_one_column_or_several(self, outcome):
        one = build(outcome, SOUND[outcome])
        two = build(outcome, np.stack([SOUND[outcome]] * 2, axis=1))
        assert (one.num_classes, two.num_classes) == (1, 2)
        np.testing.assert_array_equal(two.labels[:, 1:], one.labels)
        assert one.labels.dtype == np.float64

    def test_flags_tensors_objects_and_sparse_tags(self):
        tags = np.array([0, 1, 1, 0, 1, 0])
        expected = build("tags", tags).labels
        for form in (tags > 0, torch.from_numpy(tags), tags.astype(object), sp.csr_array(tags[:, None])):
            np.testing.assert_array_equal(build("tags", form).labels, expected)

    def test_none_is_unknown(self):
        labels = build("real", np.array([1.0, 2.0, 3.5, 4.0, 0.0, None], dtype=object)).labels
        assert np.isnan(labels[5, 0])

    def test_a_node_may_be_known_in_part(self):
        labels = np.stack([SOUND["real"], np.roll(SOUND["real"], 1)], axis=1)
        assert np.isnan(build("real", labels).labels).sum() == 2


@pytest.mark.parametrize("outcome", SOUND)
class TestTask:
    def test_it_says_what_it_holds(self, outcome):
        assert f"1 {OUTCOMES[outcome].columns_title}" in repr(build(outcome, SOUND[outcome]))

    def test_without_test_labels(self, outcome):
        shown = build(outcome, SOUND[outcome]).without_test()
        assert np.isnan(shown.labels[4]).all()
        assert not np.isnan(shown.labels[:4]).any()
        assert shown.outcome == outcome

    def test_other_splits_and_edges(self, outcome):
        task = build(outcome, SOUND[outcome])
        moved = task.with_split(np.array([1, 3, 4]), np.array([0]), np.array([2]))
        assert (moved.outcome, moved.num_classes) == (outcome, 1)
        assert task.with_edges(EDGES[:, :1]).outcome == outcome

    def test_there_and_back_through_pyg(self, outcome, assert_same_task):
        task = build(outcome, SOUND[outcome])
        assert_same_task(NodeTask.from_pyg(task.to_pyg(), outcome=outcome), task)
