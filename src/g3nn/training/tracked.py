"""What a tracker is told of a training: every trial is a run, with the numbers that are recorded anyway."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from g3nn.base.errors import G3NNError, G3NNWarning, Problems
from g3nn.model.objective import TERM_NAMES, Objective
from g3nn.model.replicas import Replicas
from g3nn.training.result import FitResult
from g3nn.training.stack import HISTORY_NAMES, Stack
from g3nn.training.tracking import Run, Tracker

_EVERY = 1.0
"""Seconds between two looks, at least."""


class Runs:
    """The runs of the trials of one fit. A tracker that fails is left alone, and training goes on."""

    def __init__(
        self, runs: Sequence[Run], seeds: tuple[int, ...], objective: Objective, score: str, live: bool
    ) -> None:
        self._runs = list(runs)
        self._live = live
        self._warm_up = objective.warm_up
        self._weights = objective.weights(Replicas(seeds), dtype=torch.float64)
        self._names = ("loss", *HISTORY_NAMES[:-1], f"val_{score}")
        self._told = [0] * len(seeds)
        self._used: list[set[str]] = [{"val_loss", f"val_{score}"} for _ in seeds]
        self._looked = time.monotonic()

    def look(self, stack: Stack, trials: Sequence[int]) -> None:
        """Tell what is new, if it is time to. trials: those of the stack."""
        if not self._runs or not self._live or time.monotonic() - self._looked < _EVERY:
            return
        # A stack that found no memory begins anew as two; all of its trials have been told equally far.
        start = self._told[trials[0]]
        if stack.epoch > start:
            self._tell(trials, start, stack.history(start).numpy())
        self._looked = time.monotonic()

    def end(self, result: FitResult) -> None:
        """Tell what is left, and how each trial ended."""
        for trial in range(len(self._runs)):
            start = self._told[trial]
            self._tell([trial], start, result.history[start:, :, [trial]])
            score = result.outcome.score_key
            ended = {
                f"test_{score}": result.test_score[trial],
                f"best_val_{score}": result.val_score[trial],
                "best_val_loss": result.val_loss[trial],
                "best_epoch": result.best_epoch[trial],
                "epochs": result.epochs[trial],
            }
            self._safely(trial, "end", _finite(ended))
        self._runs = []

    def interrupt(self) -> None:
        for trial in range(len(self._runs)):
            self._safely(trial, "end", None)

    def _tell(self, trials: Sequence[int], start: int, rows: np.ndarray) -> None:
        """rows: (epochs, terms, trials) from the epoch after `start` on."""
        epochs = torch.arange(start + 1, start + len(rows) + 1)
        ramp = (epochs / self._warm_up).clamp(max=1.0)[:, None, None] if self._warm_up else 1.0
        terms = torch.from_numpy(rows[:, : len(TERM_NAMES)]).double()
        loss = self._weights.select(torch.tensor(trials)).weighed(terms, ramp)
        rows = np.concatenate([loss[:, None].numpy(), rows], axis=1)
        for place, trial in enumerate(trials):
            for epoch, values in zip(epochs.tolist(), rows[:, :, place], strict=True):
                self._epoch(trial, epoch, dict(zip(self._names, values.tolist(), strict=True)))
            self._told[trial] = start + len(rows)

    def _epoch(self, trial: int, epoch: int, values: Mapping[str, float]) -> None:
        used = self._used[trial]
        used |= {name for name, value in values.items() if value != 0}  # Most models lack some of the terms.
        told = {name: value for name, value in _finite(values).items() if name in used}
        if told:
            self._safely(trial, "values", epoch, told)

    def _safely(self, trial: int, method: str, *told: Any) -> None:
        if not self._runs:
            return
        try:
            getattr(self._runs[trial], method)(*told)
        except Exception as error:
            self._runs = []
            warnings.warn(f"tracking has ended, training goes on: {error}", G3NNWarning, stacklevel=2)


@contextmanager
def tracked(
    track: Tracker | None,
    seeds: tuple[int, ...],
    options: Mapping[str, Any],
    objective: Objective,
    score: str,
    live: bool,
) -> Iterator[Runs]:
    """The runs of a fit; all of them begin before it trains.

    options: lists have one value for each trial. live: whether each trial is one network of a stack.
    """
    begun = [] if track is None else [_begun(track, seeds[trial], trial, options) for trial in range(len(seeds))]
    runs = Runs(begun, seeds, objective, score, live)
    try:
        yield runs
    finally:
        runs.interrupt()


def _begun(track: Tracker, seed: int, trial: int, options: Mapping[str, Any]) -> Run:
    own = {key: value[trial] if isinstance(value, list) else value for key, value in options.items()}
    try:
        return track.begin(f"{own['model']} seed {seed}", {**own, "seed": seed})
    except G3NNError:
        raise
    except Exception as error:
        problems = Problems()
        problems.add("track", error, "a place that can be reached and written")
        problems.raise_if_any()
        raise


def _finite(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}
