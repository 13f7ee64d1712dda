"""A tracker is told what a training records, all of it and once, and nothing depends on whether there is one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.errors import G3NNWarning, InputError
from g3nn.training import plan, tracking
from g3nn.training.tracking import MLflowTracker, TensorBoardTracker, Tracker


@dataclass
class Told:
    """One run, as it was told."""

    name: str
    options: dict[str, Any]
    rows: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    ends: list[Mapping[str, float] | None] = field(default_factory=list)

    def values(self, epoch: int, values: Mapping[str, float]) -> None:
        self.rows.append((epoch, dict(values)))

    def end(self, results: Mapping[str, float] | None) -> None:
        self.ends.append(results)

    def curve(self, name: str) -> list[float]:
        return [values.get(name, 0.0) for _, values in self.rows]


@dataclass
class Listener:
    runs: list[Told] = field(default_factory=list)

    def begin(self, name: str, options: Mapping[str, Any]) -> Told:
        self.runs.append(Told(name, dict(options)))
        return self.runs[-1]


@pytest.fixture(params=[0.0, 1e9], ids=["each epoch", "at the end"])
def interval(request, monkeypatch):
    """How often numbers are told: whenever there are some, or all together."""
    monkeypatch.setattr(tracking, "_EVERY", request.param)


SHORT: dict[str, Any] = {"epochs": 12, "patience": 3, "device": "cpu"}


@pytest.mark.usefixtures("interval")
def test_every_trial_is_told_as_its_history_has_it(learnable):
    listener = Listener()
    result = g3nn.fit(learnable, "sbm-gcn", trials=3, seed=7, lr=[0.01, 0.1, 0.3], track=listener, **SHORT)
    assert len({*result.epochs.tolist()}) > 1, "the trials should stop at different epochs"
    assert [run.name for run in listener.runs] == ["sbm-gcn seed 7", "sbm-gcn seed 8", "sbm-gcn seed 9"]
    for t, run in enumerate(listener.runs):
        assert (run.options["lr"], run.options["seed"]) == ([0.01, 0.1, 0.3][t], 7 + t)
        assert [epoch for epoch, _ in run.rows] == list(range(1, result.epochs[t] + 1))
        for k, name in enumerate(result.history_names):
            np.testing.assert_array_equal(np.float32(run.curve(name)), result.history[: result.epochs[t], k, t])
        (ended,) = run.ends
        assert ended == {
            "test_accuracy": result.test_score[t],
            "best_val_accuracy": result.val_score[t],
            "best_val_loss": result.val_loss[t],
            "best_epoch": result.best_epoch[t],
            "epochs": result.epochs[t],
        }


def test_the_loss_is_what_was_minimised(learnable, monkeypatch):
    """With weights of its own for each trial, and a warm-up."""
    losses = []
    advance = plan.Stack._update

    def recording(self, *rest):
        found = advance(self, *rest)
        losses.append(found[0].clone())
        return found

    monkeypatch.setattr(plan, "_REPLICAS_PER_STACK", {"cpu": 2})
    monkeypatch.setattr(plan, "replicas_that_fit", lambda epoch, device: 2)
    monkeypatch.setattr(plan.Stack, "_update", recording)
    listener = Listener()
    options = {"eta": [0.5, 3.0], "warm_up": 3, "laplacian_weight": [0.0, 0.2], "epochs": 5, "device": "cpu"}
    g3nn.fit(learnable, "sbm-gcn", trials=2, track=listener, **options)
    told = np.array([run.curve("loss") for run in listener.runs]).T
    np.testing.assert_allclose(told, torch.stack(losses).numpy(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("interval")
@pytest.mark.parametrize("options", [{}, {"ensemble": 2}, {"batch": 6, "fan_out": "4/4"}])
def test_a_training_that_is_tracked_gives_the_same_numbers(learnable, options):
    silent, heard = (
        g3nn.fit(learnable, "sbm-gcn", trials=2, track=track, **SHORT, **options) for track in (None, Listener())
    )
    for name in ("history", "test_score", "val_loss", "epochs", "best_epoch"):
        np.testing.assert_array_equal(getattr(heard, name), getattr(silent, name))
    assert torch.equal(heard.answers, silent.answers)
    for one, other in zip(heard.model.parameters(), silent.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_members_of_a_trial_are_one_run(learnable):
    listener = Listener()
    result = g3nn.fit(learnable, "gcn", trials=2, ensemble=2, track=listener, **SHORT)
    assert len(listener.runs) == 2
    for t, run in enumerate(listener.runs):
        np.testing.assert_array_equal(np.float32(run.curve("val_loss")), result.history[: len(run.rows), -2, t])


def test_terms_that_a_model_lacks_are_left_out_and_a_score_of_zero_is_not(learnable):
    listener = Listener()
    g3nn.fit(learnable, "gcn", track=listener, **SHORT)
    assert set(listener.runs[0].rows[0][1]) == {"loss", "supervised", "val_loss", "val_accuracy"}
    track = tracking.Runs(listener.runs, (0,), g3nn.Objective(), "accuracy", True)
    track._epoch(0, 99, {"loss": 0.0, "val_loss": math.nan, "val_accuracy": 0.0})
    assert listener.runs[0].rows[-1] == (99, {"val_accuracy": 0.0})


@pytest.mark.parametrize("step", ["values", "end"])
def test_a_tracker_that_fails_does_not_cost_the_training(learnable, monkeypatch, step):
    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(Told, step, fail)
    with pytest.warns(G3NNWarning, match="tracking has ended, training goes on: the disk is full") as notes:
        result = g3nn.fit(learnable, "gcn", trials=2, track=Listener(), **SHORT)
    assert len(notes) == 1
    np.testing.assert_array_equal(result.history, g3nn.fit(learnable, "gcn", trials=2, **SHORT).history)


def test_a_tracker_that_cannot_begin_is_an_error_before_training(learnable, monkeypatch):
    def fail(*_):
        raise OSError("no such server")

    monkeypatch.setattr(Listener, "begin", fail)
    monkeypatch.setattr(plan.Stack, "step", lambda _: pytest.fail("it trains"))
    with pytest.raises(InputError, match="track: got no such server"):
        g3nn.fit(learnable, "gcn", track=Listener(), **SHORT)


def test_an_interrupted_training_ends_its_runs(learnable, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(plan.Stack, "step", interrupt)
    listener = Listener()
    with pytest.raises(KeyboardInterrupt):
        g3nn.fit(learnable, "gcn", trials=2, track=listener, **SHORT)
    assert [run.ends for run in listener.runs] == [[None], [None]]


def test_a_training_that_goes_on_from_a_checkpoint_is_told_from_its_beginning(learnable, tmp_path, monkeypatch):
    options: dict[str, Any] = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0, "epochs": 6, "device": "cpu"}
    step = plan.Stack.step

    def until_third(stack):
        if stack.epoch == 3:
            raise KeyboardInterrupt
        step(stack)

    monkeypatch.setattr(plan.Stack, "step", until_third)
    with pytest.raises(KeyboardInterrupt):
        g3nn.fit(learnable, "gcn", **options)
    monkeypatch.setattr(plan.Stack, "step", step)
    listener = Listener()
    g3nn.fit(learnable, "gcn", track=listener, **options)
    assert [epoch for epoch, _ in listener.runs[0].rows] == [1, 2, 3, 4, 5, 6]


@pytest.mark.filterwarnings("ignore:.* validation nodes serve")
def test_an_estimator_tells_of_every_training_with_its_stage(learnable):
    known = np.isin(np.arange(learnable.num_nodes), [*learnable.train, *learnable.val])
    labels = np.where(known, learnable.labels, -1)
    listener = Listener()
    options: dict[str, Any] = {"model": "gcn", "ensemble": 2, "epochs": 3, "device": "cpu"}
    given = (learnable.features, labels, learnable.edges)
    heard = g3nn.G3NNClassifier(**options).fit(*given, val=learnable.val, track=listener)
    silent = g3nn.G3NNClassifier(**options).fit(*given, val=learnable.val)
    assert np.array_equal(heard.predict_proba(), silent.predict_proba())
    assert [run.name[:3] for run in listener.runs] == [f"{n:03d}" for n in range(1, len(listener.runs) + 1)]
    assert listener.runs[0].name.startswith("001 training the model gcn seed ")
    assert [run.options["stage"] for run in listener.runs] == ["training the model"] * 2
    assert all(len(run.ends) == 1 and run.ends[0] for run in listener.runs)


@pytest.mark.filterwarnings("ignore:.* validation nodes")
def test_an_estimator_goes_on_without_a_tracker_that_is_lost(learnable, monkeypatch):
    begin = Listener.begin

    def once(listener, *rest):
        if listener.runs:
            raise OSError("the server is gone")
        return begin(listener, *rest)

    monkeypatch.setattr(Listener, "begin", once)
    labels = np.where(np.isin(np.arange(60), learnable.train), learnable.labels, -1)
    clf = g3nn.G3NNClassifier("gcn", ensemble=2, epochs=2, device="cpu")
    with pytest.warns(G3NNWarning, match="tracking has ended, training goes on: the server is gone") as notes:
        clf.fit(learnable.features, labels, learnable.edges, track=Listener())
    assert len([note for note in notes if "tracking" in str(note.message)]) == 1
    assert clf.predict().shape == (60,)


@pytest.mark.parametrize("given", ["tensorboard", "wandb:runs", 3])
def test_an_unknown_tracker_is_refused(learnable, given):
    with pytest.raises(InputError, match=r"track: got .*; expected tensorboard:FOLDER, mlflow:URI or a"):
        g3nn.fit(learnable, "gcn", track=given, **SHORT)


@pytest.mark.parametrize(("kind", "package"), [("tensorboard", "tensorboard"), ("mlflow", "mlflow")])
def test_a_package_that_is_missing_is_named_before_training(learnable, monkeypatch, tmp_path, kind, package):
    monkeypatch.setattr("g3nn.training.tracking.find_spec", lambda name: None if name == package else object())
    with pytest.raises(InputError, match=rf"package {package} is not installed.*pip install 'g3nn\[track\]'"):
        g3nn.fit(learnable, "gcn", track=f"{kind}:{tmp_path}", **SHORT)


def test_tensorboard_reads_what_was_told(learnable, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    where = f"tensorboard:{tmp_path / 'runs'}"
    result = g3nn.fit(learnable, "sbm-gcn", trials=2, track=where, **SHORT)
    g3nn.fit(learnable, "sbm-gcn", track=where, **SHORT)
    found = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert found == ["sbm-gcn-seed-0", "sbm-gcn-seed-0-2", "sbm-gcn-seed-1"]
    for t in range(2):
        read = EventAccumulator(str(tmp_path / "runs" / f"sbm-gcn-seed-{t}"))
        read.Reload()
        for k, name in enumerate(result.history_names):
            curve = result.history[: result.epochs[t], k, t]
            if curve.any():
                events = read.Scalars(name)
                assert [event.step for event in events] == list(range(1, len(curve) + 1))
                np.testing.assert_array_equal(np.float32([event.value for event in events]), curve)
        assert read.Scalars("loss")[0].value > 0
        assert read.Scalars("test_accuracy")[0].value == np.float32(result.test_score[t])
        assert "_hparams_/experiment" in read.summary_metadata


@pytest.fixture
def no_messages(monkeypatch):
    """MLflow tells its makers nothing from here."""
    for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.setitem(os.environ, name, "true")


@pytest.mark.slow
@pytest.mark.usefixtures("no_messages")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_mlflow_reads_what_was_told(learnable, tmp_path):
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    result = g3nn.fit(learnable, "gcn", trials=2, lr=[0.01, 0.1], track=MLflowTracker(uri, every=2), **SHORT)
    client = MlflowClient(uri)
    (experiment,) = client.search_experiments(filter_string="name = 'g3nn'")
    runs = {run.data.params["seed"]: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["0", "1"]
    for t in range(2):
        run = runs[str(t)]
        assert (run.info.run_name, run.info.status) == (f"gcn seed {t}", "FINISHED")
        assert float(run.data.params["lr"]) == [0.01, 0.1][t]
        assert run.data.metrics["test_accuracy"] == result.test_score[t]
        points = client.get_metric_history(run.info.run_id, "val_loss")
        epochs = [1, *range(2, result.epochs[t] + 1, 2)]
        assert [point.step for point in points] == epochs
        assert [np.float32(point.value) for point in points] == [result.history[e - 1, -2, t] for e in epochs]


def test_the_trackers_are_trackers():
    pytest.importorskip("mlflow")
    assert isinstance(TensorBoardTracker("runs"), Tracker)
    assert isinstance(MLflowTracker(), Tracker)
