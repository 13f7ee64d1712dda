"""What a trial leaves behind beyond its accuracy: calibration, curves, and where it errs."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from g3nn.calibrate import brier_score, expected_calibration_error, reliability_bins
from g3nn.experiments.records import Bin, Evidence
from g3nn.task import NodeTask
from g3nn.training import FitResult

MOST_EPOCHS = 60
"""Epochs of which the terms are kept: enough to draw a curve."""

DEGREES = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, None))
"""Test nodes are told apart by their number of neighbours, from the first to the second, both included."""


def evidence(result: FitResult, task: NodeTask) -> list[Evidence | None]:
    """One for each trial; None for a trial that never reached a finite loss. `task` holds the test labels."""
    return [_one(result, task, t) if result.best_epoch[t] > 0 else None for t in range(result.trials)]


def _one(result: FitResult, task: NodeTask, t: int) -> Evidence:
    answers, labels = result.probabilities[t, task.test].astype(np.float64), task.labels[task.test]
    epochs = kept_epochs(int(result.epochs[t]), int(result.best_epoch[t]))
    history = result.history[np.array(epochs) - 1, :, t]
    curves = {name: tuple(map(_known, history[:, k].tolist())) for k, name in enumerate(result.history_names)}
    return Evidence(
        test_nodes=len(labels),
        nll=_mean_surprise(answers, labels),
        ece=expected_calibration_error(answers, labels),
        brier=brier_score(answers, labels),
        epochs=epochs,
        curves=curves,
        reliability=tuple(Bin(**asdict(part)) for part in reliability_bins(answers, labels)),
        degrees=_by_degree(answers, labels, degrees(task)[task.test]),
        confusion=_confusion(answers, labels, task.num_classes),
    )


def kept_epochs(last: int, best: int) -> tuple[int, ...]:
    """At most `MOST_EPOCHS` of the epochs 1 .. last, evenly spaced, the first, the last and the best among them."""
    spaced = np.linspace(1, last, min(last, MOST_EPOCHS - 1)).round().astype(np.int64)
    return tuple(sorted({*spaced.tolist(), best}))


def degrees(task: NodeTask) -> np.ndarray:
    """(n,): the number of edges at each node, whatever their direction."""
    return np.bincount(task.edges.ravel(), minlength=task.num_nodes)


def _mean_surprise(answers: np.ndarray, labels: np.ndarray) -> float:
    """Mean of - log p(label). What was rounded to zero counts as the smallest number there is."""
    wanted = answers[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(wanted, np.finfo(np.float32).tiny)).mean())


def _by_degree(answers: np.ndarray, labels: np.ndarray, degree: np.ndarray) -> tuple[Bin, ...]:
    """The bins that hold a node. The last one ends at the highest degree there is."""
    right, confidence = answers.argmax(1) == labels, answers.max(1)
    bins = []
    for low, high in DEGREES:
        top = int(degree.max(initial=low)) if high is None else high
        inside = (degree >= low) & (degree <= top)
        if inside.any():
            means = float(right[inside].mean()), float(confidence[inside].mean())
            bins.append(Bin(low, top, int(inside.sum()), *means))
    return tuple(bins)


def _confusion(answers: np.ndarray, labels: np.ndarray, K: int) -> tuple[tuple[int, ...], ...]:
    counts = np.bincount(labels * K + answers.argmax(1), minlength=K * K).reshape(K, K)
    return tuple(map(tuple, counts.tolist()))


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
