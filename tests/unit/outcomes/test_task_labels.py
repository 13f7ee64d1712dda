"""Tasks whose labels are numbers: what is accepted, what is refused and how, and that a task stays whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.base.errors import InputError
from g3nn.graph.task import NodeTask

N = 6
X = np.arange(12.0).reshape(N, 2)
EDGES = np.array([[0, 1, 3], [1, 2, 4]])
SOUND = {
    "tags": np.array([0.0, 1.0, 1.0, 0.0, 1.0, np.nan]),
    "real": np.array([0.5, -1.0, 2.0, 3.0, 1.5, np.nan]),
    "counts": np.array([0.0, 3.0, 2.0, 7.0, 1.0, np.nan]),
}


def build(outcome: str, labels: Any, **changes: Any) -> NodeTask:
    given = {"edges": EDGES, "train": [0, 1, 2], "val": [3], "test": [4], **changes}
    return NodeTask.build(X, labels=labels, **given, outcome=outcome)


def with_value(outcome: str, value: float) -> np.ndarray:
    labels = SOUND[outcome].copy()
    labels[5] = value
    return labels


def constant(outcome: str) -> np.ndarray:
    labels = SOUND[outcome].copy()
    labels[:3] = 1.0
    return labels


BAD = {
    "fractional count": ("counts", with_value("counts", 2.5), "values such as 2.5", "whole numbers"),
    "number too large": ("real", with_value("real", 1e200), "values such as 1e+200", "finite"),
    "half a tag": ("tags", with_value("tags", 0.5), "values such as 0.5", "0 or 1"),
    "constant number": ("real", constant("real"), "the same value, or none among", "values that differ"),
    "words among objects": ("real", np.array([1, 2, "3", 4, 5, None], dtype=object), "values such as '3'", "finite"),
    "flags as numbers": ("real", np.arange(6) > 2, "true and false", "finite"),
    "a row too few": ("real", np.arange(5.0), "shape (5,)", "(6, T)"),
    "three dimensions": ("counts", np.zeros((6, 1, 1)), "shape (6, 1, 1)", "(6, T)"),
}


class TestBadInput:
    @pytest.mark.parametrize(("outcome", "labels", "given", "allowed"), BAD.values(), ids=BAD)
    def test_is_named(self, outcome, labels, given, allowed):
        with pytest.raises(InputError) as caught:
            build(outcome, labels)
        (problem,) = caught.value.problems
        assert problem.argument == "labels"
        assert given in problem.given
        assert allowed in problem.allowed

    def test_an_unknown_outcome(self):
        with pytest.raises(InputError, match="Did you mean 'real'") as caught:
            build("rael", SOUND["tags"][:5])
        assert {problem.argument for problem in caught.value.problems} == {"outcome", "labels"}

    @pytest.mark.parametrize("outcome", ["tags", "real"])
    def test_several_problems_are_listed_together(self, outcome):
        labels = np.stack([SOUND[outcome], constant(outcome)], axis=1)
        with pytest.raises(InputError) as caught:
            build(outcome, labels, val=[2, 3], test=[5], edges=[[0], [9]], num_classes=3)
        arguments = [problem.argument for problem in caught.value.problems]
        assert sorted(arguments) == ["edges", "labels", "num_classes", "test", "train and val"]

    def test_wrong_values_do_not_hide_other_problems(self):
        with pytest.raises(InputError) as caught:
            build("real", with_value("real", np.inf), edges=[[0], [9]], val=[77])
        assert sorted(problem.argument for problem in caught.value.problems) == ["edges", "labels", "val"]

    def test_there_must_be_something_to_learn_from_and_something_to_predict(self):
        with pytest.raises(InputError) as caught:
            build("real", SOUND["real"], train=[])
        assert [problem.given for problem in caught.value.problems] == ["no labelled node"]
        with pytest.raises(InputError) as caught:
            build("real", with_value("real", 1.0), train=range(N), val=[], test=[])
        assert sorted(problem.argument for problem in caught.value.problems) == ["train", "val"]


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
