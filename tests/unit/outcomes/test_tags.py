"""Tags: mixtures, measures and groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from sklearn.metrics import f1_score, log_loss

from g3nn.base.errors import Problems
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Tags, tag_table

OUTCOME = Tags.of(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), 2)
ANSWERS = np.random.default_rng(1).normal(0, 2, (3, 40, 2))


def test_the_average_is_that_of_the_probabilities():
    average = OUTCOME.averaged(torch.from_numpy(ANSWERS))
    np.testing.assert_allclose(expit(average), expit(ANSWERS).mean(0), rtol=1e-12)


def test_a_temperature_divides_the_log_odds():
    p = OUTCOME.moments(OUTCOME.scaled(ANSWERS[0], Scaling(2.0)))[0]
    np.testing.assert_allclose(logit(p), ANSWERS[0] / 2, atol=1e-12)


def test_measures_are_those_of_scikit_learn():
    truth, p = (np.random.default_rng(2).random((40, 2)) < 0.3).astype(float), expit(ANSWERS[0])
    measures = OUTCOME.evaluate(ANSWERS[0], truth, np.zeros((40, 2, 2)), np.arange(2), False)
    assert measures["accuracy"] == pytest.approx(((p > 0.5) == truth).mean())
    assert measures["f1_micro"] == pytest.approx(f1_score(truth, p > 0.5, average="micro"))
    assert measures["f1_macro"] == pytest.approx(f1_score(truth, p > 0.5, average="macro"))
    assert measures["nll"] == pytest.approx(log_loss(truth.ravel(), p.ravel()))
    assert measures["brier"] == pytest.approx(((p - truth) ** 2).mean())
    # What is unknown does not count, whatever was answered there.
    holes = np.concatenate([truth, np.full((5, 2), np.nan)])
    answer = np.concatenate([ANSWERS[0], np.full((5, 2), 9.0)])
    assert OUTCOME.evaluate(answer, holes, np.zeros((45, 2, 2)), np.arange(2), False) == pytest.approx(measures)


def test_without_a_tag_to_find_the_f1_is_perfect():
    measures = OUTCOME.evaluate(np.full((3, 2), -5.0), np.zeros((3, 2)), np.zeros((3, 2, 2)), np.arange(2), False)
    assert (measures["f1_micro"], measures["f1_macro"]) == (1.0, 1.0)


def test_a_row_for_each_tag():
    values = np.array([[1, 0, 0], [1, 0, np.nan], [0, 0, 1]])
    rows = tag_table(values, np.array([[0.9, 0.1, 0.8], [0.2, 0.1, 0.9], [0.6, 0.2, 0.3]]))
    assert rows[0] == {"nodes": 3, "share": 2 / 3, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert rows[1] == {"nodes": 3, "share": 0.0, "precision": None, "recall": None, "f1": None}
    assert rows[2] == {"nodes": 2, "share": 0.5, "precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_one_tag_of_a_node_stands_for_it():
    labels = np.array([[1, 1], [0, 0], [1, np.nan], [np.nan, np.nan]])
    answer = np.full((4, 2), logit(0.2))
    _, beliefs = OUTCOME.groups(answer, labels)
    expected = [[0.5, 0.5, 0], [0, 0, 1], np.array([1, 0.2, 0]) / 1.2, np.array([0.2, 0.2, 0.64]) / 1.04]
    np.testing.assert_allclose(beliefs, expected)
    np.testing.assert_array_equal(answer, logit(0.2))


def test_words_for_yes_and_no():
    problems = Problems()
    words = np.array([["yes", "N"], ["no", " True"], [None, "y"], ["FALSE", 0]], dtype=object)
    labels = Tags.read(words, 4, problems)
    assert labels is not None
    np.testing.assert_array_equal(labels.values, [[1, 0], [0, 1], [np.nan, 1], [0, 0]])
    assert Tags.read(np.array([["yes"], ["perhaps"]]), 2, problems) is None
    assert "values such as 'perhaps'; expected 0 or 1 (or true or false, yes or no)" in str(problems.found[0])
