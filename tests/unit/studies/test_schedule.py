from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from g3nn.studies.job import Job
from g3nn.studies.records import Record
from g3nn.studies.run import schedule
from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Only, Protocol, Suite

PROTOCOL = Protocol(trials=3, selection_seeds=2, finalists=2, finalist_seeds=5)


def pending(suite: Suite, store: Store, only: Only, most: int) -> list[Job]:
    return schedule(suite, store, only, most).jobs


Pretend = Callable[[Iterable[Job]], list[Record]]


def a_suite(*cells: Cell, **axes: tuple[float, ...]) -> Suite:
    grid = Grid(tuple(cell.model for cell in cells), ("elbo", "released"), (), (), axes)
    return Suite("s", "", "", PROTOCOL, ("released", "elbo"), (grid,), cells, fixed={"epochs": 3})


GCN = Cell("1", "cora", "standard", "gcn")
SBM = Cell("1", "cora", "standard", "sbm-gcn")


@pytest.fixture
def pretend(make_record) -> Pretend:
    """Records of jobs that nobody trained. The lower the learning rate, the better."""

    def run(jobs: Iterable[Job]) -> list[Record]:
        return [
            make_record(point, job.stage, seed, val_loss=point.options.get("lr", 0.0))
            for job in jobs
            for point, seed in zip(job.points, job.seeds, strict=True)
        ]

    return run


def trainings(jobs: Iterable[Job]) -> Counter[tuple[str, str, int]]:
    return Counter(
        (job.stage, point.key, seed) for job in jobs for point, seed in zip(job.points, job.seeds, strict=True)
    )


def shape(jobs: Iterable[Job]) -> list[tuple[str, str, list[tuple[object, int]]]]:
    """Stage, model, and the learning rate and seed of each replica."""
    return [
        (
            job.stage,
            job.first.model,
            [(point.options["lr"], seed) for point, seed in zip(job.points, job.seeds, strict=True)],
        )
        for job in jobs
    ]


def test_the_phases_of_one_cell(store, pretend):
    suite = a_suite(GCN, lr=(0.3, 0.1, 0.2))
    first = pending(suite, store, None, 32)
    assert shape(first) == [("select", "gcn", [(lr, seed) for lr in (0.3, 0.1, 0.2) for seed in (1000, 1001)])]
    store.append(pretend(first))
    second = pending(suite, store, None, 32)
    assert shape(second) == [("select", "gcn", [(lr, seed) for lr in (0.1, 0.2) for seed in (1002, 1003, 1004)])]
    store.append(pretend(second))
    trials = pending(suite, store, None, 32)
    assert shape(trials) == [("trial", "gcn", [(0.1, seed) for seed in (0, 1, 2)])]
    store.append(pretend(trials))
    assert pending(suite, store, None, 32) == []


def test_a_grid_of_one_point_goes_straight_to_the_trials(store):
    assert [job.stage for job in pending(a_suite(GCN, lr=(0.1,)), store, None, 32)] == ["trial"]


def test_another_number_of_trials_asks_for_the_missing_ones(store, pretend):
    suite = a_suite(GCN, lr=(0.1,))
    store.append(pretend(pending(suite, store, None, 32)))
    assert shape(pending(suite.with_trials(5), store, None, 32)) == [("trial", "gcn", [(0.1, 3), (0.1, 4)])]
    assert pending(suite.with_trials(1), store, None, 32) == []


def test_architectures_are_kept_apart(store):
    suite = a_suite(SBM, GCN, hidden=(4, 8), lr=(0.1, 0.2))
    jobs = pending(suite, store, None, 32)
    found = [(job.first.model, job.first.objective, job.first.options["hidden"], job.size) for job in jobs]
    expected = [("sbm-gcn", "released"), ("sbm-gcn", "elbo"), ("gcn", "released")]
    assert found == [(model, objective, hidden, 4) for model, objective in expected for hidden in (4, 8)]


def test_jobs_are_of_limited_and_even_size(store):
    for most, sizes in [(6, [6]), (5, [3, 3]), (1, [1] * 6)]:
        jobs = pending(a_suite(GCN, lr=(0.1, 0.2, 0.3)), store, None, most)
        assert [job.size for job in jobs] == sizes
        assert set(trainings(jobs).values()) == {1}


def test_cells_with_the_same_points_are_done_once(store):
    twice = a_suite(GCN, Cell("2", "cora", "standard", "gcn"), lr=(0.1, 0.2))
    assert pending(twice, store, None, 32) == pending(a_suite(GCN, lr=(0.1, 0.2)), store, None, 32)
    assert schedule(twice, store, None, 32).trainings.total() == 2 * 2 + 2 * 3 + 3


def test_a_cell_may_have_its_own_number_of_trials(store):
    few = Cell("2", "citeseer", "standard", "gcn", trials=1)
    jobs = pending(a_suite(GCN, few, lr=(0.1,)), store, None, 32)
    assert [(job.first.dataset, job.seeds) for job in jobs] == [("cora", (0, 1, 2)), ("citeseer", (0,))]
    (job,) = pending(a_suite(GCN, Cell("2", "cora", "standard", "gcn", trials=5), lr=(0.1,)), store, None, 32)
    assert job.seeds == (0, 1, 2, 3, 4)


def test_the_same_model_in_another_setting_is_something_else(store):
    jobs = pending(a_suite(GCN, Cell("2", "cora", "missing-edge", "gcn"), lr=(0.1,)), store, None, 32)
    assert [job.first.setting for job in jobs] == ["standard", "missing-edge"]


def test_a_part_of_the_suite(store):
    suite = a_suite(GCN, SBM, lr=(0.1, 0.2))
    assert {job.first.model for job in pending(suite, store, {"model": "sbm-gcn"}, 32)} == {"sbm-gcn"}
    assert [job.first.objective for job in pending(suite, store, {"objective": "elbo"}, 32)] == ["elbo"]


def test_what_failed_is_done(store, make_record):
    suite = a_suite(GCN, lr=(0.1,))
    (job,) = pending(suite, store, None, 32)
    failed = {"status": "failed", "val_loss": None, "val_accuracy": None, "error": "MemoryError: "}
    store.append([make_record(job.points[0], "trial", seed, **failed) for seed in job.seeds])
    assert pending(suite, store, None, 32) == []


def test_an_interrupted_round_goes_on_with_the_same_stacks(small_suite, store, pretend):
    rng = random.Random(4)
    while jobs := pending(small_suite, store, None, 3):
        assert pending(small_suite, store, None, 3) == jobs
        done = rng.sample(jobs, rng.randint(1, len(jobs)))
        store.append(pretend(done))
        left = [job for job in jobs if job not in done]
        # A grid whose round is complete goes on with its next one.
        assert [job for job in pending(small_suite, store, None, 3) if job in jobs] == left


def test_part_of_a_stack_that_is_there_is_left_out(store, pretend):
    suite = a_suite(GCN, lr=(0.1, 0.2))
    (job,) = pending(suite, store, None, 32)
    store.append(pretend([job])[1:3])
    (rest,) = pending(suite, store, None, 32)
    assert trainings([rest]) == trainings([Job("select", job.points[::3], job.seeds[::3])])


def test_the_other_stacks_stay_the_same_when_part_of_one_is_there(store, pretend):
    suite = a_suite(GCN, lr=(0.1, 0.2, 0.3, 0.4, 0.5))
    first, second, third = pending(suite, store, None, 4)
    store.append(pretend([second])[-1:])
    again = pending(suite, store, None, 4)
    assert (again[0], again[2]) == (first, third)
    assert trainings(again[1:2]) == trainings([Job("select", second.points[:-1], second.seeds[:-1])])


def test_every_training_is_asked_for_once_whatever_the_size_of_stacks(small_suite, tmp_path, pretend):
    runs = []
    for most in (1, 3, 256):
        asked: Counter[tuple[str, str, int]] = Counter()
        with Store.open(tmp_path / f"{most}.sqlite") as store:
            while jobs := pending(small_suite, store, None, most):
                asked += trainings(jobs)
                store.append(pretend(jobs))
        runs.append(asked)
    assert set(runs[0].values()) == {1}
    assert runs[0] == runs[1] == runs[2]


def test_the_estimate_counts_what_will_follow(small_suite, store, pretend):
    expected = schedule(small_suite, store, None, 256)
    done = 0
    while jobs := pending(small_suite, store, None, 256):
        work = schedule(small_suite, store, None, 256)
        assert work.trainings.total() == expected.trainings.total() - done
        assert work.stacks >= len(jobs)
        store.append(pretend(jobs))
        done += sum(job.size for job in jobs)
    assert done == expected.trainings.total()
    assert schedule(small_suite, store, None, 256).trainings.total() == 0


def test_the_estimate_is_told_apart_by_dataset_and_model(store):
    work = schedule(a_suite(GCN, SBM, lr=(0.1,)), store, None, 32)
    assert dict(work.trainings) == {("cora", "gcn"): 3, ("cora", "sbm-gcn"): 6}
