"""Jobs, what workers in other processes do instead of training them, which they find by name, and a comparison."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import torch

from g3nn.base.errors import DataError
from g3nn.graph.task import NodeTask
from g3nn.studies.executors import Executor
from g3nn.studies.job import Job
from g3nn.studies.records import Point, Record
from g3nn.training import memory


def job(lr: float = 0.1, dataset: str = "cora", setting: str = "standard", seeds: tuple[int, ...] = (0, 1)) -> Job:
    point = Point(dataset, setting, "gcn", "elbo", {"lr": lr, "epochs": 3, "patience": 3, "hidden": 4})
    return Job("trial", (point,) * len(seeds), seeds)


def same_records(found: Executor, expected: Executor) -> bool:
    """Whether two places come to the same result for every job."""
    jobs = [job(lr, seeds=seeds) for lr in (0.01, 0.1) for seeds in ((0, 1), (2, 3, 4))]
    held = [dict(place.execute(jobs)) for place in (found, expected)]
    assert all(set(one) == set(jobs) for one in held)
    return all(
        [replace(record, seconds=0) for record in held[0][one]]
        == [replace(record, seconds=0) for record in held[1][one]]
        for one in jobs
    )


def missing(job: Job, device: str, task: NodeTask) -> list[Record]:
    raise DataError("no such file")


def dies(job: Job, device: str, task: NodeTask) -> list[Record]:
    os._exit(3)


def sleeps(job: Job, device: str, task: NodeTask) -> list[Record]:
    """Says who it is in the file that the environment names."""
    Path(os.environ["G3NN_TEST_WORKER"]).write_text(str(os.getpid()))
    time.sleep(120)
    return []


def sleeps_unless_first(job: Job, device: str, task: NodeTask) -> list[Record]:
    """The job with the smallest step of the tests is done at once, the others never in time."""
    if job.first.options["lr"] > 0.1:
        time.sleep(120)
    return []


def says_its_share(job: Job, device: str, task: NodeTask) -> list[Record]:
    """Of memory and of cores."""
    Path(os.environ["G3NN_TEST_WORKER"]).write_text(f"{memory._share} {torch.get_num_threads()}")
    return []
