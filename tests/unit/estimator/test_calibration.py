"""Scaling and conformal sets, which the estimator's probabilities and sets rest on."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.calibrate import (
    TEMPERATURES,
    WIDTHS,
    Scaling,
    _scaling,
    conformal_scores,
    conformal_sets,
    fit_scaling,
    fit_temperature,
    negative_log_likelihood,
    tempered,
)


def answers(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from known probabilities, and these probabilities made surer by a factor."""
    rng = np.random.default_rng(seed)
    log_prob = tempered(2 * rng.standard_normal((n, 4)), 1.0)
    labels = (np.exp(log_prob).cumsum(1) > rng.random((n, 1))).argmax(1)
    return tempered(log_prob, 1 / sharpness), labels


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_false_confidence(sharpness):
    log_prob, labels = answers(20_000, sharpness)
    assert fit_temperature(log_prob, labels) == pytest.approx(sharpness, rel=0.05)


def test_the_temperature_is_the_best_one():
    log_prob, labels = answers(5000, 2.0)
    found = fit_temperature(log_prob, labels)
    best = negative_log_likelihood(tempered(log_prob, found), labels)
    assert all(best < negative_log_likelihood(tempered(log_prob, found * f), labels) for f in (0.9, 1.1))


def test_a_handful_of_right_answers_does_not_make_sure():
    log_prob, labels = np.log(np.tile([0.8, 0.2], (5, 1))), np.zeros(5, dtype=int)
    assert 0.3 < fit_temperature(log_prob, labels) < 1
    assert fit_temperature(log_prob[:0], labels[:0]) == 1.0


def test_the_temperature_stays_within_its_bounds():
    wrong = np.log(np.tile([1 - 1e-12, 1e-12], (1000, 1)))
    labels = np.arange(1000) % 2
    assert TEMPERATURES[0] <= fit_temperature(wrong, labels) <= TEMPERATURES[1]


def test_tempering_keeps_the_order_and_sums_to_one():
    log_prob, _ = answers(50, 1.0)
    warm = tempered(log_prob, 3.0)
    np.testing.assert_allclose(np.exp(warm).sum(1), 1)
    np.testing.assert_array_equal(warm.argsort(1), log_prob.argsort(1))
    np.testing.assert_allclose(tempered(log_prob, 1.0), log_prob)


OFFSETS = np.array([0.6, 0.2, -0.1, -0.7])


def shifted(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from known probabilities, and answers that know neither their sharpness nor these offsets."""
    log_prob, _ = answers(n, 1.0, seed)
    truth = Scaling(1.0, OFFSETS)(log_prob)
    drawn = np.random.default_rng(seed + 1).random((n, 1))
    return tempered(log_prob, 1 / sharpness), (np.exp(truth).cumsum(1) > drawn).argmax(1)


@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_offsets_undo_a_shift_of_the_classes(sharpness):
    log_prob, labels = shifted(20_000, sharpness)
    found = fit_scaling(log_prob, labels)
    assert found.temperature == pytest.approx(sharpness, rel=0.05)
    np.testing.assert_allclose(found.offsets, OFFSETS, atol=0.08)


def test_a_scaling_is_the_best_one_under_its_prior():
    log_prob, labels = shifted(500, 2.0)
    found = fit_scaling(log_prob, labels)
    best = negative_log_likelihood(found(log_prob), labels)
    assert best < negative_log_likelihood(tempered(log_prob, fit_temperature(log_prob, labels)), labels)
    for width in WIDTHS[1:]:
        made = _scaling(log_prob, labels, width)

        def cost(temperature: float, offsets: np.ndarray, width: float = width) -> float:
            loss = len(labels) * negative_log_likelihood(Scaling(temperature, offsets)(log_prob), labels)
            return loss + np.log(temperature) ** 2 / 2 + (offsets**2).sum() / (2 * width**2)

        least = cost(made.temperature, made.offsets)
        for step in (-0.03, 0.03):
            assert cost(made.temperature * np.exp(step), made.offsets) > least
            for direction in np.eye(4):
                assert cost(made.temperature, made.offsets + step * direction) > least


def test_what_held_back_labels_do_not_support_is_left_out():
    found = [fit_scaling(*answers(200, 1.0, seed)) for seed in range(10)]
    assert sum(one.offsets is None for one in found) >= 5
    assert max(abs(one.offsets).max() for one in found if one.offsets is not None) < 0.4


def test_a_handful_of_labels_gives_a_temperature_alone():
    log_prob, labels = shifted(9, 1.0)
    found = fit_scaling(log_prob, labels)
    assert found.offsets is None
    assert found.temperature == fit_temperature(log_prob, labels)


def test_a_scaling_of_a_hand_computed_example():
    made = Scaling(0.5, np.log([1.0, 3.0]))(np.log([[0.75, 0.25]]))
    np.testing.assert_allclose(np.exp(made), [[0.75, 0.25]])
    np.testing.assert_allclose(np.exp(Scaling()(made)), [[0.75, 0.25]])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_sets_hold_the_truth_as_often_as_promised(alpha):
    log_prob, labels = answers(6000, 1.0, seed=2)
    p = np.exp(log_prob)
    sets = conformal_sets(p[3000:], conformal_scores(p[:3000], labels[:3000]), alpha)
    coverage = sets[np.arange(3000), labels[3000:]].mean()
    assert 1 - alpha - 0.02 < coverage < 1 - alpha + 0.02


def test_sets_of_a_hand_computed_example():
    scores = conformal_scores(np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 1, 1]))
    np.testing.assert_allclose(scores, [0.1, 0.6, 0.3])
    answer = np.array([[0.75, 0.25], [0.5, 0.5], [0.55, 0.45]])
    # Of three scores, alpha = 0.5 takes the second smallest: 0.3.
    np.testing.assert_array_equal(conformal_sets(answer, scores, 0.5), [[True, False], [True, False], [True, False]])
    np.testing.assert_array_equal(conformal_sets(answer, scores, 0.25), [[True, False], [True, True], [True, True]])
    assert conformal_sets(answer, scores, 0.1).all(), "three scores cannot exclude anything at 0.1"
    assert conformal_sets(answer, scores[:0], 0.5).all()
