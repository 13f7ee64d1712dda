"""Keeping the last parameters instead of the best, and taking results apart and putting them together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.model.generative import GenerativeModel
from g3nn.training import FitResult

QUICK = {"device": "cpu", "progress": False, "patience": 3}


def test_the_last_parameters_are_kept_after_all_epochs(learnable):
    last = g3nn.fit(learnable, "sbm-gcn", trials=2, epochs=25, keep="last", **QUICK)
    assert last.epochs.tolist() == last.best_epoch.tolist() == [25, 25]
    assert last.status == ("limit", "limit")
    # The same trainings with early stopping out of reach pass the same point: their records agree.
    longer = g3nn.fit(learnable, "sbm-gcn", trials=2, epochs=40, keep="last", **QUICK)
    np.testing.assert_array_equal(longer.history[:25], last.history)
    np.testing.assert_array_equal(last.val_loss, last.history[-1, last.history_names.index("val_loss")])
    assert not np.array_equal(longer.probabilities, last.probabilities)


def test_without_validation_nodes_nothing_is_predicted_before_the_end(learnable, monkeypatch):
    asked, predict = [], GenerativeModel.predict_log_prob
    monkeypatch.setattr(GenerativeModel, "predict_log_prob", lambda *given: asked.append(1) or predict(*given))
    given = {"epochs": 5, "keep": "last", **QUICK}
    blind = g3nn.fit(replace(learnable, val=learnable.val[:0]), "sbm-gcn", **given)
    assert len(asked) == 1
    np.testing.assert_array_equal(blind.probabilities, g3nn.fit(learnable, "sbm-gcn", **given).probabilities)
    assert np.isnan(blind.val_loss).all()


def test_the_best_are_kept_unless_asked(learnable):
    best = g3nn.fit(learnable, "sbm-gcn", trials=2, epochs=60, **QUICK)
    lowest = np.nanmin(best.history[:, best.history_names.index("val_loss")], axis=0)
    np.testing.assert_allclose(best.val_loss, lowest, rtol=1e-6)


@pytest.fixture(scope="module")
def result(learnable):
    return g3nn.fit(learnable, "sbm-gcn", trials=4, epochs=30, ensemble=2, eta=(0.5, 1.0, 1.5, 2.0), **QUICK)


def assert_same(one, two):
    for name in ("test_score", "val_score", "val_loss", "epochs", "best_epoch", "history", "probabilities"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.seeds, one.status) == (two.seeds, two.status)
    assert all(map(torch.equal, one.model.state_dict().values(), two.model.state_dict().values()))


def test_selecting_and_joining_are_inverse(result):
    parts = result.select([0, 1]), result.select([2, 3])
    assert_same(FitResult.join(parts), result)


def test_selected_trials_are_those_of_the_result(result):
    part = result.select([3, 1])
    assert part.seeds == (result.seeds[3], result.seeds[1])
    assert part.hyperparameters["eta"] == [2.0, 1.0]
    np.testing.assert_array_equal(part.val_loss, result.val_loss[[3, 1]])
    weights, whole = (next(iter(one.model.state_dict().values())) for one in (part, result))
    torch.testing.assert_close(weights, whole[[6, 7, 2, 3]], rtol=0, atol=0)


def test_a_score_that_is_no_accuracy_says_so():
    task = g3nn.synthetic_values("real", nodes=80, features=3, labelled=0.4, val=20, seed=1)
    numbers = g3nn.fit(task, "gcn", epochs=3, **QUICK)
    with pytest.raises(AttributeError, match=r"no test_accuracy: outcome 'real' is scored by R².*test_score"):
        numbers.test_accuracy  # noqa: B018
    assert {"test_r2", "val_r2"} <= set(numbers.to_json())
