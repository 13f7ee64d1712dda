from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import g3nn
from g3nn import FitResult


@pytest.fixture(scope="module")
def result(learnable) -> FitResult:
    return g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=3, eta=(1.0, 2.0, 3.0), device="cpu")


def test_one_entry_for_each_trial(result):
    assert result.trials == 3
    assert result.seeds == (0, 1, 2)
    for name in ("test_accuracy", "val_accuracy", "val_loss", "epochs", "best_epoch", "status", "probabilities"):
        assert len(getattr(result, name)) == 3, name
    assert result.history.shape == (3, len(result.history_names), 3)


def test_scores_are_shares(result):
    for scores in (result.test_accuracy, result.val_accuracy):
        assert scores.dtype == np.float64
        assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(result.probabilities.sum(2), 1, rtol=1e-5)


def test_json_says_what_the_result_says(result):
    written = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert written["hyperparameters"]["eta"] == [1.0, 2.0, 3.0]
    assert written["model"] == "sbm-gcn"
    assert written["epochs"] == [3, 3, 3]
    assert written["status"] == ["limit"] * 3
    for name in ("test_accuracy", "val_accuracy", "val_loss"):
        assert written[name] == pytest.approx(getattr(result, name).tolist(), abs=1e-6)
    assert written["seconds"] == pytest.approx(result.seconds, abs=1e-3)


def test_a_missing_number_is_null(result):
    holed = replace(result, val_loss=np.array([np.nan, np.inf, 0.5]), test_score=np.full(3, np.nan))
    written = json.loads(json.dumps(holed.to_json(), allow_nan=False))
    assert written["val_loss"] == [None, None, 0.5]
    assert written["test_accuracy"] == [None, None, None]


def test_in_one_line(result):
    known = replace(result, test_score=np.array([0.5, 0.6, 0.7]), dataset="toy", setting="hard")
    assert repr(known) == "FitResult(sbm-gcn [elbo] on toy hard: test 0.600 ± 0.100, 3 trials)"


def test_one_trial_in_one_line(result):
    single = replace(result, seeds=(4,), test_score=np.array([0.5]), dataset="toy", setting="hard")
    assert repr(single) == "FitResult(sbm-gcn [elbo] on toy hard: test 0.500 ± 0.000, 1 trial)"


def test_a_task_without_test_nodes_has_no_test_accuracy(learnable):
    task = learnable.with_split(learnable.train, learnable.val, np.array([], dtype=int))
    result = g3nn.fit(task, "gcn", trials=2, epochs=2, device="cpu")
    assert np.isnan(result.test_accuracy).all()
    assert result.to_json()["test_accuracy"] == [None, None]
