"""Fits with so few labels that some classes, or all, have none to validate on."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import G3NNRegressor, load_model
from g3nn.estimator.search import Search


def labels(graph, *counts):
    """So many labels of each class."""
    y = np.full(len(graph.truth), -1)
    for k, count in enumerate(counts):
        y[np.flatnonzero(graph.truth == k)[:count]] = k
    return y


def test_a_single_label_stays_for_training(graph, quick):
    fitted = quick(epochs=3).fit(graph.X, labels(graph, 1, 5, 5), graph.edges)
    assert set(graph.truth[fitted.val_nodes_]) == {1, 2}
    assert set(graph.truth[fitted.task_.train]) == {0, 1, 2}


def test_one_label_per_class(graph, quick, tmp_path):
    with pytest.warns(G3NNWarning, match="validate on: sbm-appnp, which suits few labels, was trained for 40 epochs"):
        fitted = quick(model="auto").fit(graph.X, labels(graph, 1, 1, 1), graph.edges)
    assert (fitted.model_, fitted.n_iter_, fitted.temperature_, fitted.n_validation_) == ("sbm-appnp", 40, 1.0, 0)
    assert fitted.predict_set().all()
    # Nothing was validated: as probable as not, nothing was learned.
    assert 0.5 < fitted.predict_proba().max() <= 0.5 + 0.5 / 3 + 1e-6
    assert fitted.score(None, graph.truth) > 0.5
    fitted.save(tmp_path / "model")
    np.testing.assert_allclose(load_model(tmp_path / "model").predict_proba(), fitted.predict_proba(), atol=1e-6)


def test_no_validation_trains_on_every_label(graph, quick):
    with pytest.warns(G3NNWarning, match="validate on: sbm-gcn was trained for 3 epochs"):
        fitted = quick(validation=0, epochs=3, refit=True).fit(graph.X, graph.truth, graph.edges)
    assert len(fitted.task_.train) == 150
    numbers = G3NNRegressor("gcn", validation=0, epochs=3, ensemble=1, device="cpu")
    with pytest.warns(G3NNWarning, match="validate on: gcn was trained"):
        numbers.fit(graph.X, graph.X[:, 0], graph.edges)
    assert np.isinf(numbers.predict_interval()).all()


def test_the_model_asked_for_is_never_exchanged(graph, quick, monkeypatch):
    monkeypatch.setattr(Search, "panel", None)
    monkeypatch.setattr(Search, "alone", None)
    with pytest.warns(G3NNWarning, match="validate on: mlp was trained"):
        assert quick(model="mlp", validation=0.0, epochs=1).fit(graph.X, graph.y, graph.edges).model_ == "mlp"


@pytest.mark.parametrize("share", [False, -0.1, 1, "0"])
def test_other_shares_are_refused(graph, quick, share):
    with pytest.raises(InputError, match="validation"):
        quick(validation=share).fit(graph.X, graph.y, graph.edges)
