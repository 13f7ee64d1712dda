"""Several processes train one model: they agree, they survive being killed, and they say what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from group_training import OPTIONS, loaded_by_ray, make_task

import g3nn
from g3nn.base.errors import InputError
from g3nn.studies.training_ray import train_on_ray
from g3nn.training.plan import Plan

SCRIPT = Path(__file__).parents[1] / "support" / "group_training.py"


class Finding(NamedTuple):
    answers: np.ndarray
    history: np.ndarray
    steps: list[int]
    refusals: list[str]
    bare: np.ndarray | None = None


def torchrun(
    *arguments: Any, processes: int = 2, restarts: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "--max-restarts", str(restarts), "--monitor-interval", "0.2", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=300)


def trained(folder: Path, **how: Any) -> list[Finding]:
    """What each of two processes found."""
    folder.mkdir()
    ended = torchrun(SCRIPT, folder, folder / "kept", **how)
    assert ended.returncode == 0, ended.stderr
    findings = []
    for rank in range(2):
        arrays, said = np.load(folder / f"rank-{rank}.npz"), json.loads((folder / f"rank-{rank}.json").read_text())
        findings.append(Finding(**arrays, **said))
    return findings


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("group") / "plain")


@pytest.fixture(scope="module")
def alone():
    return g3nn.fit(make_task(), "sbm-gcn", **OPTIONS)


@pytest.mark.slow
def test_processes_agree_and_train_as_well_as_one(undisturbed, alone):
    one, other = undisturbed
    np.testing.assert_array_equal(one.answers, other.answers)
    np.testing.assert_array_equal(one.history, other.history)
    np.testing.assert_array_equal(one.bare, other.bare)
    assert np.abs(one.answers - alone.answers.numpy()).max() > 1e-3, "each process draws batches of its own"
    task = make_task()
    right = [
        (answers[0].argmax(1) == task.labels)[task.test].mean() for answers in (one.answers, alone.answers.numpy())
    ]
    assert right[0] > right[1] - 0.1


@pytest.mark.slow
def test_what_cannot_be_is_said_alike_by_all(undisturbed):
    one, other = undisturbed
    assert one.refusals == other.refusals
    too_few, changed, absent = one.refusals
    assert "batch: got 50 for 45 labelled nodes in 2 processes; expected at least one batch for each" in too_few
    assert "Start at most 1, or use batch=22 or less." in too_few
    assert "hidden 8 (now 9)" in changed
    assert "a folder inside one that exists" in absent


@pytest.mark.slow
def test_a_killed_process_is_started_again_and_goes_on(undisturbed, tmp_path):
    one, other = trained(tmp_path / "killed", restarts=1, KILLED="1")
    assert one.steps == other.steps == list(range(7, OPTIONS["epochs"])), "the epochs before were not repeated"
    np.testing.assert_array_equal(one.answers, undisturbed[0].answers)
    np.testing.assert_array_equal(one.history, undisturbed[0].history)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_process_that_is_killed_on_a_ray_cluster_is_started_again_and_goes_on(undisturbed, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    options = {name: value for name, value in OPTIONS.items() if name not in ("device", "seed")}
    plan = Plan.check("sbm-gcn", "elbo", 1, OPTIONS["seed"], "mlp", "cpu", options)
    result = train_on_ray(partial(loaded_by_ray, tmp_path), plan, tmp_path / "kept", 0, "cpu", 2)
    np.testing.assert_array_equal(result.answers.numpy(), undisturbed[0].answers)
    assert (tmp_path / "steps-1").read_text().split() == [str(epoch) for epoch in (*range(8), *range(7, 12))]


def test_what_ray_cannot_train_is_refused_before_anything_starts(tmp_path):
    plan = Plan.check("sbm-gcn", "elbo", 1, 0, "mlp", "cpu", {"epochs": 3})
    with pytest.raises(InputError) as refused:
        train_on_ray(make_task, plan, None, 60, "tpu", 0)
    assert {problem.argument for problem in refused.value.problems} == {"device", "workers", "batch"}
