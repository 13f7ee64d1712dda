"""Tasks whose labels are numbers: what is accepted, what is refused and how, and that a task stays whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.errors import InputError
from g3nn.task import NodeTask
from g3nn.values import KINDS

N = 6
X = np.arange(12.0).reshape(N, 2)
EDGES = np.array([[0, 1, 3], [1, 2, 4]])
SOUND = {
    "bernoulli": np.array([0.0, 1.0, 1.0, 0.0, 1.0, np.nan]),
    "gaussian": np.array([0.5, -1.0, 2.0, 3.0, 1.5, np.nan]),
    "poisson": np.array([0.0, 3.0, 2.0, 7.0, 1.0, np.nan]),
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
    "negative count": ("poisson", with_value("poisson", -1.0), "labels", "e.g. -1; allowed: whole numbers"),
    "fractional count": ("poisson", with_value("poisson", 2.5), "labels", "e.g. 2.5.*outcome='gaussian'"),
    "infinite count": ("poisson", with_value("poisson", np.inf), "labels", "e.g. inf"),
    "infinite number": ("gaussian", with_value("gaussian", -np.inf), "labels", "e.g. -inf; allowed: finite"),
    "a class as a tag": ("bernoulli", with_value("bernoulli", 2.0), "labels", "e.g. 2.*outcome='categorical'"),
    "half a tag": ("bernoulli", with_value("bernoulli", 0.5), "labels", "0, 1, or NaN"),
    "constant number": ("gaussian", constant("gaussian"), "labels", "column 0.*nothing to learn"),
    "constant count": ("poisson", constant("poisson"), "labels", "column 0.*nothing to learn"),
    "tag never seen": ("bernoulli", 1 - constant("bernoulli"), "labels", "column 0.*tags that no training node has"),
    "words": ("gaussian", np.array(list("abcdef")), "labels", "values of type"),
    "words among objects": ("gaussian", np.array([1, 2, "3", 4, 5, None], dtype=object), "labels", "type object"),
    "complex numbers": ("gaussian", np.arange(6) * 1j, "labels", "type complex"),
    "flags as numbers": ("gaussian", np.arange(6) > 2, "labels", "outcome='bernoulli'"),
    "a row too few": ("gaussian", np.arange(5.0), "labels", r"shape \(5,\).*\(6, T\)"),
    "no column": ("gaussian", np.zeros((6, 0)), "labels", r"shape \(6, 0\)"),
    "three dimensions": ("poisson", np.zeros((6, 1, 1)), "labels", "shape"),
    "an unknown outcome": ("gausian", SOUND["gaussian"], "outcome", "Did you mean 'gaussian'"),
}


class TestBadInput:
    @pytest.mark.parametrize(("outcome", "labels", "argument", "message"), BAD.values(), ids=BAD)
    def test_is_named(self, outcome, labels, argument, message):
        with pytest.raises(InputError, match=f"(?s){message}") as caught:
            build(outcome, labels)
        assert argument in {problem.argument for problem in caught.value.problems}

    @pytest.mark.parametrize("outcome", KINDS)
    def test_several_problems_are_listed_together(self, outcome):
        labels = np.stack([with_value(outcome, np.inf), constant(outcome)], axis=1)
        with pytest.raises(InputError) as caught:
            build(outcome, labels, val=[2, 3], test=[5], train=[0, 1, 2])
        found = [problem.argument for problem in caught.value.problems]
        assert sorted(found) == ["labels", "labels", "train and val"]

    @pytest.mark.parametrize("outcome", KINDS)
    def test_a_split_needs_labelled_nodes(self, outcome):
        with pytest.raises(InputError, match="1 nodes without a label"):
            build(outcome, SOUND[outcome], test=[5])

    def test_the_number_of_columns_is_not_chosen(self):
        with pytest.raises(InputError, match="num_classes: given 3; allowed: 1"):
            NodeTask.build(X, EDGES, SOUND["gaussian"], [0, 1], [2], outcome="gaussian", num_classes=3)


class TestForms:
    @pytest.mark.parametrize("outcome", KINDS)
    def test_one_column_or_several(self, outcome):
        one = build(outcome, SOUND[outcome])
        two = build(outcome, np.stack([SOUND[outcome]] * 2, axis=1))
        assert (one.num_classes, two.num_classes) == (1, 2)
        np.testing.assert_array_equal(two.labels[:, 1:], one.labels)
        assert one.labels.dtype == np.float64

    def test_flags_tensors_objects_and_sparse_tags(self):
        tags = np.array([0, 1, 1, 0, 1, 0])
        expected = build("bernoulli", tags).labels
        for form in (tags > 0, torch.from_numpy(tags), tags.astype(object), sp.csr_array(tags[:, None])):
            np.testing.assert_array_equal(build("bernoulli", form).labels, expected)

    def test_none_is_unknown(self):
        labels = build("gaussian", np.array([1.0, 2.0, 3.5, 4.0, 0.0, None], dtype=object)).labels
        assert np.isnan(labels[5, 0])

    def test_a_node_may_be_known_in_part(self):
        labels = np.stack([SOUND["gaussian"], np.roll(SOUND["gaussian"], 1)], axis=1)
        assert np.isnan(build("gaussian", labels).labels).sum() == 2


@pytest.mark.parametrize("outcome", KINDS)
class TestTask:
    def test_it_says_what_it_holds(self, outcome):
        assert f"1 {KINDS[outcome].columns}" in repr(build(outcome, SOUND[outcome]))

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
