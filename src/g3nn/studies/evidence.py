"""What a training leaves behind: its scores, and of a trial also calibration, curves, and where it errs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from g3nn.graph.calibrate import (
    brier_score,
    degree_bins,
    expected_calibration_error,
    negative_log_likelihood,
    reliability_bins,
)
from g3nn.graph.task import NodeTask
from g3nn.studies.records import Evidence, Point, Record
from g3nn.training import FitResult

MOST_EPOCHS = 60
"""Epochs at which the terms of the loss are kept: enough to draw a curve."""

DEGREE_BINS = 6
"""Bins of degree: 0, 1, 2, 3 to 4, 5 to 8, and 9 or more."""


def evidence(result: FitResult, task: NodeTask) -> list[Evidence | None]:
    """For each trial; None for a trial that never reached a finite loss. `task` holds the test labels."""
    return [_of_trial(result, task, t) if result.best_epoch[t] > 0 else None for t in range(result.trials)]


def _of_trial(result: FitResult, task: NodeTask, t: int) -> Evidence:
    epochs = kept_epochs(int(result.epochs[t]), int(result.best_epoch[t]))
    history = result.history[np.array(epochs) - 1, :, t]
    curves = {name: [finite(value) for value in history[:, k]] for k, name in enumerate(result.history_names)}
    return of_answers(result.probabilities[t], task, epochs, curves)


def of_answers(
    probabilities: np.ndarray,
    task: NodeTask,
    epochs: Sequence[int] = (),
    curves: Mapping[str, list[float | None]] | None = None,
    figures: Mapping[str, float] | None = None,
) -> Evidence:
    """From the answers (n, K) of whatever model."""
    answers, labels = probabilities[task.test].astype(np.float64), task.labels[task.test]
    return Evidence(
        test_nodes=len(labels),
        # A probability that was rounded to zero counts as the smallest positive number.
        nll=negative_log_likelihood(np.log(np.maximum(answers, np.finfo(np.float32).tiny)), labels),
        ece=expected_calibration_error(answers, labels),
        brier=brier_score(answers, labels),
        epochs=list(epochs),
        curves=curves or {},
        reliability=reliability_bins(answers, labels),
        degrees=degree_bins(answers, labels, degrees(task)[task.test], DEGREE_BINS),
        confusion=_confusion(answers, labels, task.num_classes),
        figures=figures or {},
    )


def scored(
    answers: np.ndarray,
    task: NodeTask,
    point: Point,
    stage: str,
    figures: Mapping[str, float] | None = None,
    **ended: Any,
) -> Record:
    """The record of answers (n, K) of whatever model. figures: of a trial. ended: the other fields of a record."""
    right, trial = answers.argmax(1) == task.labels, stage == "trial"
    held_out = np.log(np.maximum(answers[task.val], np.finfo(np.float32).tiny))
    return Record(
        point=point,
        stage=stage,
        val_loss=finite(negative_log_likelihood(held_out, task.labels[task.val])),
        val_accuracy=float(right[task.val].mean()),
        test_accuracy=float(right[task.test].mean()) if trial else None,
        evidence=of_answers(answers, task, figures=figures) if trial else None,
        **ended,
    )


def kept_epochs(last: int, best: int) -> list[int]:
    """At most `MOST_EPOCHS` of the epochs 1 to `last`, evenly spaced, including the first, the last and the best."""
    spaced = np.linspace(1, last, min(last, MOST_EPOCHS - 1)).round().astype(np.int64)
    return sorted({*spaced.tolist(), best})


def degrees(task: NodeTask) -> np.ndarray:
    """(n,): the number of edges at each node, in either direction."""
    return np.bincount(task.edges.ravel(), minlength=task.num_nodes)


def _confusion(answers: np.ndarray, labels: np.ndarray, K: int) -> list[list[int]]:
    counts: list[list[int]] = np.bincount(labels * K + answers.argmax(1), minlength=K * K).reshape(K, K).tolist()
    return counts


def finite(value: float) -> float | None:
    """None, which JSON and SQLite know, for a number that is not finite."""
    return float(value) if math.isfinite(value) else None
