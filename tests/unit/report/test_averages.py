from __future__ import annotations

from dataclasses import replace

import pytest

from g3nn.experiments.records import Bin, Evidence
from g3nn.report.averages import CURVE_POINTS, average, curves, pooled, tidy


def evidence(epochs, **terms):
    return Evidence(100, 0.5, 0.1, 0.3, tuple(epochs), terms, (), (), ((3, 1), (0, 4)))


def test_no_trials():
    assert average([]) == {}


def test_scores_and_confusion_are_means():
    one = evidence(range(1, 3), val_loss=(1.0, 2.0))
    other = replace(one, ece=0.3, nll=float("nan"), confusion=((1, 3), (2, 2)))
    found = average([one, other])
    assert found["scores"] == {"ece": 0.2, "brier": 0.3, "nll": 0.5}
    assert found["confusion"] == [[2, 2], [1, 3]]
    assert found["test_nodes"] == 100


def test_curves_are_mean_lowest_and_highest():
    trials = [evidence((1, 2, 3), graph=(1.0, 2.0, 4.0)), evidence((1, 2, 3), graph=(3.0, 2.0, 0.0))]
    found = curves(trials)
    assert found["epochs"] == [1, 2, 3]
    assert found["terms"] == {"graph": {"mean": [2, 2, 2], "low": [1, 2, 0], "high": [3, 2, 4]}}


def test_curves_end_where_half_of_the_trials_have_ended():
    lasts = (10, 20, 30, 40)
    trials = [evidence(range(1, last + 1), graph=(float(last),) * last) for last in lasts]
    found = curves(trials)
    assert found["epochs"][-1] == 30
    assert (found["terms"]["graph"]["low"][0], found["terms"]["graph"]["low"][-1]) == (10, 30)


def test_trials_that_kept_other_epochs_are_interpolated():
    found = curves([evidence((1, 3), graph=(0.0, 2.0)), evidence((1, 2, 3), graph=(0.0, 3.0, 4.0))])
    assert found["terms"]["graph"]["mean"] == [0, 2, 3]


def test_values_that_are_missing_do_not_count():
    trials = [evidence((1, 2, 3), graph=(1.0, None, None)), evidence((1, 2, 3), graph=(3.0, 4.0, None))]
    assert curves(trials)["terms"]["graph"]["mean"] == [2, 4, None]


def test_terms_of_other_models_are_left_out():
    found = curves([evidence((1, 2), graph=(0.0, 0.0), prior=(None, None), val_loss=(1.0, 0.5))])
    assert list(found["terms"]) == ["val_loss"]


def test_a_long_curve_is_thinned():
    found = curves([evidence(range(1, 2001), graph=tuple(map(float, range(2000))))])
    assert (found["epochs"][0], found["epochs"][-1]) == (1, 2000)
    assert len(found["epochs"]) <= CURVE_POINTS
    steps = [later - earlier for earlier, later in zip(found["epochs"], found["epochs"][1:], strict=False)]
    assert steps[0] < steps[-1]


def test_trials_without_epochs_have_no_curves():
    assert curves([evidence(())]) == {"epochs": [], "terms": {}}


def test_bins_are_weighed_by_their_nodes():
    one = (Bin(0.0, 0.5, 0, 0.0, 0.0), Bin(0.5, 1.0, 30, 1.0, 0.8))
    other = (Bin(0.0, 0.5, 20, 0.5, 0.25), Bin(0.5, 1.0, 10, 0.6, 0.6))
    assert pooled([one, other]) == [[0, 0.5, 10, 0.5, 0.25], [0.5, 1, 20, 0.9, 0.75]]


@pytest.mark.parametrize(
    ("value", "expected"), [(0.123456, 0.1235), (2.0, 2), (None, None), (float("nan"), None), (float("inf"), None)]
)
def test_tidy(value, expected):
    assert tidy(value) == expected
