"""scikit-learn's own checks of an estimator: each passes, or is listed here with the reason why it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

import g3nn
from g3nn.estimator import GraphEstimator

BOTH = {
    "check_dtype_object": "wants a TypeError for cells that are no numbers; all bad input is an InputError",
    "check_n_features_in_after_fitting": "wants its own words; ours name both numbers of columns too",
    "check_sample_weight_equivalence_on_dense_data": "a node that is repeated may validate, one that weighs 2 may not",
    "check_sample_weight_equivalence_on_sparse_data": "a node that is repeated may validate, one that weighs 2 may not",
    "check_supervised_y_2d": "wants one column to be flattened; columns are tags or several numbers",
}
SETTINGS: dict[type[GraphEstimator], dict[str, Any]] = {
    g3nn.G3NNClassifier: {"epochs": 20, "hidden": 32},
    g3nn.G3NNRegressor: {"epochs": 50, "hidden": 64},
}
"""About as little as learns what the checks ask for."""
CANNOT_PASS: dict[type[GraphEstimator], dict[str, str]] = {
    g3nn.G3NNClassifier: {**BOTH, "check_classifiers_classes": "wants -1 to be a class; it is an unknown label"},
    g3nn.G3NNRegressor: BOTH,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
@pytest.mark.parametrize("kind", CANNOT_PASS, ids=lambda kind: kind.__name__)
def test_scikit_learn_agrees(kind: Any):
    tiny = kind("mlp", ensemble=1, lr=0.1, device="cpu", **SETTINGS[kind])
    ended = check_estimator(tiny, expected_failed_checks=CANNOT_PASS[kind], on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in ended if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in ended if one["status"] == "xfail"} == set(CANNOT_PASS[kind])
    assert not [one for one in ended if one["expected_to_fail"] and one["status"] == "passed"]
