"""Trackers: where the numbers of a training go while it runs, such as TensorBoard or MLflow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from g3nn.base.errors import Problems

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

    def begin(self, name: str, options: Mapping[str, Any]) -> Run:
        """A training begins. options: all that was chosen for it, by name."""


def tracker(given: Any, problems: Problems) -> Tracker | None:
    """What was asked for as `track`: a tracker, its name with a place ("tensorboard:runs"), or None."""
    if given is None or isinstance(given, Tracker):
        return given
    kind, colon, place = str(given).partition(":")
    if not isinstance(given, str) or not colon or kind not in ("tensorboard", "mlflow"):
        problems.add("track", repr(given), _FORMS)
        return None
    found: Tracker | None = None
    with problems.gathered():
        found = TensorBoardTracker(place or ".") if kind == "tensorboard" else MLflowTracker(place or None)
    return found


@dataclass(frozen=True)
class TensorBoardTracker:
    """Every training as a run of TensorBoard, in a new folder inside `folder`, with every epoch."""

    folder: str | Path

    def __post_init__(self) -> None:
        _check_installed("tensorboard", "tensorboard")

    def begin(self, name: str, options: Mapping[str, Any]) -> Run:
        from torch.utils.tensorboard import SummaryWriter

        return _TensorBoardRun(SummaryWriter(str(_new_folder(Path(self.folder), name))), dict(options))


@dataclass
class _TensorBoardRun:
    writer: Any
    options: dict[str, Any]

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

    def __post_init__(self) -> None:
        _check_installed("mlflow", "mlflow")

    def begin(self, name: str, options: Mapping[str, Any]) -> Run:
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


def _check_installed(name: str, package: str) -> None:
    problems = Problems()
    if find_spec(package) is None:
        problems.add("track", f"{name!r}, but the package {package} is not installed", _FORMS, _EXTRA)
    problems.raise_if_any()


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
