from __future__ import annotations

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.graph.datasets import synthetic_values

OUTCOMES = ("tags", "real", "counts")


def test_labels_are_alike_along_edges_beyond_what_features_explain():
    for outcome in OUTCOMES:
        task = synthetic_values(outcome, nodes=3000, degree=8, seed=2)
        x = np.column_stack([np.ones(3000), task.features])
        y = task.labels[:, 0]
        rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        i, j = task.edges
        standard_error = 1 / np.sqrt(task.num_edges)
        assert np.corrcoef(rest[i], rest[j])[0, 1] > 20 * standard_error
        assert abs(2 * task.num_edges / 3000 - 8) < 0.5


def test_features_explain_the_share_that_was_asked_for():
    task = synthetic_values("real", nodes=4000, explained=0.4, seed=1)
    x = np.column_stack([np.ones(4000), task.features])
    y = task.labels[:, 0]
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert abs(1 - rest.var() / y.var() - 0.4) < 0.05


def test_the_same_seed_gives_the_same_task(assert_same_task):
    one, two = (synthetic_values("counts", nodes=300, columns=2, val=50, seed=3) for _ in range(2))
    assert_same_task(one, two)
    assert (one.outcome, one.num_classes) == ("counts", 2)


def test_the_split_is_as_asked():
    task = synthetic_values("real", nodes=1000, labelled=0.05, val=200)
    assert (len(task.train), len(task.val), len(task.test)) == (50, 200, 750)


def test_bad_arguments_are_all_named():
    for changes, arguments in [
        ({"outcome": "classes"}, ["outcome"]),
        ({"nodes": 0, "explained": 2.0}, ["nodes", "explained"]),
        ({"nodes": 10, "degree": 9, "val": 1}, ["degree"]),
        ({"nodes": 10, "degree": 2, "labelled": 0.5, "val": 9}, ["labelled, val"]),
        ({"seed": -1, "val": True}, ["val", "seed"]),
    ]:
        with pytest.raises(InputError) as caught:
            synthetic_values(**changes)
        assert [problem.argument for problem in caught.value.problems] == arguments
