"""Learning curves and bins averaged over the trials of an experiment, or over the replicas of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from g3nn.graph.calibrate import Bin

CURVE_POINTS = 60
"""Epochs at which an averaged curve is kept. A small chart cannot show more, and the page would get heavy."""

History = tuple[Sequence[int], Mapping[str, Sequence[float | None]]]
"""The epochs at which the terms of a loss were kept, and the values of each term at those epochs."""


class Curves(TypedDict):
    """terms: the lowest, mean and highest values of each, by these words, at the `epochs`."""

    epochs: list[int]
    terms: dict[str, dict[str, list[float]]]


def curves(histories: Sequence[History]) -> Curves:
    """The mean, lowest and highest value of every term, up to the last epoch that half of the histories reached.

    A term that is zero throughout belongs to another model and is left out.
    """
    trained = [history for history in histories if history[0]]
    if not trained:
        return {"epochs": [], "terms": {}}
    epochs = _shared_epochs([kept for kept, _ in trained])
    terms = {}
    for name in trained[0][1]:
        values = np.ma.masked_invalid([_at(epochs, kept, own.get(name, ())) for kept, own in trained])
        if not np.ma.allequal(values, 0):
            bands = {"mean": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
            terms[name] = {band: kept.filled(np.nan).tolist() for band, kept in bands.items()}
    return {"epochs": epochs.tolist(), "terms": terms}


def pooled(trials: Sequence[Sequence[Bin]]) -> list[list[float]]:
    """[low, high, nodes per trial, accuracy, confidence] of each bin that holds a node in some trial."""
    merged: dict[tuple[float, float], list[Bin]] = {}
    for one in (one for bins in trials for one in bins if one.nodes):
        merged.setdefault((one.low, one.high), []).append(one)
    rows = []
    for (low, high), members in sorted(merged.items()):
        nodes = [one.nodes for one in members]
        accuracy = np.average([one.accuracy for one in members], weights=nodes)
        confidence = np.average([one.confidence for one in members], weights=nodes)
        rows.append([low, high, sum(nodes) / len(trials), float(accuracy), float(confidence)])
    return rows


def _shared_epochs(kept: Sequence[Sequence[int]]) -> np.ndarray:
    """From the first epoch to the last that half of the histories reached; denser early on, where losses move most."""
    reached = sorted((own[-1] for own in kept), reverse=True)
    first, last = min(own[0] for own in kept), reached[(len(reached) - 1) // 2]
    return np.unique(np.rint(first + (last - first) * np.linspace(0, 1, CURVE_POINTS) ** 1.5).astype(int))


def _at(epochs: np.ndarray, kept: Sequence[int], values: Sequence[float | None]) -> np.ndarray:
    """One curve at the shared epochs, NaN outside its own."""
    own = np.array(values, dtype=float)
    finite = np.isfinite(own)
    if not finite.any():
        return np.full(epochs.size, np.nan)
    at = np.array(kept, dtype=float)[: own.size]
    return np.interp(epochs, at[finite], own[finite], left=np.nan, right=np.nan)
