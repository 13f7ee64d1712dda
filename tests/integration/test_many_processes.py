"""Several processes train one model: they agree, they survive being killed, and they say what is wrong. Those of a Ray
cluster, which takes long to start, do the jobs of a suite as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from group_training import OPTIONS, loaded_by_ray, make_task
from worker_jobs import job, same_records

import g3nn
from g3nn.base.errors import DataError, InputError, TrainingError
from g3nn.graph.task import NodeTask
from g3nn.studies.executors import Executor, LocalExecutor, RayExecutor, make_executor
from g3nn.studies.job import Job
from g3nn.studies.records import Record
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        # Each of them is another process of Ray, and nobody looks at what it finds.
        patch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        patch.setenv("RAY_TRAIN_METRICS_ENABLED", "0")
        with make_executor("ray", "cpu", 2) as opened:
            yield opened
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestCluster:
    def test_it_says_where_it_runs(self, cluster):
        assert (cluster.device, cluster.workers) == ("cpu", 2)
        assert cluster.environment() == LocalExecutor("cpu").environment()

    def test_two_workers_give_the_records_of_one(self, cluster):
        assert same_records(cluster, LocalExecutor("cpu"))

    def test_what_goes_wrong_on_a_worker_is_said_here(self, cluster):
        def missing(job: Job, device: str, task: NodeTask) -> list[Record]:
            raise DataError("no such file")

        with RayExecutor("cpu", 1, missing) as guest, pytest.raises(TrainingError, match=r"do a job .*: no such file"):
            list(guest.execute([job()]))
        assert list(cluster.execute([])) == [], "a guest leaves the cluster running"

    def test_a_process_that_is_killed_is_started_again_and_goes_on(self, cluster, undisturbed, tmp_path):
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
