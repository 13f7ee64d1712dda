"""What torchrun starts is refused, with everything that is wrong, before anything waits for another process."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from g3nn.base.errors import InputError, Problems
from g3nn.training.checks import check_workers
from g3nn.training.options import TrainingOptions
from g3nn.training.workers import Workers, joined_by_torchrun


@pytest.fixture
def started(monkeypatch):
    """As torchrun starts one of four processes."""
    told = {"RANK": 0, "WORLD_SIZE": 4, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 4, "MASTER_ADDR": "none", "MASTER_PORT": 1}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))


def refused(device: str) -> str:
    with pytest.raises(InputError) as error, joined_by_torchrun(device):
        pass
    return str(error.value)


def test_a_torch_without_gloo_is_refused(started, monkeypatch):
    monkeypatch.setattr(dist, "is_gloo_available", lambda: False)
    assert "torchrun: got a torch without gloo; expected one that was built with it. Start one process." in refused(
        "cpu"
    )


def test_a_torch_without_nccl_and_too_few_gpus_come_in_one_message(started, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: False)
    said = refused("auto")
    assert "got a torch without nccl" in said
    assert "got 4 processes for 2 GPUs; expected at most one for each GPU" in said
    assert "--nproc-per-node 2" in said


def test_a_torch_that_connects_nothing_is_refused(started, monkeypatch):
    monkeypatch.setattr(dist, "is_available", lambda: False)
    assert "got a torch without torch.distributed" in refused("cpu")


def test_a_group_without_a_backend_for_the_device_is_refused(learnable, monkeypatch):
    monkeypatch.setattr(dist, "get_backend_config", lambda: "cpu:gloo")
    problems = Problems()
    check_workers(learnable, TrainingOptions(batch=1), torch.device("cpu"), Workers(0, 2), problems)
    problems.raise_if_any()
    check_workers(learnable, TrainingOptions(batch=1), torch.device("cuda"), Workers(0, 2), problems)
    with pytest.raises(InputError, match="device: got 'cuda' in a process group without a backend for it"):
        problems.raise_if_any()
