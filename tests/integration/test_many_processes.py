"""Several processes train one model: they agree, they survive being killed, and they say what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from group_training import OPTIONS, make_task

import g3nn

SCRIPT = Path(__file__).parents[1] / "support" / "group_training.py"


class Finding(NamedTuple):
    answers: np.ndarray
    history: np.ndarray
    steps: list[int]
    refusals: list[str]


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
        findings.append(Finding(arrays["answers"], arrays["history"], said["steps"], said["refusals"]))
    return findings


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("group") / "plain")


@pytest.fixture(scope="module")
def alone():
    return g3nn.fit(make_task(), "sbm-gcn", **OPTIONS)


def test_processes_agree_and_train_as_well_as_one(undisturbed, alone):
    one, other = undisturbed
    np.testing.assert_array_equal(one.answers, other.answers)
    np.testing.assert_array_equal(one.history, other.history)
    assert np.abs(one.answers - alone.answers.numpy()).max() > 1e-3, "each process draws batches of its own"
    task = make_task()
    right = [
        (answers[0].argmax(1) == task.labels)[task.test].mean() for answers in (one.answers, alone.answers.numpy())
    ]
    assert right[0] > right[1] - 0.1


def test_what_cannot_be_is_said_alike_by_all(undisturbed):
    one, other = undisturbed
    assert one.refusals == other.refusals
    too_few, changed, absent = one.refusals
    assert "2 processes for 1 batches of 50 labelled nodes; expected at least one batch for each" in too_few
    assert "Start at most 1, or use batch=22 or less." in too_few
    assert "hidden 8 (now 9)" in changed
    assert "a folder inside one that exists" in absent


def test_a_killed_process_is_started_again_and_goes_on(undisturbed, tmp_path):
    one, other = trained(tmp_path / "killed", restarts=1, KILLED="1")
    assert one.steps == other.steps == list(range(7, OPTIONS["epochs"])), "the epochs before were not repeated"
    np.testing.assert_array_equal(one.answers, undisturbed[0].answers)
    np.testing.assert_array_equal(one.history, undisturbed[0].history)
