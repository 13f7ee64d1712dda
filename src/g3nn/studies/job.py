"""A job: replicas of one architecture that are trained as one stack, and the records they leave."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from g3nn.base.errors import DeviceMemoryError, G3NNWarning, Problems, TrainingError
from g3nn.base.options import known_names
from g3nn.graph.datasets import seeded
from g3nn.graph.task import NodeTask
from g3nn.model.generative import ModelSpec, listed_channels
from g3nn.model.objective import Objective
from g3nn.studies.evidence import evidence, finite
from g3nn.studies.records import Evidence, Option, Point, Record
from g3nn.studies.suite import NO_STACKS
from g3nn.training import TrainingOptions, fit
from g3nn.training.checks import checked_device
from g3nn.training.memory import lacks_memory

_LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Job:
    """A stack as plain data: a point and a seed for every replica. All points have the same architecture, and where
    each seed has a task of its own or replicas are trained one by one, all seeds are the same."""

    stage: str
    points: tuple[Point, ...]
    seeds: tuple[int, ...]

    @property
    def first(self) -> Point:
        """All points share its dataset, setting, model and objective."""
        return self.points[0]

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def replicas(self) -> list[tuple[Point, int]]:
        return list(zip(self.points, self.seeds, strict=True))

    @property
    def task_seed(self) -> int:
        """That of the noise or the split, 0 if they depend on none."""
        return self.seeds[0] if seeded(self.first.dataset, self.first.setting) else 0

    def options(self) -> dict[str, Option | tuple[Option, ...]]:
        """In the form `fit` takes: options that may differ between replicas have a value for each, others one."""
        own = _per_replica(self.first.model, self.first.options.get("channels"))
        return {
            name: tuple(point.options[name] for point in self.points) if name in own else value
            for name, value in self.first.options.items()
        }

    def __str__(self) -> str:
        return f"{self.stage} {self.first.model} [{self.first.objective}] on {self.first.dataset} {self.first.setting}"


def architecture(point: Point) -> str:
    """The same for points whose replicas can be trained in one stack: they differ only in per-replica options."""
    own = _per_replica(point.model, point.options.get("channels"))
    shared = {name: "*" if name in own else value for name, value in point.options.items()}
    return replace(point, options=shared).canonical


def stack_key(point: Point, seed: int) -> tuple[str, int | None]:
    """The same for trainings that can share a stack: of one architecture and, where each seed has a task of its own or
    they are done one by one, of one seed."""
    return architecture(point), seed if seeded(point.dataset, point.setting) or point.model in NO_STACKS else None


@cache
def _per_replica(model: str, channels: Any) -> set[str]:
    if model in NO_STACKS:
        return set()
    spec = replace(ModelSpec.parse(model), channels=listed_channels(channels))
    declared = known_names([*spec.option_groups(), Objective, TrainingOptions])
    return {name for name, rule in declared.items() if rule.per_replica}


def run_job(job: Job, device: str, task: NodeTask) -> list[Record]:
    """Train all replicas of a job and record how each ended, in their order.

    An error of the training becomes records of status "failed". What says nothing about the point raises: no such
    device, one that another process has broken, and a lack of memory (DeviceMemoryError). For stage "select" the task
    loses its test labels before anything is trained.
    """
    _check_device(job, device)
    split = split_hash(task)
    visible = task.without_test() if job.stage == "select" else task
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # The status of a record says what the warning would.
            warnings.simplefilter("ignore", G3NNWarning)
            return (_one_by_one if job.first.model in NO_STACKS else _as_stack)(job, device, visible, split)
    except torch.AcceleratorError as error:
        raise _broken(job, error) from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
        if lacks_memory(error):
            raise DeviceMemoryError(f"no memory left on {device} ({text})") from error
        seconds = (time.perf_counter() - start) / job.size
        return [
            Record(point, job.stage, seed, split, "failed", None, None, None, 0, 0, seconds, error=text)
            for point, seed in job.replicas
        ]


def _one_by_one(job: Job, device: str, task: NodeTask, split: str) -> list[Record]:
    # Here, since it loads scikit-learn, which would make every `g3nn train` start two seconds later.
    from g3nn.studies.single_job import single_record

    return [single_record(point, job.stage, seed, split, device, task) for point, seed in job.replicas]


def _as_stack(job: Job, device: str, task: NodeTask, split: str) -> list[Record]:
    names, options = (job.first.model, job.first.objective), dict[str, Any](job.options())
    result = fit(task, *names, trials=job.size, seed=job.seeds, device=device, progress=False, **options)
    shown: list[Evidence | None] = evidence(result, task) if job.stage == "trial" else [None] * job.size
    return [
        Record(
            point=point,
            stage=job.stage,
            seed=seed,
            split=split,
            status=result.status[t],
            val_loss=finite(result.val_loss[t]),
            val_accuracy=finite(result.val_accuracy[t]),
            test_accuracy=finite(result.test_accuracy[t]),
            epochs=int(result.epochs[t]),
            best_epoch=int(result.best_epoch[t]),
            seconds=result.seconds / job.size,
            evidence=shown[t],
        )
        for t, (point, seed) in enumerate(job.replicas)
    ]


def _check_device(job: Job, device: str) -> None:
    """Raise if there is no such device, or if an earlier job has broken it for this process."""
    with Problems() as problems:
        checked_device(device, problems)
    if torch.cuda.is_initialized():
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            # Every further job would fail, and failed trainings are not repeated.
            raise _broken(job, error) from error


def _broken(job: Job, error: Exception) -> TrainingError:
    """When one of the processes that share a GPU is killed, the others may lose it too."""
    reason = str(error).partition("\n")[0]
    return TrainingError(
        f"{job}: the GPU no longer answers ({reason}). Finished trainings are stored: run the same command again. If "
        "this job fails every time, leave it out with only, or train it with device cpu"
    )


def split_hash(task: NodeTask) -> str:
    """16 hex digits that differ between tasks with different training, validation or test nodes."""
    digest = hashlib.sha256()
    for nodes in (task.train, task.val, task.test):
        digest.update(f"{nodes.size};".encode())
        digest.update(np.ascontiguousarray(nodes, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]
