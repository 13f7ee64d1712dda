from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rich.progress

import g3nn
from g3nn.training import progress
from g3nn.training.stack import HISTORY_NAMES


@pytest.fixture
def shown(monkeypatch) -> list[dict[str, Any]]:
    """Every update of a bar."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(rich.progress.Progress, "update", lambda bar, job, **fields: calls.append(fields))
    return calls


def at_epoch(epoch: int) -> Any:
    return SimpleNamespace(epoch=epoch, latest={name: float(index) for index, name in enumerate(HISTORY_NAMES)})


@pytest.mark.parametrize(
    ("show", "terminal", "visible"),
    [(True, False, True), (True, True, True), (None, True, True), (None, False, False), (False, True, False)],
)
def test_a_bar_is_shown_where_somebody_is_watching(monkeypatch, shown, show, terminal, visible):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress.monitor("sbm-gcn", 3, show) as watch:
        watch(at_epoch(10), 0)
    assert bool(shown) == visible


def test_the_bar_counts_finished_trials_and_shows_the_terms(shown):
    with progress.monitor("sbm-gcn", 3, True) as watch:
        watch(at_epoch(7), 2)
    (call,) = shown
    assert call["advance"] == 2
    terms = call["terms"]
    assert "epoch 7 " in terms
    for name in ("graph", "supervised", "val_loss", "val_score"):
        assert f"{HISTORY_NAMES.index(name):.2f}" in terms


def test_the_bar_is_not_redrawn_in_every_epoch(shown):
    with progress.monitor("sbm-gcn", 3, True) as watch:
        for epoch in range(1, 31):
            watch(at_epoch(epoch), 0)
    assert len(shown) == 3


def test_training_counts_every_trial_once(shown, learnable):
    watched = g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=12, patience=2, device="cpu", progress=True)
    assert sum(call["advance"] for call in shown) == 3
    silent = g3nn.fit(learnable, "sbm-gcn", trials=3, epochs=12, patience=2, device="cpu", progress=False)
    np.testing.assert_array_equal(watched.history, silent.history)


def test_nothing_is_printed_where_nobody_is_watching(learnable, capsys):
    g3nn.fit(learnable, "gcn", epochs=2, device="cpu")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_the_bar_leaves_standard_output_alone(learnable, capsys):
    g3nn.fit(learnable, "gcn", epochs=2, device="cpu", progress=True)
    assert capsys.readouterr().out == ""


def test_without_a_log_words_go_to_standard_error_and_with_one_only_there(monkeypatch, capsys, caplog):
    with caplog.at_level(logging.INFO, "g3nn"):
        progress.say("heard by the log")
    assert capsys.readouterr().err == ""
    assert caplog.messages == ["heard by the log"]
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda _: False)
    progress.say("nobody set up a log")
    assert capsys.readouterr().err == "nobody set up a log\n"


def test_a_training_that_stops_early_or_begins_again_moves_the_bar_forward_only():
    bar = rich.progress.Progress()
    course = progress.Course(bar)
    course.stage("trying models", 0.6, 2)
    at = []
    with course.training(100) as watch:
        for epoch in (50, 10, 60):
            watch(at_epoch(epoch), 0)
            at.append(bar.tasks[0].completed)
    assert at == pytest.approx([0.15, 0.15, 0.18])
    assert bar.tasks[0].completed == pytest.approx(0.3)
    course.stage("training the best model", 1.0, 1)
    assert bar.tasks[0].completed == pytest.approx(0.6)
    assert bar.tasks[0].description == "training the best model"
