from __future__ import annotations

from g3nn.graph.calibrate import Bin
from g3nn.pages.assets import plain
from g3nn.pages.averages import CURVE_POINTS, curves, pooled


def test_curves_are_mean_lowest_and_highest():
    averaged = curves([((1, 2, 3), {"graph": (1.0, 2.0, 4.0)}), ((1, 2, 3), {"graph": (3.0, 2.0, 0.0)})])
    assert averaged["epochs"] == [1, 2, 3]
    assert averaged["terms"] == {"graph": {"mean": [2, 2, 2], "low": [1, 2, 0], "high": [3, 2, 4]}}


def test_curves_end_where_half_of_the_histories_have_ended():
    averaged = curves([(range(1, last + 1), {"graph": (float(last),) * last}) for last in (10, 20, 30, 40)])
    assert averaged["epochs"][-1] == 30
    low = averaged["terms"]["graph"]["low"]
    assert (low[0], low[-1]) == (10, 30)


def test_histories_that_kept_other_epochs_are_interpolated():
    averaged = curves([((1, 3), {"graph": (0.0, 2.0)}), ((1, 2, 3), {"graph": (0.0, 3.0, 4.0)})])
    assert averaged["terms"]["graph"]["mean"] == [0, 2, 3]


def test_values_that_are_missing_do_not_count():
    averaged = curves([((1, 2, 3), {"graph": (1.0, None, None)}), ((1, 2, 3), {"graph": (3.0, 4.0, None)})])
    assert plain(averaged)["terms"]["graph"]["mean"] == [2, 4, None]


def test_terms_of_other_models_are_left_out():
    averaged = curves([((1, 2), {"graph": (0.0, 0.0), "prior": (None, None), "val_loss": (1.0, 0.5)})])
    assert list(averaged["terms"]) == ["val_loss"]


def test_a_long_curve_is_thinned():
    averaged = curves([(range(1, 2001), {"graph": tuple(map(float, range(2000)))})])
    epochs = averaged["epochs"]
    assert (epochs[0], epochs[-1]) == (1, 2000)
    assert len(epochs) <= CURVE_POINTS
    assert epochs[1] - epochs[0] < epochs[-1] - epochs[-2]


def test_a_history_without_epochs_has_no_curves():
    assert curves([((), {"graph": ()})]) == {"epochs": [], "terms": {}}


def test_bins_are_weighted_by_their_nodes():
    one = (Bin(0.0, 0.5, 0, 0.0, 0.0), Bin(0.5, 1.0, 30, 1.0, 0.8))
    other = (Bin(0.0, 0.5, 20, 0.5, 0.25), Bin(0.5, 1.0, 10, 0.6, 0.6))
    assert plain(pooled([one, other])) == [[0, 0.5, 10, 0.5, 0.25], [0.5, 1, 20, 0.9, 0.75]]
