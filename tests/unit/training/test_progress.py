from __future__ import annotations

import logging
import signal
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
    told = []
    course = progress.Course(lambda *words: told.append(words))
    course.stage("trying models", 0.6, 2)
    with course.training(100) as watch:
        for epoch in (50, 10, 60):
            watch(at_epoch(epoch), 0)
    course.stage("training the best model", 1.0, 1)
    assert [at for _, at in told] == pytest.approx([0.0, 0.15, 0.15, 0.18, 0.3, 0.6])
    assert [words for words, _ in told] == ["trying models"] * 5 + ["training the best model"]


def test_lines_where_there_is_no_terminal(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "g3nn")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    for show in (True, False):
        with progress.course(show) as course:
            course.stage("trying models", 0.5, 1)
            with course.training(100) as watch:
                watch(at_epoch(50), 0)
    assert caplog.messages == [f"trying models: {share}% of the fit after 0 s" for share in (0, 25, 50)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_training_ends_at_its_next_step_and_a_second_signal_ends_all(number):
    before, course = signal.getsignal(number), progress.Course()
    with progress.interruptible() as asked, course.training(100) as watch:
        signal.raise_signal(number)
        with pytest.raises(progress.Interrupted):
            watch(at_epoch(1), 0)
        try:
            watch(at_epoch(2), 0)
        except KeyboardInterrupt:
            pytest.fail("what comes afterwards is not interrupted")  # Which would end pytest itself.
        assert asked == [number]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert (asked, signal.getsignal(number)) == ([], before)


def test_what_was_learned_may_be_kept_in_one_stage():
    course = progress.Course()
    course.stage("training the model", 0.5, 1, keeps=True)
    with progress.interruptible(), course.training(100) as watch:
        watch(at_epoch(1), 0)
        assert not course.over
        signal.raise_signal(signal.SIGTERM)
        watch(at_epoch(2), 0)
        assert (course.over, course.interrupted) == (True, True)
    course.stage("training on all labels", 1.0, 1)
    assert (course.over, course.interrupted) == (False, True), "another stage goes to its end"
