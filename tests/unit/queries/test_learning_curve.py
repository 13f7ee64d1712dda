"""A power law for errors: its posterior against sums by hand, and what it says of more labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from g3nn.base.errors import InputError
from g3nn.queries.learning_curve import Gain, LearningCurve, Trained, nested_order


def curve(trained=(), known=60, error=0.3, judged=60, classes=4, nodes=10_000):
    return LearningCurve.fit(trained, known, error, judged, classes, nodes)


def law(exponent, error=0.3, known=60, judged=5000):
    """What networks say whose errors follow a law."""
    return [Trained(n, error * (n / known) ** -exponent, judged) for n in (15, 30, 45)]


def test_the_exponent_against_sums_by_hand():
    """Of the prior times a binomial likelihood, on a grid that is finer and evenly spaced."""
    trained = [Trained(15, 0.5, 40), Trained(30, 0.4, 30)]
    rates, errors = (np.arange(2000) + 0.5) / 1000, (np.arange(2000) + 0.5) / 2000
    total = expected = 0.0
    for rate in rates:
        wrong = np.stack([np.minimum(errors * (n / 60) ** -rate, 0.75) for n in (15, 30)])
        likelihood = scipy.stats.beta.pdf(errors, 0.5, 0.5) * np.prod(
            [
                w ** (one.wrong * one.judged) * (1 - w) ** ((1 - one.wrong) * one.judged)
                for w, one in zip(wrong, trained, strict=True)
            ],
            axis=0,
        )
        mass = scipy.stats.gamma.pdf(rate, 2, scale=1 / 8) * likelihood.sum()
        total, expected = total + mass, expected + mass * rate
    one = curve(trained)
    quantiles = scipy.stats.gamma.ppf((np.arange(80) + 0.5) / 80, 2, scale=1 / 8)
    assert one._shares @ quantiles == pytest.approx(expected / total, abs=0.005)


def test_moments_and_ends_of_errors_against_draws():
    one, rng, draws = curve([Trained(15, 0.5, 40), Trained(30, 0.4, 30)], judged=20), np.random.default_rng(0), 200_000
    quantiles = scipy.stats.gamma.ppf((np.arange(80) + 0.5) / 80, 2, scale=1 / 8)
    rate = rng.choice(quantiles, draws, p=one._shares)
    spread = 0.2 * math.sqrt(math.log(2))
    luck = np.exp(spread * rng.standard_normal(draws) - spread**2 / 2)
    now = rng.beta(22 * 0.3, 22 * 0.7, draws)
    more = np.minimum(now * 2.0**-rate * luck, np.maximum(0.75, now))
    asked = one.at([120])
    told = (asked.score[0], asked.low[0], asked.high[0])
    assert told == pytest.approx(tuple(1 - np.array([more.mean(), *np.quantile(more, [0.95, 0.05])])), abs=0.01)
    gain = one.gain(60)
    assert gain[1:] == pytest.approx((np.mean(now - more), *np.quantile(now - more, [0.05, 0.95])), abs=0.01)


@pytest.mark.parametrize("exponent", [0.1, 0.4])
def test_many_labels_show_the_law(exponent):
    one = curve(law(exponent), judged=10_000)
    assert one.at([240]).score[0] == pytest.approx(1 - 0.3 * 4**-exponent, abs=0.01)
    assert one.gain(180).score == pytest.approx(0.3 - 0.3 * 4**-exponent, abs=0.01)


@pytest.mark.parametrize("error", [1e-9, 0.004, 0.3, 0.97])
def test_with_the_labels_of_the_fit_it_says_what_the_fit_says(error):
    one = curve(law(0.3), error=error, judged=5).at([60])
    assert one.score[0] == pytest.approx(1 - error, abs=1e-5)
    assert 0 <= one.low[0] <= one.score[0] <= one.high[0] <= 1


def test_nothing_measured_leaves_the_prior_and_wide_intervals():
    unknown, known = curve(judged=0), curve(law(0.25), judged=1000)
    assert unknown.measured.tolist() == [False] * 4
    assert unknown.gain(60).score > 0.02
    assert np.all(unknown.high - unknown.low > 2 * (known.at(unknown.labels).high - known.at(unknown.labels).low))
    assert np.all((unknown.low >= 0) & (unknown.high <= 1))


def test_more_labels_are_expected_to_help_and_fewer_to_hurt_down_to_guessing():
    one = curve(law(0.3)).at([1, 15, 60, 240, 10**6])
    assert np.all(np.diff(one.score) > 0)
    assert one.score[0] >= 0.25 - 0.01


def test_which_numbers_of_labels():
    one = curve(law(0.3))
    assert one.labels.tolist() == [15, 30, 45, 60, 70, 120, 240]
    assert one.measured.tolist() == [True] * 3 + [False] * 4
    assert curve(nodes=65).labels.tolist() == [60, 65]
    assert one.at([100, 70, 100]).labels.tolist() == [70, 100]
    for wrong in ([0], [1.5], [], "many", [[1]], True):
        with pytest.raises(InputError, match="labels"):
            one.at(wrong)


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Gain(10, 0.0213, -0.003, 0.0449), "ten more labels would probably give +2 points of accuracy (0 to +4)"),
        (Gain(1, 0.004, -0.02, 0.01), "1 more label would probably give 0 points of accuracy (-2 to +1)"),
        (Gain(1200, 0.2, 0.1, 0.3), "1,200 more labels would probably give +20 points of accuracy (+10 to +30)"),
    ],
)
def test_a_gain_in_words(gain, words):
    assert str(gain) == words


def test_a_curve_in_words():
    lines = str(curve(law(0.3))).splitlines()
    assert lines[0].startswith("Ten more labels would probably give +")
    assert lines[4].startswith("60 labels: 70% (")
    assert len(lines) == 8


def test_every_beginning_has_each_class_and_shares_as_the_whole():
    labels = np.repeat([0, 1, 2], [60, 30, 1])
    order = nested_order(labels, np.random.default_rng(1))
    assert sorted(order.tolist()) == list(range(91))
    for size in range(3, 91):
        counts = np.bincount(labels[order[:size]], minlength=3)
        assert counts.min() >= 1
        assert abs(counts[0] - 2 * counts[1]) <= 4
    assert not np.array_equal(order, nested_order(labels, np.random.default_rng(2)))
