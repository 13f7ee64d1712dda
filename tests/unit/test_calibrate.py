from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from g3nn.graph.calibrate import (
    BINS,
    TEMPERATURES,
    WIDTHS,
    Scaling,
    Validated,
    _modes,
    base_rates,
    brier_score,
    conformal_sets,
    conformal_threshold,
    degree_bins,
    expected_calibration_error,
    fit_scaling,
    fit_temperature,
    log_seen,
    negative_log_likelihood,
    reliability_bins,
    wilson_interval,
    with_doubt,
)


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


def drawn(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from known probabilities, and these probabilities made surer by a factor."""
    rng = np.random.default_rng(seed)
    log_prob = Scaling(1.0)(2 * rng.standard_normal((n, 4)))
    labels = (np.exp(log_prob).cumsum(1) > rng.random((n, 1))).argmax(1)
    return Scaling(1 / sharpness)(log_prob), labels


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_false_confidence(sharpness):
    log_prob, labels = drawn(10_000, sharpness)
    assert fit_temperature(log_prob, labels) == pytest.approx(sharpness, rel=0.05)


def test_the_temperature_is_the_best_one():
    log_prob, labels = drawn(5000, 2.0)
    found = fit_temperature(log_prob, labels)
    best = negative_log_likelihood(Scaling(found)(log_prob), labels)
    assert all(best < negative_log_likelihood(Scaling(found * f)(log_prob), labels) for f in (0.9, 1.1))


def test_a_handful_of_right_answers_does_not_make_sure():
    log_prob, labels = np.log(np.tile([0.8, 0.2], (5, 1))), np.zeros(5, dtype=int)
    assert 0.3 < fit_temperature(log_prob, labels) < 1
    assert fit_temperature(log_prob[:0], labels[:0]) == 1.0


def test_the_temperature_stays_within_its_bounds():
    wrong = np.log(np.tile([1 - 1e-12, 1e-12], (1000, 1)))
    labels = np.arange(1000) % 2
    assert TEMPERATURES[0] <= fit_temperature(wrong, labels) <= TEMPERATURES[1]


def test_tempering_keeps_the_order_and_sums_to_one():
    log_prob, _ = drawn(50, 1.0)
    warm = Scaling(3.0)(log_prob)
    np.testing.assert_allclose(np.exp(warm).sum(1), 1)
    np.testing.assert_array_equal(warm.argsort(1), log_prob.argsort(1))
    np.testing.assert_allclose(Scaling(1.0)(log_prob), log_prob)


OFFSETS = np.array([0.6, 0.2, -0.1, -0.7])


def shifted(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from known probabilities, and answers that know neither their sharpness nor these offsets."""
    log_prob, _ = drawn(n, 1.0, seed)
    truth = Scaling(1.0, OFFSETS)(log_prob)
    level = np.random.default_rng(seed + 1).random((n, 1))
    return Scaling(1 / sharpness)(log_prob), (np.exp(truth).cumsum(1) > level).argmax(1)


@pytest.mark.slow
def test_offsets_undo_a_shift_of_the_classes():
    log_prob, labels = shifted(8000, 2.0)
    found = fit_scaling(log_prob, labels)
    assert found.temperature == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(found.offsets, OFFSETS, atol=0.08)


def test_a_scaling_is_the_best_one_under_its_prior():
    log_prob, labels = shifted(500, 2.0)
    found = fit_scaling(log_prob, labels)
    best = negative_log_likelihood(found(log_prob), labels)
    assert best < negative_log_likelihood(Scaling(fit_temperature(log_prob, labels))(log_prob), labels)
    for width in WIDTHS[1:]:
        made = _modes(log_prob, labels, np.ones((1, 500), dtype=bool), width, 1.0, None)[0]

        def cost(temperature: float, offsets: np.ndarray, width: float = width) -> float:
            loss = len(labels) * negative_log_likelihood(Scaling(temperature, offsets)(log_prob), labels)
            return loss + np.log(temperature) ** 2 / 2 + (offsets**2).sum() / (2 * width**2)

        least = cost(made.temperature, made.offsets)
        for step in (-0.03, 0.03):
            assert cost(made.temperature * np.exp(step), made.offsets) > least
            for direction in np.eye(4):
                assert cost(made.temperature, made.offsets + step * direction) > least


@pytest.mark.parametrize("sharpness", [0.2, 60.0])
@pytest.mark.parametrize("table", [None, 0.7 * np.eye(4) + 0.3 / 4], ids=["right", "some wrong"])
def test_many_modes_at_once_are_those_of_a_general_minimiser(table, sharpness):
    """Each by the labels that it may use; temperatures stay within their limits."""
    log_prob, labels = shifted(300, sharpness)
    used = np.random.default_rng(5).random((3, 300)) < 0.8
    for some, made in zip(used, _modes(log_prob, labels, used, 0.5, 1.0, table), strict=True):

        def cost(point: np.ndarray, some: np.ndarray = some) -> float:
            scaling = Scaling(np.exp(point[0]), 0.5 * point[1:])
            return point @ point / 2 - log_seen(scaling(log_prob[some]), labels[some], table).sum()

        bounds = [tuple(np.log(TEMPERATURES)), *[(None, None)] * 4]
        best = minimize(cost, np.zeros(5), bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9}).x
        np.testing.assert_allclose([made.temperature, *made.offsets], [np.exp(best[0]), *0.5 * best[1:]], atol=1e-3)
        assert cost(np.array([np.log(made.temperature), *made.offsets / 0.5])) <= cost(best) + 1e-9


def test_what_held_back_labels_do_not_support_is_left_out():
    found = [fit_scaling(*drawn(n, 1.0, seed)).offsets for n in (70, 200) for seed in range(3)]
    assert sum(one is not None for one in found) <= 1


def test_copies_of_a_node_are_no_further_evidence():
    found = []
    nodes = np.repeat(np.arange(40), 6)
    for seed in range(3):
        log_prob, labels = drawn(40, 1.0, seed)
        found.append(fit_scaling(log_prob[nodes], labels[nodes], None, nodes).offsets)
    assert sum(one is not None for one in found) <= 1


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
    log_prob, labels = drawn(6000, 1.0, seed=2)
    p = np.exp(log_prob)
    sets = conformal_sets(p[3000:], 1 - p[np.arange(3000), labels[:3000]], alpha)
    coverage = sets[np.arange(3000), labels[3000:]].mean()
    assert 1 - alpha - 0.02 < coverage < 1 - alpha + 0.02


def test_few_scores_exclude_nothing():
    answer, scores = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0.1, 0.6, 0.3])
    assert conformal_sets(answer, scores, 0.1).all()
    assert conformal_sets(answer, scores[:0], 0.5).all()


@pytest.mark.parametrize(("alpha", "threshold"), [(0.5, 0.3), (0.25, 0.6), (0.2, np.inf)])
def test_the_threshold_is_the_score_of_its_rank_with_one_more_at_infinity(alpha, threshold):
    assert conformal_threshold(np.array([0.1, 0.6, 0.3]), alpha) == threshold


@pytest.mark.parametrize(
    ("most", "last"), [(None, [(9, 16, 1), (33, 40, 1)]), (6, [(9, 40, 2)])], ids=["doubling", "open-ended"]
)
def test_degrees_double_from_bin_to_bin(most, last):
    degrees = np.array([0, 1, 2, 3, 4, 5, 8, 9, 40])
    bins = degree_bins(np.full((9, 2), 0.5), np.zeros(9, dtype=int), degrees, most)
    expected = [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 2), *last]
    assert [(one.low, one.high, one.nodes) for one in bins] == expected


def test_the_wilson_interval_by_its_formula():
    share, n, z = 0.8, 1000, stats.norm.ppf(0.975)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert wilson_interval(share, n) == pytest.approx((middle - reach, middle + reach), rel=1e-9)


def test_the_wilson_interval_holds_the_share_and_stays_within_limits():
    for share in [0.0, 1.0, 0.12345]:
        low, high = wilson_interval(share, 500)
        assert 0 <= low <= share + 0.001
        assert share - 0.001 <= high <= 1
        assert low < high


class TestDoubt:
    """How far labels support a model."""

    @staticmethod
    def answers(n: int, right: float, sure: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """(n, 2) log-probabilities of answers that are this sure, and labels of which about a share agrees."""
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, n)
        given = np.where(rng.random(n) < right, labels, 1 - labels)
        return np.log(np.where(np.eye(2)[given] == 1, sure, 1 - sure)), labels

    def test_base_rates_are_the_evidence_of_labels_one_after_the_other(self):
        labels = np.array([0, 0, 1, 0, 2, 0, 0])
        said = [base_rates(labels[:known], 3, np.ones(known))[0][labels[known]] for known in range(len(labels))]
        assert np.log(said).sum() == pytest.approx(base_rates(labels, 3, np.ones(len(labels)))[1], rel=1e-12)

    def test_few_labels_do_not_make_a_class_likelier_and_many_do(self):
        assert base_rates(np.repeat([0, 1], [15, 9]), 2, np.ones(24))[0][0] < 0.55
        assert base_rates(np.repeat([0, 1], [980, 20]), 2, np.ones(1000))[0] == pytest.approx([0.98, 0.02], abs=0.002)
        np.testing.assert_array_equal(base_rates(np.zeros(0, dtype=int), 4, np.ones(0))[0], 0.25)

    @pytest.mark.parametrize("n", [20, 500])
    def test_what_agrees_by_chance_becomes_the_base_rates(self, n):
        log_prob, labels = self.answers(n, 0.5, 0.9, seed=3)
        scaling = with_doubt(fit_scaling(log_prob, labels), Validated(log_prob, labels), 30)
        assert scaling.base is not None
        assert scaling.base.sum() > 0.9
        assert np.exp(scaling(log_prob)).max(1).mean() < 0.56

    def test_many_labels_that_agree_leave_everything_as_it_is(self):
        log_prob, labels = self.answers(2000, 0.79, 0.79)
        scaling = with_doubt(fit_scaling(log_prob, labels), Validated(log_prob, labels), 30)
        agree = (log_prob.argmax(1) == labels).mean()
        assert np.exp(scaling(log_prob)).max(1).mean() == pytest.approx(agree, abs=0.005)

    def test_confidence_is_what_few_right_answers_support(self):
        """With T = 1, T < 1 and any share of luck the label is likely: 10 of 10 do not make an answer certain."""
        log_prob, labels = self.answers(10, 1.0, 0.999)
        confidence = np.exp(with_doubt(Scaling(), Validated(log_prob, labels), 1)(log_prob)).max(1).mean()
        assert 0.9 < confidence < 0.98

    def test_it_is_the_mean_over_the_posterior(self):
        """Of the temperature and the doubt, by sums over a fine grid."""
        log_prob, labels = self.answers(30, 0.8, 0.9, seed=2)
        levels, shares = np.linspace(-4, 4, 401), np.sin(np.pi / 2 * (np.arange(400) + 0.5) / 400) ** 2
        rates, without = base_rates(labels, 2, np.ones(30))
        right = np.exp([Scaling(np.exp(level))(log_prob)[np.arange(30), labels] for level in levels])
        posterior = np.log((1 - shares) * right[:, :, None] + shares * rates[labels][:, None]).sum(1)
        posterior -= levels[:, None] ** 2 / 2
        weights = np.exp(posterior - posterior.max())
        evidence = np.log(weights.mean(1).sum() * 8 / 400 / np.sqrt(2 * np.pi)) + posterior.max()
        nothing = 1 / (1 + np.exp(evidence - np.log(7) - without))
        level = (weights.sum(1) @ levels) / weights.sum()
        there = weights[np.abs(levels - level).argmin()]
        found = with_doubt(Scaling(), Validated(log_prob, labels), 7)
        assert found.temperature == pytest.approx(np.exp(level), rel=0.02)
        doubt = nothing + (1 - nothing) * (there @ shares) / there.sum()
        assert found.base.sum() == pytest.approx(doubt, rel=0.03)

    def test_more_models_that_were_tried_are_more_doubt(self):
        log_prob, labels = self.answers(20, 0.7, 0.7, seed=1)
        doubts = [with_doubt(Scaling(), Validated(log_prob, labels), tried).base.sum() for tried in (1, 10, 100)]
        assert doubts == sorted(doubts)
        assert doubts[0] < doubts[2]

    def test_labels_that_count_more_count_in_the_base_rates(self):
        log_prob, labels = self.answers(300, 0.5, 0.6)
        scaling = with_doubt(Scaling(), Validated(log_prob, labels, np.where(labels == 0, 4.0, 1.0)), 1)
        share = 4 * (labels == 0).sum() / (4 * (labels == 0).sum() + (labels == 1).sum())
        assert scaling.base[0] / scaling.base.sum() == pytest.approx(share, abs=0.02)

    def test_balanced_answers_are_judged_by_balanced_labels(self):
        rng = np.random.default_rng(0)
        labels = (np.arange(400) < 20).astype(int)
        level = np.where(labels == 1, 1.5, -1.5) + 1.5 * rng.standard_normal(400)
        log_prob = -np.logaddexp(0, np.stack([level, -level], axis=1))
        weights = np.where(labels == 1, 19.0, 1.0)
        assert with_doubt(Scaling(), Validated(log_prob, labels, weights), 30).base.sum() < 0.1


class TestRareClass:
    """One of 2 %: two classes, labels drawn from known probabilities, which are then made surer."""

    @staticmethod
    def drawn(n: int, sharpness: float, signal: float = 1.5, rate: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        labels = (np.arange(n) < rate * n).astype(int)
        base = np.log(rate / (1 - rate))
        odds = base + sharpness * (signal * (rng.normal(size=n) + signal * labels) - signal**2 / 2)
        return np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1), labels

    @pytest.mark.parametrize("sharpness", [0.6, 1.0, 1.6])
    @pytest.mark.parametrize("n", [1000, 2500, 5000])
    def test_probabilities_keep_its_rate(self, n, sharpness):
        log_prob, labels = self.drawn(n, sharpness)
        scaling = with_doubt(fit_scaling(log_prob, labels), Validated(log_prob, labels), 30)
        fresh, _ = self.drawn(20_000, sharpness)
        assert np.exp(scaling(fresh))[:, 1].mean() == pytest.approx(0.02, rel=0.25)

    def test_confidence_is_not_taken_away_where_labels_contradict_that(self):
        """Nearly all answers are right by chance, so being as often right as claimed takes a very high temperature."""
        log_prob, labels = self.drawn(1000, 1.0, signal=2.0)
        scaling = with_doubt(Scaling(), Validated(log_prob, labels), 30)
        assert scaling.temperature < 1.5
        fresh, truth = self.drawn(20_000, 1.0, signal=2.0)
        losses = [negative_log_likelihood(one(fresh), truth) for one in (scaling, Scaling())]
        assert losses[0] == pytest.approx(losses[1], rel=0.05)


def test_sets_by_class_hold_each_class_as_often():
    """Otherwise they do so on the whole, but hold a rare and difficult class hardly ever."""
    rng = np.random.default_rng(0)
    misses: dict[bool, list[list[np.ndarray]]] = {True: [[], []], False: [[], []]}
    for _ in range(200):
        labels = (rng.random(600) < 0.1).astype(int)
        p = 1 / (1 + np.exp(2.5 - rng.normal(size=600) - labels))
        probabilities = np.stack([1 - p, p], axis=1)
        scores = 1 - probabilities[np.arange(300), labels[:300]]
        for by_class, each in misses.items():
            sets = conformal_sets(probabilities[300:], scores, 0.1, labels[:300] if by_class else None)
            for k, found in enumerate(each):
                found.append(~sets[labels[300:] == k, k])
    shares = {by_class: [np.concatenate(one).mean() for one in each] for by_class, each in misses.items()}
    # The likeliest class is always in its set, which is nearly always the frequent one.
    assert shares[True][0] < 0.1
    assert 0.06 < shares[True][1] < 0.1
    assert shares[False][1] > 0.5
