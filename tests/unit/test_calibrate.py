from __future__ import annotations

import numpy as np
import pytest

from g3nn.calibrate import BINS, brier_score, expected_calibration_error, reliability_bins


def two_classes(confidences: list[float]) -> np.ndarray:
    """Answers that are class 0 with these probabilities, all of at least one half."""
    first = np.array(confidences)
    return np.stack([first, 1 - first], axis=1)


HAND = two_classes([0.9, 0.92, 0.6, 0.62]), np.array([0, 1, 0, 0])


@pytest.fixture
def answers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.dirichlet(np.full(4, 0.7), size=500), rng.integers(0, 4, size=500)


def test_bins_of_a_hand_computed_example():
    found = reliability_bins(*HAND, bins=5)
    assert [(part.low, part.high) for part in found] == [(0.4, 0.6), (0.6, 0.8), (0.8, 1.0)]
    assert [part.nodes for part in found] == [1, 1, 2]
    assert [part.accuracy for part in found] == [1.0, 1.0, 0.5]
    np.testing.assert_allclose([part.confidence for part in found], [0.6, 0.62, 0.91])


def test_scores_of_a_hand_computed_example():
    error = (1 * 0.4 + 1 * 0.38 + 2 * 0.41) / 4
    assert expected_calibration_error(*HAND, bins=5) == pytest.approx(error)
    assert brier_score(*HAND) == pytest.approx(2 * (0.1**2 + 0.92**2 + 0.4**2 + 0.38**2) / 4)


def test_calibration_error_is_the_textbook_sum(answers):
    probabilities, labels = answers
    confidence, right = probabilities.max(1), probabilities.argmax(1) == labels
    total = 0.0
    for b in range(BINS):
        inside = (confidence > b / BINS) & (confidence <= (b + 1) / BINS)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert expected_calibration_error(probabilities, labels) == pytest.approx(total)


def test_brier_score_is_the_distance_to_the_one_hot_label(answers):
    probabilities, labels = answers
    expected = ((probabilities - np.eye(4)[labels]) ** 2).sum(1).mean()
    assert brier_score(probabilities, labels) == pytest.approx(expected)


def test_bins_hold_every_node_once_and_are_never_empty(answers):
    found = reliability_bins(*answers)
    assert sum(part.nodes for part in found) == 500
    assert all(part.nodes > 0 and part.low < part.confidence <= part.high for part in found)
    assert [part.low for part in found] == sorted(part.low for part in found)


def test_full_confidence_belongs_to_the_last_bin():
    (part,) = reliability_bins(np.eye(3), np.array([0, 1, 0]))
    assert (part.high, part.nodes, part.confidence) == (1.0, 3, 1.0)
    assert part.accuracy == pytest.approx(2 / 3)


@pytest.mark.parametrize(("right", "error", "brier"), [(True, 0.0, 0.0), (False, 1.0, 2.0)])
def test_the_best_and_the_worst_answer(right, error, brier):
    labels = np.array([0, 1, 2])
    probabilities = np.eye(3)[labels if right else (labels + 1) % 3]
    assert expected_calibration_error(probabilities, labels) == error
    assert brier_score(probabilities, labels) == brier


def test_the_input_is_left_alone(answers):
    probabilities, labels = answers
    before = probabilities.copy()
    brier_score(probabilities, labels)
    expected_calibration_error(probabilities, labels)
    np.testing.assert_array_equal(probabilities, before)
