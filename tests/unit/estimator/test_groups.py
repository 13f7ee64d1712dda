"""Numbers and tags as beliefs about classes, for the audit of edges."""

from __future__ import annotations

import numpy as np
import pytest

import g3nn
from g3nn.estimator.groups import number_groups, tag_groups
from g3nn.parse import UNKNOWN


def hidden(task):
    """The task without test labels."""
    return task.without_test()


def test_values_fall_into_groups_of_equal_size():
    task = hidden(g3nn.synthetic_values(nodes=400, labelled=0.5, val=50, degree=4))
    mean, deviation = np.linspace(30, 70, 400), np.linspace(1, 12, 400)
    classes, beliefs = number_groups(task, mean, deviation)
    assert (classes.num_classes, classes.outcome) == (5, "classes")
    known = np.concatenate([task.train, task.val])
    sizes = np.bincount(classes.labels[known], minlength=5)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(beliefs[known], np.eye(5)[classes.labels[known]])
    # Elsewhere the mass of a normal in each group, here by drawing.
    limits = np.nanquantile(task.labels[:, 0], [0.2, 0.4, 0.6, 0.8], method="lower")
    node = int(task.unlabelled[~np.isin(task.unlabelled, task.val)][7])
    draws = np.random.default_rng(0).normal(mean[node], deviation[node], 400_000)
    shares = np.bincount(np.searchsorted(limits, draws), minlength=5) / draws.size
    np.testing.assert_allclose(beliefs[node], shares, atol=0.004)
    np.testing.assert_allclose(beliefs.sum(1), 1)


@pytest.mark.parametrize("values", [[0, 0, 0, 0, 9], [0, 9, 9, 9, 9], [1, 2, 1, 2, 1]])
def test_few_different_values_make_fewer_groups(values):
    y = np.array([*values, np.nan], dtype=float)
    task = g3nn.NodeTask.build(np.eye(6), [[0], [1]], y, [0, 1, 4], [2, 3], outcome="real")
    classes, beliefs = number_groups(task, np.zeros(6), np.ones(6))
    assert classes.num_classes == beliefs.shape[1] == 2
    low = classes.labels[:5] == 0
    assert y[:5][low].max() < y[:5][~low].min()
    assert classes.labels[5] == UNKNOWN


def test_one_tag_of_a_node_stands_for_it():
    y = np.array([[1, 1], [0, 0], [1, np.nan], [np.nan, np.nan], [0, 1]])
    task = g3nn.NodeTask.build(np.eye(5), [[0], [1]], y, [0, 1, 4], [2], outcome="tags")
    p = np.full((5, 2), 0.2)
    classes, beliefs = tag_groups(task, p)
    assert classes.num_classes == 3
    np.testing.assert_allclose(beliefs[0], [0.5, 0.5, 0])
    np.testing.assert_allclose(beliefs[1], [0, 0, 1])
    np.testing.assert_allclose(beliefs[2], np.array([1, 0.2, 0]) / 1.2)
    np.testing.assert_allclose(beliefs[3], np.array([0.2, 0.2, 0.64]) / 1.04)
    assert (p == 0.2).all()
