"""A job: replicas of one architecture that are trained as one stack, and the records they leave."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from g3nn.data import load
from g3nn.errors import DeviceMemoryError, G3NNWarning, Problems, TrainingError
from g3nn.experiments.evidence import evidence
from g3nn.experiments.records import Evidence, Point, Record
from g3nn.model import ModelSpec
from g3nn.objective import Objective
from g3nn.options import known_names
from g3nn.task import NodeTask
from g3nn.training import FitResult, TrainingOptions, fit
from g3nn.training.checks import checked_device

_LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Job:
    """A stack as plain data: `points` and `seeds` hold one of each for every replica."""

    stage: str
    points: tuple[Point, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.points) != len(self.seeds) or len({architecture(point) for point in self.points}) != 1:
            raise ValueError("a job needs one seed for each of its points, and points of one architecture")

    @property
    def dataset(self) -> str:
        return self.points[0].dataset

    @property
    def setting(self) -> str:
        return self.points[0].setting

    @property
    def model(self) -> str:
        return self.points[0].model

    @property
    def objective(self) -> str:
        return self.points[0].objective

    @property
    def size(self) -> int:
        return len(self.points)

    def options(self) -> dict[str, Any]:
        """As `fit` takes them: what may differ between replicas with one value for each, the rest once."""
        own = _per_replica(self.model)
        return {
            name: tuple(point.options[name] for point in self.points) if name in own else value
            for name, value in self.points[0].options.items()
        }

    def __str__(self) -> str:
        return f"{self.stage} {self.model} [{self.objective}] on {self.dataset} {self.setting}"


def architecture(point: Point) -> str:
    """The same for points whose replicas can be trained in one stack: they differ in per-replica options alone."""
    own = _per_replica(point.model)
    shared = {name: "*" if name in own else value for name, value in point.options.items()}
    return replace(point, options=shared).canonical()


@cache
def _per_replica(model: str) -> set[str]:
    known = known_names([*ModelSpec.parse(model).option_groups(), Objective, TrainingOptions])
    return {name for name, rule in known.items() if rule.per_replica}


def run_job(job: Job, device: str = "auto", task: NodeTask | None = None) -> list[Record]:
    """Train all replicas of a job and say how each ended, in their order.

    An error of the training becomes records of status "failed". A device or data that are not there raise, and so does
    a device that others have filled or broken: they say nothing about the point. For stage "select" the task loses its
    test labels before anything is trained.
    """
    _check_device(job, device)
    full = load(job.dataset, job.setting) if task is None else task
    seen = full.without_test() if job.stage == "select" else full
    start = time.perf_counter()
    try:
        result = _train(job, device, seen)
        shown: list[Evidence | None] = evidence(result, full) if job.stage == "trial" else [None] * job.size
    except (DeviceMemoryError, torch.cuda.OutOfMemoryError) as error:
        raise DeviceMemoryError(
            f"{job}: the GPU has no memory left. What is done is kept: start again when others have left it, or go on "
            "with device cpu"
        ) from error
    except torch.AcceleratorError as error:
        raise _broken(job, error) from error
    except Exception as error:
        return _failed(job, split_hash(full), error, time.perf_counter() - start)
    return _records(job, split_hash(full), result, shown)


def _check_device(job: Job, device: str) -> None:
    """Raise if there is no such device, or if an earlier job has broken it for this process."""
    problems = Problems()
    checked_device(device, problems)
    problems.raise_if_any()
    if torch.cuda.is_initialized():
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            # Every further job would fail, and what failed is not tried again.
            raise _broken(job, error) from error


def _broken(job: Job, error: Exception) -> TrainingError:
    """A process that shares a GPU and is killed can take the others with it."""
    reason = str(error).partition("\n")[0]
    return TrainingError(
        f"{job}: the GPU no longer answers ({reason}). What is done is kept: start again to go on. If it is always "
        "this job, leave it out with only, or train it with device cpu"
    )


def _train(job: Job, device: str, task: NodeTask) -> FitResult:
    with warnings.catch_warnings():
        # The status of a record says what the warning would.
        warnings.simplefilter("ignore", G3NNWarning)
        return fit(
            task,
            job.model,
            job.objective,
            trials=job.size,
            seed=job.seeds,
            device=device,
            progress=False,
            **job.options(),
        )


def split_hash(task: NodeTask) -> str:
    """16 hex digits that tell apart the training, validation and test nodes of two tasks."""
    digest = hashlib.sha256()
    for nodes in (task.train, task.val, task.test):
        digest.update(f"{nodes.size};".encode())
        digest.update(np.ascontiguousarray(nodes, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def _records(job: Job, split: str, result: FitResult, shown: list[Evidence | None]) -> list[Record]:
    return [
        Record(
            point=point,
            stage=job.stage,
            seed=seed,
            split=split,
            status=result.status[t],
            val_loss=_number(result.val_loss[t]),
            val_accuracy=_number(result.val_accuracy[t]),
            test_accuracy=_number(result.test_accuracy[t]),
            epochs=int(result.epochs[t]),
            best_epoch=int(result.best_epoch[t]),
            seconds=result.seconds / job.size,
            evidence=shown[t],
        )
        for t, (point, seed) in enumerate(zip(job.points, job.seeds, strict=True))
    ]


def _failed(job: Job, split: str, error: Exception, seconds: float) -> list[Record]:
    text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    return [
        Record(point, job.stage, seed, split, "failed", None, None, None, 0, 0, seconds / job.size, error=text)
        for point, seed in zip(job.points, job.seeds, strict=True)
    ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
