from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest
import worker_jobs
from worker_jobs import job, same_records

from g3nn.base.errors import DataError, DeviceMemoryError, InputError, Problems, TrainingError
from g3nn.graph.task import NodeTask
from g3nn.studies import executors
from g3nn.studies.executors import Executor, LocalExecutor, RayExecutor, make_executor, share
from g3nn.studies.job import Job
from g3nn.studies.records import Record


@pytest.fixture
def loads(monkeypatch, learnable) -> Counter[tuple[str, str]]:
    """How often each task was read; there is nothing to read."""
    counts: Counter[tuple[str, str]] = Counter()

    def load(dataset: str, setting: str, seed: int) -> NodeTask:
        counts[dataset, setting] += 1
        return replace(learnable, name=dataset, setting=setting)

    executors.task_of.cache_clear()
    monkeypatch.setattr(executors, "load", load)
    return counts


def problems_with(name: str, device: str = "cpu", workers: int | None = None) -> dict[str, str]:
    problems = Problems()
    with problems.gathered():
        make_executor(name, device, workers)
    return {problem.argument: str(problem) for problem in problems.found}


class TestLocal:
    def test_jobs_come_back_one_by_one_in_order(self, loads):
        done = []

        def run(job: Job, device: str, task: NodeTask) -> list[Record]:
            done.append((job, device, task.name, task.setting))
            return []

        jobs = [job(0.1), job(0.2, "pubmed"), job(0.3, setting="missing-edge")]
        with LocalExecutor("cpu", run=run) as place:
            results = place.execute(jobs)
            assert next(results) == (jobs[0], [])
            assert [one for one, *_ in done] == jobs[:1]
            assert [one for one, _ in results] == jobs[1:]
        assert [rest for _, *rest in done] == [
            ["cpu", "cora", "standard"],
            ["cpu", "pubmed", "standard"],
            ["cpu", "cora", "missing-edge"],
        ]

    def test_a_task_is_read_once(self, loads):
        with LocalExecutor("cpu", run=lambda *_: []) as place:
            for _ in range(2):
                list(place.execute([job(0.1), job(0.2), job(0.1, "pubmed")]))
        assert loads == {("cora", "standard"): 1, ("pubmed", "standard"): 1}

    def test_missing_data_turn_up_before_anything_is_trained(self, monkeypatch, learnable):
        def load(dataset: str, setting: str, seed: int) -> NodeTask:
            if dataset == "pubmed":
                raise DataError("pubmed: no such file")
            return learnable

        ran = []
        executors.task_of.cache_clear()
        monkeypatch.setattr(executors, "load", load)
        with LocalExecutor("cpu", run=lambda job, *_: ran.append(job) or []) as place, pytest.raises(DataError):
            list(place.execute([job(), job(dataset="pubmed")]))
        assert ran == []

    def test_it_trains(self, loads):
        ((_, records),) = LocalExecutor("cpu").execute([job()])
        assert [record.seed for record in records] == [0, 1]
        assert {record.status for record in records} == {"limit"}

    def test_a_job_that_finds_no_memory_does_not_end_the_others(self, loads):
        def run(job: Job, device: str, task: NodeTask) -> list[Record]:
            if job.first.dataset == "pubmed":
                raise DeviceMemoryError("none left")
            return []

        jobs = [job(0.1, "pubmed"), job(0.2)]
        with LocalExecutor("cpu", run=run) as place:
            (_, first), (_, second) = place.execute(jobs)
        assert (str(first), second) == ("none left", [])

    def test_where_it_runs(self, loads):
        place = LocalExecutor("cpu")
        assert (place.device, place.workers) == ("cpu", 1)
        assert place.environment().hardware["device"] == "cpu"

    def test_a_device_that_is_not_there(self):
        with pytest.raises(InputError, match="device"):
            LocalExecutor("cup")


class TestByName:
    def test_local(self):
        assert isinstance(make_executor("local", "cpu"), LocalExecutor)
        assert problems_with("local", workers=1) == {}

    def test_an_unknown_name_gets_the_nearest(self):
        assert "Did you mean 'local'?" in problems_with("locall")["executor"]

    def test_all_at_once(self):
        with pytest.raises(InputError) as caught:
            make_executor("rai", "cup", 0)
        assert [problem.argument for problem in caught.value.problems] == ["executor", "workers", "device"]

    def test_more_workers_are_processes(self):
        assert problems_with("local", workers=2) == {}
        made = make_executor("local", "cpu", 3)
        assert (made.device, made.workers) == ("cpu", 3)

    def test_ray_that_is_not_installed(self, monkeypatch):
        monkeypatch.setattr(executors, "find_spec", lambda name: None)
        assert "g3nn[ray]" in problems_with("ray")["executor"]
        with pytest.raises(InputError, match=r"g3nn\[ray\]"):
            make_executor("ray", "cpu")

    def test_ray_knows_no_numbered_device(self, monkeypatch):
        monkeypatch.setattr(executors, "find_spec", lambda name: object())
        assert set(problems_with("ray", "cuda:1")) == {"device"}
        assert isinstance(make_executor("ray", "auto", 3), RayExecutor)


class TestSharing:
    def test_workers_and_gpus(self):
        for device, workers, resources, expected in [
            ("auto", None, {"CPU": 8.0}, ("cpu", 8, 0)),
            ("auto", 3, {"CPU": 8.0}, ("cpu", 3, 0)),
            ("auto", None, {"CPU": 8.0, "GPU": 2.0}, ("cuda", 2, 1.0)),
            ("cuda", 8, {"CPU": 8.0, "GPU": 2.0}, ("cuda", 8, 0.25)),
            ("cuda", 3, {"CPU": 8.0, "GPU": 2.0}, ("cuda", 3, 0.5)),
            ("cuda", 1, {"CPU": 8.0, "GPU": 2.0}, ("cuda", 1, 1.0)),
            ("cpu", 2, {"CPU": 8.0, "GPU": 2.0}, ("cpu", 2, 0)),
        ]:
            assert share(device, workers, resources) == expected

    def test_a_cluster_without_gpus(self):
        with pytest.raises(InputError, match="no GPU"):
            share("cuda", 2, {"CPU": 8.0})


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    before = set(active_children())
    with make_executor("local", "cpu", 2) as opened:
        yield opened
    assert set(active_children()) <= before


@pytest.mark.slow
class TestProcesses:
    @pytest.mark.slow
    def test_it_says_where_it_runs(self, processes):
        assert processes.environment() == LocalExecutor("cpu").environment()

    @pytest.mark.slow
    def test_two_workers_give_the_records_of_one(self, processes):
        assert same_records(processes, LocalExecutor("cpu"))

    @pytest.mark.slow
    def test_each_gets_its_share(self, tmp_path, monkeypatch):
        said = tmp_path / "share"
        monkeypatch.setenv("G3NN_TEST_WORKER", str(said))
        with LocalExecutor("cpu", 4, worker_jobs.says_its_share) as place:
            assert list(place.execute([job()])) == [(job(), [])]
        assert said.read_text() == f"0.25 {max(1, (os.cpu_count() or 1) // 4)}"

    def test_nothing_to_do(self, processes):
        assert list(processes.execute([])) == []

    @pytest.mark.slow
    def test_what_goes_wrong_in_a_process_is_raised_here_and_nothing_is_left_running(self):
        before = set(active_children())
        with pytest.raises(DataError, match="no such file"), LocalExecutor("cpu", 2, worker_jobs.missing) as place:
            list(place.execute([job(), job(0.2)]))
        assert set(active_children()) <= before

    def test_a_process_that_dies(self):
        with pytest.raises(TrainingError, match="fewer workers"), LocalExecutor("cpu", 2, worker_jobs.dies) as place:
            list(place.execute([job()]))

    @pytest.mark.slow
    def test_who_stops_asking_stops_the_work(self):
        before = set(active_children())
        with LocalExecutor("cpu", 2, worker_jobs.sleeps_unless_first) as place:
            assert next(place.execute([job(0.1), job(0.2), job(0.3), job(0.4)])) == (job(0.1), [])
        assert set(active_children()) <= before


STARTER = """
import worker_jobs
from g3nn.studies import executors
from g3nn.studies.job import Job
from g3nn.studies.records import Point

if __name__ == "__main__":
    with executors.LocalExecutor("cpu", 2, worker_jobs.sleeps) as place:
        list(place.execute([Job("trial", (Point("cora", "standard", "gcn", "elbo", {}),), (0,))]))
"""


def _until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it comes true within this time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_workers_follow_a_starter_that_is_killed(tmp_path):
    script, said = tmp_path / "starter.py", tmp_path / "worker"
    script.write_text(STARTER)
    paths = os.pathsep.join([str(Path(worker_jobs.__file__).parent), *sys.path])
    environment = {**os.environ, "G3NN_TEST_WORKER": str(said), "PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL) as starter:
        assert _until(lambda: said.exists() and said.read_text() != "")
        worker = int(said.read_text())
        assert _runs(worker)
        starter.kill()
    assert _until(lambda: not _runs(worker))


def test_missing_data_turn_up_before_a_process_trains(monkeypatch):
    def load(dataset: str, setting: str, seed: int) -> NodeTask:
        raise DataError(f"{dataset}: no such file")

    executors.task_of.cache_clear()
    monkeypatch.setattr(executors, "load", load)
    with LocalExecutor("cpu", 2, worker_jobs.dies) as place, pytest.raises(DataError, match="pubmed"):
        list(place.execute([job(dataset="pubmed")]))
