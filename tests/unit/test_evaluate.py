from __future__ import annotations

import math

import pytest
import torch

from g3nn import evaluate

LOG_PROB = torch.tensor(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        [[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]],
    ],
    dtype=torch.float64,
).log()
LABELS = torch.tensor([0, 1, 2, -1])
NODES = torch.tensor([0, 1, 2])


def test_accuracy_counts_the_likeliest_class():
    assert evaluate.accuracy(LOG_PROB, LABELS, NODES).tolist() == pytest.approx([1.0, 1 / 3])


def test_accuracy_looks_at_the_given_nodes_alone():
    assert evaluate.accuracy(LOG_PROB, LABELS, torch.tensor([2, 1])).tolist() == [1.0, 0.5]


def test_cross_entropy():
    expected = [-math.log(0.7 * 0.8 * 0.5) / 3, -math.log(0.1 * 0.4 * 0.2) / 3]
    assert evaluate.cross_entropy(LOG_PROB, LABELS, NODES).tolist() == pytest.approx(expected, rel=1e-12)


def test_cross_entropy_is_that_of_torch():
    expected = [torch.nn.functional.nll_loss(rows[NODES], LABELS[NODES]).item() for rows in LOG_PROB]
    assert evaluate.cross_entropy(LOG_PROB, LABELS, NODES).tolist() == pytest.approx(expected, rel=1e-12)
