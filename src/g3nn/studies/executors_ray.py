"""Jobs on a Ray cluster: one that is already running, or a local one for the duration of the run."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Any, Self

from g3nn.base.errors import DeviceMemoryError, Problems, TrainingError
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Environment, Record
from g3nn.studies.worker import Executor, RunJob, in_worker


def share(device: str, workers: int | None, resources: Mapping[str, float]) -> tuple[str, int, float]:
    """Where jobs run on a cluster with these resources, how many at once, and the number of GPUs for each of them.

    Raises if the cluster lacks what was asked for.
    """
    gpus = int(resources.get("GPU", 0)) if device != "cpu" else 0
    if gpus:
        jobs = workers or gpus
        return "cuda", jobs, 1 / math.ceil(jobs / gpus)
    if device == "cuda":
        problems = Problems()
        problems.add("device", "'cuda'", "cpu", "The cluster has no GPU: use device='cpu' or 'auto'.")
        problems.raise_if_any()
    return "cpu", workers or max(1, int(resources.get("CPU", 1))), 0


def check_installed(problems: Problems) -> None:
    if find_spec("ray") is None:
        advice = "Install the extra: pip install 'g3nn[ray]'."
        problems.add("executor", "'ray', but the package ray is not installed", "local", advice)


def connect(cpus: int | None) -> bool:
    """Connect to the cluster that the variable RAY_ADDRESS names, or start a local one with so many CPUs, by default
    those of this machine. False if there was a connection already, which somebody else will end."""
    import ray

    if ray.is_initialized():
        return False
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(address="auto", **quiet)
    else:
        ray.init(address="local", num_cpus=cpus or os.cpu_count(), include_dashboard=False, **quiet)
    return True


class RayExecutor(Executor):
    """Several jobs at once. Every worker loads its own data; the records come back here.

    Connects to the cluster that the variable RAY_ADDRESS names, or starts a local one. Where the cluster has GPUs and
    the device is not "cpu", each job gets a GPU, or a fraction of one if there are more workers than GPUs.
    """

    def __init__(self, device: str = "auto", workers: int | None = None, run: RunJob = run_job) -> None:
        super().__init__()
        problems = Problems()
        problems.name("device", device, ("auto", "cpu", "cuda"))
        check_installed(problems)
        problems.raise_if_any()
        self.device, self.workers = device, workers or 0
        self._run, self._gpus, self._started = run, 0.0, False

    def __enter__(self) -> Self:
        import ray

        self._started = connect(self.workers)
        try:
            self.device, self.workers, self._gpus = share(self.device, self.workers, ray.cluster_resources())
        except BaseException:
            self.__exit__()
            raise
        return self

    def environment(self) -> Environment:
        """That of one worker: this machine may be a different one."""
        current: Environment = self.result(self._call(_environment, self.device), "describe itself")
        return current

    def submit(self, job: Job) -> Future[list[Record]]:
        return self._call(in_worker, self._run, job, self.device, 1, self._gpus or 1.0)

    def result(self, done: Future[Any], purpose: str) -> Any:
        import ray

        try:
            return done.result()
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, DeviceMemoryError):
                raise cause from None
            raise TrainingError(f"the cluster could not {purpose}: {cause}") from None

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function on a worker, with the resources of a job."""
        import ray

        reference = ray.remote(function).options(num_cpus=1, num_gpus=self._gpus).remote(*arguments)
        future: Future[Any] = reference.future()
        return future

    def __exit__(self, *_: object) -> None:
        import ray

        for unfinished in self.running:
            ray.cancel(unfinished.object_ref, force=True)  # type: ignore[attr-defined]
        self.running.clear()
        if self._started:
            ray.shutdown()


def _environment(device: str) -> Environment:
    return Environment.current(device)
