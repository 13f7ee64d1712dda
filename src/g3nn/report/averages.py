"""The evidence of several trials as one: what a page draws, small enough to be embedded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from g3nn.experiments.records import Bin, Evidence

CURVE_POINTS = 60
"""Epochs at which an averaged curve is kept. More than a small chart can show would only make the page heavy."""


def average(trials: Sequence[Evidence]) -> dict[str, Any]:
    """Curves, bins, confusion and scores over all trials, as plain types. Empty where there is no trial."""
    if not trials:
        return {}
    return {
        "test_nodes": trials[0].test_nodes,
        "scores": {name: _mean([getattr(one, name) for one in trials]) for name in ("ece", "brier", "nll")},
        "curves": curves(trials),
        "reliability": pooled(one.reliability for one in trials),
        "degrees": pooled(one.degrees for one in trials),
        "confusion": [[tidy(value) for value in row] for row in _mean_confusion(trials)],
    }


def curves(trials: Sequence[Evidence]) -> dict[str, Any]:
    """Mean, lowest and highest value of every term, as long as at least half of the trials run.

    A term that is zero throughout belongs to another model and is left out.
    """
    trained = [one for one in trials if one.epochs]
    if not trained:
        return {"epochs": [], "terms": {}}
    epochs = _shared_epochs(trained)
    terms = {}
    for name in trained[0].curves:
        values = np.ma.masked_invalid([_at(epochs, one, name) for one in trained])
        if np.ma.allequal(values, 0):
            continue
        terms[name] = {
            "mean": [tidy(value) for value in values.mean(axis=0).filled(np.nan)],
            "low": [tidy(value) for value in values.min(axis=0).filled(np.nan)],
            "high": [tidy(value) for value in values.max(axis=0).filled(np.nan)],
        }
    return {"epochs": [int(epoch) for epoch in epochs], "terms": terms}


def pooled(trials: Iterable[Sequence[Bin]]) -> list[list[float | None]]:
    """[low, high, nodes per trial, accuracy, confidence] of each bin that holds a node in some trial."""
    merged: dict[tuple[float, float], list[Bin]] = {}
    number = 0
    for bins in trials:
        number += 1
        for one in bins:
            if one.nodes:
                merged.setdefault((one.low, one.high), []).append(one)
    rows = []
    for (low, high), members in sorted(merged.items()):
        nodes = [one.nodes for one in members]
        accuracy = np.average([one.accuracy for one in members], weights=nodes)
        confidence = np.average([one.confidence for one in members], weights=nodes)
        rows.append([tidy(value) for value in (low, high, sum(nodes) / number, accuracy, confidence)])
    return rows


def tidy(value: float | None, digits: int = 4) -> float | None:
    """The value with few digits, or None where it is not a number that JSON knows."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def _shared_epochs(trials: Sequence[Evidence]) -> np.ndarray:
    """Up to the last epoch that half of the trials reached; denser at the start, where a loss moves most."""
    reached = sorted((one.epochs[-1] for one in trials), reverse=True)
    first, last = min(one.epochs[0] for one in trials), reached[(len(reached) - 1) // 2]
    return np.unique(np.rint(first + (last - first) * np.linspace(0, 1, CURVE_POINTS) ** 1.5).astype(int))


def _at(epochs: np.ndarray, trial: Evidence, name: str) -> np.ndarray:
    """One trial's curve at the shared epochs, NaN outside of its own."""
    values = np.array(trial.curves.get(name, ()), dtype=float)
    own = np.array(trial.epochs, dtype=float)[: values.size]
    known = np.isfinite(values)
    if not known.any():
        return np.full(epochs.size, np.nan)
    return np.interp(epochs, own[known], values[known], left=np.nan, right=np.nan)


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return tidy(sum(known) / len(known)) if known else None


def _mean_confusion(trials: Sequence[Evidence]) -> np.ndarray:
    return np.mean([one.confusion for one in trials], axis=0)
