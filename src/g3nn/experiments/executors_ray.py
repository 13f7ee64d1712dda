"""Jobs on a Ray cluster: one that is running already, or a local one for the time of the run."""

from __future__ import annotations

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NamedTuple, Self

from g3nn.errors import Problems, TrainingError
from g3nn.experiments.job import Job, run_job
from g3nn.experiments.records import Environment, Record
from g3nn.experiments.worker import RunJob, in_worker


def check_ray(problems: Problems) -> None:
    """Record it if Ray is not installed."""
    if find_spec("ray") is None:
        advice = "Install the extra: pip install 'g3nn[ray]'."
        problems.add("executor", "'ray'", "local, since the package ray is not installed", advice)


class Share(NamedTuple):
    """Where jobs run, how many at once, and the GPUs that each of them gets."""

    device: str
    workers: int
    gpus: float


def share(device: str, workers: int | None, resources: Mapping[str, float]) -> Share:
    """What a job gets of a cluster with these resources. Raises if it has not what was asked for."""
    gpus = int(resources.get("GPU", 0)) if device != "cpu" else 0
    if gpus:
        several = workers or gpus
        return Share("cuda", several, 1 / math.ceil(several / gpus))
    if device == "cuda":
        problems = Problems()
        problems.add("device", "'cuda'", "cpu", "The cluster has no GPU: use device='cpu' or 'auto'.")
        problems.raise_if_any()
    return Share("cpu", workers or max(1, int(resources.get("CPU", 1))), 0)


class RayExecutor:
    """As many jobs at once as there are workers. Every worker reads its data itself; records come back here.

    Connects to the cluster that the variable RAY_ADDRESS names, or starts a local one. Where the cluster has GPUs and
    the device is not "cpu", each job gets a GPU, or its part of one if there are more workers than GPUs.
    """

    def __init__(self, device: str = "auto", workers: int | None = None, run: RunJob = run_job) -> None:
        self.device, self.workers = device, workers or 0
        self._run, self._gpus, self._started = run, 0.0, False
        self._running: dict[Any, Job] = {}

    def __enter__(self) -> Self:
        import ray

        if not ray.is_initialized():
            self._connect()
            self._started = True
        try:
            self.device, self.workers, self._gpus = share(self.device, self.workers, ray.cluster_resources())
        except BaseException:
            self._close()
            raise
        return self

    def _connect(self) -> None:
        import ray

        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(address="auto", **quiet)
        else:
            ray.init(address="local", num_cpus=self.workers or os.cpu_count(), include_dashboard=False, **quiet)

    def environment(self) -> Environment:
        """That of one worker: this machine may be quite another."""
        environment: Environment = _answer(self._remote(_environment).remote(self.device), "say what it is")
        return environment

    def execute(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Record]]]:
        import ray

        remote, waiting, running = self._remote(in_worker), deque(jobs), self._running
        while waiting or running:
            while waiting and len(running) < self.workers:
                job = waiting.popleft()
                running[remote.remote(self._run, job, self.device, 1, self._gpus or 1.0)] = job
            (done, *_), _ = ray.wait(list(running))
            job = running.pop(done)
            yield job, _answer(done, f"do a job ({job})")

    def _remote(self, function: Callable[..., Any]) -> Any:
        """The function as it runs on a worker, with what a job gets."""
        import ray

        return ray.remote(function).options(num_cpus=1, num_gpus=self._gpus)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        import ray

        for unfinished in self._running:
            ray.cancel(unfinished, force=True)
        self._running.clear()
        if self._started:
            ray.shutdown()


def _answer(waiting: Any, what: str) -> Any:
    import ray

    try:
        return ray.get(waiting)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        raise TrainingError(f"the cluster could not {what}: {cause}") from None


def _environment(device: str) -> Environment:
    return Environment.current(device)
