"""Saved models with parts that other packages offer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from number_graph import known_numbers
from offered import offer

import g3nn
from g3nn.base.errors import DataError, InputError
from g3nn.estimator import G3NNClassifier, G3NNRegressor, load_model
from g3nn.graph.outcomes import OUTCOMES, Real
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.likelihoods.gsbm import StochasticBlock
from g3nn.testing import checks


class HubBlock(StochasticBlock):
    """As if it were something new."""


@dataclass(frozen=True)
class Prices(Real):
    """As if they were something new."""

    name: ClassVar[str] = "prices"
    score_key: ClassVar[str] = "fit"


@pytest.fixture
def saved(learnable, tmp_path, monkeypatch):
    """A folder with a model whose likelihood another package offers."""
    with monkeypatch.context() as patch:
        offer(patch, LIKELIHOODS, "hub", HubBlock)
        labels = np.where(np.isin(np.arange(60), learnable.test), -1, learnable.labels)
        clf = G3NNClassifier("hub-mlp", ensemble=1, epochs=2, device="cpu")
        clf.fit(learnable.features, labels, learnable.edges, val=learnable.val)
        clf.save(tmp_path / "model")
    return tmp_path / "model", clf.predict_proba()


def test_a_model_loads_where_the_package_is_installed(saved, monkeypatch):
    folder, answers = saved
    assert json.loads((folder / "model.json").read_text())["packages"] == [["likelihood", "hub", "hubs", "1.2"]]
    offer(monkeypatch, LIKELIHOODS, "hub", HubBlock)
    loaded = load_model(folder)
    assert loaded.model_ == "hub-mlp"
    np.testing.assert_array_equal(loaded.predict_proba(), answers)


def test_a_model_says_what_to_install_where_it_is_not(saved, run_command):
    folder, _ = saved
    told = f"{folder}: the model needs the likelihood 'hub' of hubs 1.2, not found here. Install it: pip install hubs"
    with pytest.raises(DataError) as caught:
        load_model(folder)
    assert str(caught.value) == told
    ended = run_command("predict", str(folder), "--nodes", "new.csv", "--out", "answers.csv")
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_an_outcome_of_another_package_keeps_its_contract_and_is_saved(tmp_path, monkeypatch):
    task = g3nn.synthetic_values(nodes=80, degree=4, features=5, labelled=0.4, val=20, seed=2)
    with monkeypatch.context() as patch:
        offer(patch, OUTCOMES, "prices", Prices)
        for check in checks(Prices, labels={Prices: lambda n, K: np.arange(n * K).reshape(n, K) % 7 * 1.5}):
            check()
        regressor = G3NNRegressor("near-gcn", outcome="prices", ensemble=1, epochs=2, device="cpu")
        regressor.fit(task.features, known_numbers(task)[:, 0], task.edges, val=task.val)
        regressor.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert (loaded.outcome, loaded.task_.kind) == ("prices", Prices)
        np.testing.assert_array_equal(loaded.predict(), regressor.predict())
    with pytest.raises(DataError, match=r"needs the outcome 'prices' of hubs 1\.2, not found here"):
        load_model(tmp_path / "model")
    with pytest.raises(InputError, match="outcome: got 'prices'; expected real or counts"):
        regressor.fit(task.features, known_numbers(task)[:, 0], task.edges)


def test_a_part_without_a_name_cannot_be_saved_and_says_how_it_could(learnable, tmp_path):
    model = g3nn.ModelSpec(posterior="mlp", likelihood=HubBlock)
    labels = np.where(np.isin(np.arange(60), learnable.test), -1, learnable.labels)
    clf = G3NNClassifier(model, ensemble=1, epochs=2, device="cpu")
    clf.fit(learnable.features, labels, learnable.edges, val=learnable.val)
    with pytest.raises(
        InputError, match=r"HubBlock, a part of your own.*packages that register it: see docs/extending"
    ):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
