"""How answers about classes are judged on the validation nodes while a model trains."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from g3nn.outcomes import Classes

LOG_PROB = torch.tensor(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        [[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]],
    ],
    dtype=torch.float64,
).log()
LABELS = torch.tensor([0, 1, 2, -1])
NODES = torch.tensor([0, 1, 2])


def judged(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(R,) each: loss, accuracy and calibrated loss."""
    outcome = Classes(log_prob.shape[2])
    targets = outcome.targets(labels.numpy(), np.zeros(0, dtype=np.int64), "cpu", log_prob.dtype)
    loss, accuracy = outcome.validation(log_prob, targets, nodes)
    return loss, accuracy, outcome.calibrated_loss(log_prob, targets, nodes)


def cross_entropy(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    return judged(log_prob, labels, nodes)[0]


def calibrated_loss(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    return judged(log_prob, labels, nodes)[2]


def test_accuracy_counts_the_likeliest_class_of_the_given_nodes():
    assert judged(LOG_PROB, LABELS, NODES)[1].tolist() == pytest.approx([1.0, 1 / 3])
    assert judged(LOG_PROB, LABELS, torch.tensor([2, 1]))[1].tolist() == [1.0, 0.5]


def test_cross_entropy():
    expected = [-math.log(0.7 * 0.8 * 0.5) / 3, -math.log(0.1 * 0.4 * 0.2) / 3]
    assert cross_entropy(LOG_PROB, LABELS, NODES).tolist() == pytest.approx(expected, rel=1e-12)


def test_cross_entropy_is_that_of_torch():
    expected = [torch.nn.functional.nll_loss(rows[NODES], LABELS[NODES]).item() for rows in LOG_PROB]
    assert cross_entropy(LOG_PROB, LABELS, NODES).tolist() == pytest.approx(expected, rel=1e-12)


def test_calibrated_loss_is_the_lowest_over_temperatures():
    torch.manual_seed(0)
    scores = torch.randn(2, 40, 3, dtype=torch.float64)
    labels, nodes = torch.multinomial((4 * scores[0]).softmax(1), 1).squeeze(1), torch.arange(5, 40)
    log_prob = scores.log_softmax(2)
    found = calibrated_loss(log_prob, labels, nodes)
    fine = [cross_entropy((scores / t).log_softmax(2), labels, nodes) for t in np.logspace(-1, 1, 2001)]
    lowest = torch.stack(fine).amin(0)
    assert (found >= lowest - 1e-12).all()
    torch.testing.assert_close(found, lowest, rtol=0.01, atol=0)
    assert (found <= cross_entropy(log_prob, labels, nodes)).all()


def test_calibrated_loss_does_not_depend_on_how_sure_an_answer_is():
    """An answer whose temperature is one step of the grid away from another's has the same loss."""
    torch.manual_seed(0)
    log_prob = (2 * torch.randn(1, 300, 4, dtype=torch.float64)).log_softmax(2)
    labels, nodes = torch.multinomial(log_prob[0].exp(), 1).squeeze(1), torch.arange(300)
    surer = (log_prob * 10 ** (1 / 12)).log_softmax(2)
    one, other = (calibrated_loss(answer, labels, nodes) for answer in (log_prob, surer))
    torch.testing.assert_close(one, other)
