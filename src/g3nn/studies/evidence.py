"""What a trial leaves behind beside its accuracy: calibration, curves, and where it errs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from g3nn.graph import calibrate
from g3nn.graph.task import NodeTask
from g3nn.studies.records import Evidence
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
    answers, labels, K = probabilities[task.test].astype(np.float64), task.labels[task.test], task.num_classes
    return Evidence(
        test_nodes=len(labels),
        # A probability that was rounded to zero counts as the smallest positive number.
        nll=calibrate.negative_log_likelihood(np.log(np.maximum(answers, np.finfo(np.float32).tiny)), labels),
        ece=calibrate.expected_calibration_error(answers, labels),
        brier=calibrate.brier_score(answers, labels),
        epochs=list(epochs),
        curves=curves or {},
        reliability=calibrate.reliability_bins(answers, labels),
        degrees=calibrate.degree_bins(answers, labels, degrees(task)[task.test], DEGREE_BINS),
        confusion=np.bincount(labels * K + answers.argmax(1), minlength=K * K).reshape(K, K).tolist(),
        figures=figures or {},
    )


def kept_epochs(last: int, best: int) -> list[int]:
    """At most `MOST_EPOCHS` of the epochs 1 to `last`, evenly spaced, including the first, the last and the best."""
    spaced = np.linspace(1, last, min(last, MOST_EPOCHS - 1)).round().astype(np.int64)
    return sorted({*spaced.tolist(), best})


def degrees(task: NodeTask) -> np.ndarray:
    """(n,): the number of edges at each node, in either direction."""
    return np.bincount(task.edges.ravel(), minlength=task.num_nodes)


def finite(value: float) -> float | None:
    """None for a number that is not finite: neither JSON nor SQLite can hold it."""
    return float(value) if math.isfinite(value) else None
