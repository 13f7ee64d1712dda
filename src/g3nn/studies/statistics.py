"""How certain the mean of some trials is, and the difference between two means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05
"""A difference is significant if its p-value is below this."""

TOLERANCE = 1e-9
"""Means closer than this are equal: they differ only by rounding in the last digits."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """Some trials. std: with n - 1; None for a single trial, or where it was not published."""

    mean: float
    std: float | None
    size: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample | None:
        if not values:
            return None
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))

    @property
    def variance_of_mean(self) -> float | None:
        return None if self.std is None or self.size < 2 else self.std**2 / self.size


def t_test(one: Sample, other: Sample) -> float | None:
    """The p-value of the two-sided t-test with a pooled variance; None where a standard deviation is unknown."""
    if one.variance_of_mean is None or other.variance_of_mean is None:
        return None
    if one.std == other.std == 0:
        return float(math.isclose(one.mean, other.mean, abs_tol=TOLERANCE))
    from scipy.stats import ttest_ind_from_stats

    test = ttest_ind_from_stats(one.mean, one.std, one.size, other.mean, other.std, other.size)
    return float(test.pvalue)


def difference_interval(one: Sample, other: Sample) -> Interval | None:
    """Welch's interval for the difference of two means with different variances."""
    first, second = one.variance_of_mean, other.variance_of_mean
    if first is None or second is None:
        return None
    difference, variance = one.mean - other.mean, first + second
    if variance == 0:
        return difference, difference
    from scipy.stats import t

    freedom = variance**2 / (first**2 / (one.size - 1) + second**2 / (other.size - 1))
    reach = float(t.ppf(1 - LEVEL / 2, freedom)) * math.sqrt(variance)
    return difference - reach, difference + reach
