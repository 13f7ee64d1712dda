"""One training on a Ray cluster: Ray Train starts its processes, connects them, and starts them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from g3nn.base.errors import G3NNError, Problems, TrainingError
from g3nn.graph.task import NodeTask
from g3nn.studies.executors import check_cluster, cluster
from g3nn.training import FitResult
from g3nn.training.plan import Plan

_RESTARTS = 3
"""How often all processes are started again after one was lost."""


def train_on_ray(
    load: Callable[[], NodeTask],
    plan: Plan,
    checkpoint: Path | None,
    checkpoint_every: float,
    device: str = "auto",
    workers: int | None = None,
) -> FitResult:
    """Train in batches, by default with one process for each GPU of the cluster, or for each CPU if it has none.

    load: reads the task; every process does. checkpoint: the full path of a folder that all machines see.
    """
    with Problems() as problems:
        check_cluster(device, problems)
        if workers is not None and workers < 1:
            problems.add("workers", workers, "a whole number of at least 1")
        if not plan.training.batch:
            advice = "Only a training in batches can be shared."
            problems.add("batch", "0 on a Ray cluster", "a number of labelled nodes", advice)
    from ray.exceptions import RayError
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer, get_device
    from ray.train.v2.api.exceptions import TrainingFailedError

    def in_each_process() -> FitResult | G3NNError:
        try:
            own = replace(plan, device=get_device())
            return own.fit(load(), False, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
        except G3NNError as error:
            # What is wrong with the input will be wrong the next time too: it is an answer, not a failure.
            return error

    with cluster(device, workers) as (place, processes, _):
        trainer: Any = TorchTrainer(
            in_each_process,  # type: ignore[arg-type]
            scaling_config=ScalingConfig(num_workers=processes, use_gpu=place == "cuda"),
            run_config=RunConfig(failure_config=FailureConfig(max_failures=_RESTARTS)),
        )
        try:
            found: FitResult | G3NNError = trainer.fit().return_value
        except (TrainingFailedError, RayError) as error:
            raise TrainingError(f"the cluster could not train: {error}") from None
    if isinstance(found, G3NNError):
        raise found
    return found
