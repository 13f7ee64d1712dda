"""Trackers such as TensorBoard or MLflow: every trial is a run, which receives the numbers that are recorded anyway."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from g3nn.base.errors import G3NNError, Problems, refuse, warn_caller
from g3nn.model.objective import Objective
from g3nn.model.replicas import Replicas
from g3nn.model.terms import TERM_NAMES
from g3nn.training.result import FitResult
from g3nn.training.stack import HISTORY_NAMES, Stack

_EXTRA = "Install the extra: pip install 'g3nn[track]'."
_FORMS = "tensorboard:FOLDER, mlflow:URI or a g3nn.training.tracking.Tracker"
_AT_ONCE = 1000
"""Most numbers that MLflow takes in one call."""


class Run(Protocol):
    """One training of one model from one seed."""

    def values(self, epoch: int, values: Mapping[str, float]) -> None:
        """What was measured in an epoch; the first is 1. Epochs come in their order, several at a time."""

    def end(self, results: Mapping[str, float] | None) -> None:
        """How it ended, once; None if it was interrupted."""


@runtime_checkable
class Tracker(Protocol):
    """Takes in the numbers of any number of trainings, some of them at the same time."""

    def begin(self, name: str, options: Mapping[str, object]) -> Run:
        """A training begins. options: all that was chosen for it, by name."""


def tracker(given: object, problems: Problems) -> Tracker | None:
    """The argument `track`: a tracker, its name with a place ("tensorboard:runs"), or None."""
    if given is None or isinstance(given, Tracker):
        return given
    kind, colon, place = str(given).partition(":")
    if not isinstance(given, str) or not colon or kind not in ("tensorboard", "mlflow"):
        problems.add("track", repr(given), _FORMS)
        return None
    if find_spec(kind) is None:
        problems.add("track", f"{kind!r}, but the package {kind} is not installed", _FORMS, _EXTRA)
    return TensorBoardTracker(place or ".") if kind == "tensorboard" else MLflowTracker(place or None)


@dataclass(frozen=True)
class TensorBoardTracker:
    """Every training as a run of TensorBoard, in a new folder inside `folder`, with every epoch."""

    folder: str | Path

    def begin(self, name: str, options: Mapping[str, object]) -> Run:
        from torch.utils.tensorboard import SummaryWriter

        return _TensorBoardRun(SummaryWriter(str(_new_folder(Path(self.folder), name))), dict(options))


@dataclass
class _TensorBoardRun:
    writer: Any
    options: dict[str, object]

    def values(self, epoch: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        # One event for an epoch, which is several times as fast as one for each number.
        parts = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self.writer.file_writer.add_summary(Summary(value=parts), epoch)

    def end(self, results: Mapping[str, float] | None) -> None:
        plain = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in self.options.items()
        }
        self.writer.add_hparams(plain, dict(results or {}), run_name=".")
        self.writer.close()


@dataclass(frozen=True)
class MLflowTracker:
    """Every training as a run of MLflow.

    uri: of a server (http://...) or a file (sqlite:///runs.db); None: where MLflow writes by its own settings.
    every: how many epochs lie between two that are written, since each number is a row of a database.
    """

    uri: str | None = None
    experiment: str = "g3nn"
    every: int = 10

    def begin(self, name: str, options: Mapping[str, object]) -> Run:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        client = MlflowClient(self.uri)
        known = client.get_experiment_by_name(self.experiment)
        place = client.create_experiment(self.experiment) if known is None else known.experiment_id
        run = client.create_run(place, run_name=name).info.run_id
        client.log_batch(run, params=[Param(key, str(value)) for key, value in options.items()])
        return _MLflowRun(client, run, self.every)


@dataclass
class _MLflowRun:
    client: Any
    run: str
    every: int
    waiting: list[Any] = field(default_factory=list)

    def values(self, epoch: int, values: Mapping[str, float]) -> None:
        if epoch == 1 or epoch % self.every == 0:
            self._add(epoch, values)

    def end(self, results: Mapping[str, float] | None) -> None:
        self._add(0, results or {})
        self._write()
        self.client.set_terminated(self.run, "KILLED" if results is None else "FINISHED")

    def _add(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        if len(self.waiting) + len(values) > _AT_ONCE:
            self._write()
        self.waiting += [Metric(name, value, now, step) for name, value in values.items()]

    def _write(self) -> None:
        self.client.log_batch(self.run, metrics=self.waiting)
        self.waiting = []


def _new_folder(inside: Path, name: str) -> Path:
    """Called as the run, with a number behind it if there is such a folder already."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    inside.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = inside / (plain if number == 1 else f"{plain}-{number}")
        try:
            path.mkdir()
            return path
        except FileExistsError:
            number += 1


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
        # A stack that ran out of memory starts again as two; all of its trials were reported up to the same epoch.
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
            for epoch, values in zip(epochs.tolist(), rows[:, :, place].tolist(), strict=True):
                self._epoch(trial, epoch, dict(zip(self._names, values, strict=True)))
            self._told[trial] = start + len(rows)

    def _epoch(self, trial: int, epoch: int, values: Mapping[str, float]) -> None:
        used = self._used[trial]
        used |= {name for name, value in values.items() if value != 0}  # Most models lack some of the terms.
        if told := {name: value for name, value in _finite(values).items() if name in used}:
            self._safely(trial, "values", epoch, told)

    def _safely(self, trial: int, method: str, *told: Any) -> None:
        if not self._runs:
            return
        try:
            getattr(self._runs[trial], method)(*told)
        except Exception as error:
            self._runs = []
            warn_caller(f"tracking has ended, training goes on: {error}")


@contextmanager
def tracked(
    track: Tracker | None,
    seeds: tuple[int, ...],
    options: Mapping[str, object],
    objective: Objective,
    score: str,
    live: bool,
) -> Iterator[Runs]:
    """The runs of a fit, none if it is not tracked; all of them begin before it trains.

    options: lists have one value for each trial. live: whether each trial is one network of a stack.
    """
    begun = [] if track is None else [_begun(track, seed, trial, options) for trial, seed in enumerate(seeds)]
    runs = Runs(begun, seeds, objective, score, live)
    try:
        yield runs
    finally:
        runs.interrupt()


def _begun(track: Tracker, seed: int, trial: int, options: Mapping[str, object]) -> Run:
    own = {key: value[trial] if isinstance(value, list) else value for key, value in options.items()}
    try:
        return track.begin(f"{own['model']} seed {seed}", {**own, "seed": seed})
    except G3NNError:
        raise
    except Exception as error:
        refuse("track", error, "a place that can be reached and written")


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}
