from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from g3nn.studies.comparison import Sample, difference_interval, t_test

ONE = [0.80, 0.81, 0.79, 0.82, 0.80]
OTHER = [0.78, 0.79, 0.77, 0.80]


def sample(values: list[float]) -> Sample:
    made = Sample.of(values)
    assert made is not None
    return made


def test_a_sample_has_the_standard_deviation_of_few_values():
    assert sample([1.0, 3.0]) == Sample(2.0, math.sqrt(2), 2)


def test_one_value_has_no_spread_and_none_no_sample():
    assert Sample.of([0.5]) == Sample(0.5, None, 1)
    assert Sample.of([]) is None


def test_the_t_test_pools_the_variances():
    pooled = (4 * np.var(ONE, ddof=1) + 3 * np.var(OTHER, ddof=1)) / 7
    t = (np.mean(ONE) - np.mean(OTHER)) / math.sqrt(pooled * (1 / 5 + 1 / 4))
    expected = 2 * stats.t.sf(t, 7)
    assert t_test(sample(ONE), sample(OTHER)) == pytest.approx(expected, rel=1e-9)
    assert t_test(sample(OTHER), sample(ONE)) == pytest.approx(expected, rel=1e-9)


def test_the_interval_is_that_of_welch():
    test = stats.ttest_ind(ONE, OTHER, equal_var=False)
    expected = test.confidence_interval(0.95)
    assert difference_interval(sample(ONE), sample(OTHER)) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_an_unknown_spread_leaves_both_open():
    for other in [Sample(0.7, None, 10), Sample(0.7, 0.01, 1)]:
        assert t_test(sample(ONE), other) is None
        assert difference_interval(sample(ONE), other) is None


def test_trials_without_spread_differ_for_certain_or_not_at_all():
    low, high = Sample(0.5, 0.0, 3), Sample(0.6, 0.0, 3)
    assert (t_test(low, high), t_test(low, low)) == (0.0, 1.0)
    assert difference_interval(low, high) == pytest.approx((-0.1, -0.1))
