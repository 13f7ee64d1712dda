"""What workers in other processes do instead of training; they find it by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from g3nn.base.errors import DataError
from g3nn.graph.task import NodeTask
from g3nn.studies.job import Job
from g3nn.studies.records import Record
from g3nn.training import memory


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
