from __future__ import annotations

import errno
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.errors import DeviceMemoryError, InputError, TrainingError
from g3nn.base.parse import UNKNOWN
from g3nn.graph.task import NodeTask
from g3nn.studies import job as job_module
from g3nn.studies.job import Job, architecture, run_job, split_hash, stack_key
from g3nn.studies.records import Point
from g3nn.studies.selection import chosen, losses
from g3nn.studies.suite import Protocol

SHORT = {"epochs": 4, "patience": 4, "hidden": 4}


def point(model: str = "sbm-gcn", **options: object) -> Point:
    return Point("cora", "standard", model, "elbo", {**SHORT, **options})


def job(*points: Point, stage: str = "trial", first: int = 0) -> Job:
    return Job(stage, points, tuple(range(first, first + len(points))))


@pytest.fixture(scope="module")
def scrambled(learnable) -> NodeTask:
    """Other labels on every test node, all of them wrong."""
    labels = learnable.labels.copy()
    labels[learnable.test] = (labels[learnable.test] + 1) % learnable.num_classes
    return replace(learnable, labels=labels)


class TestJob:
    def test_options_that_may_differ_have_a_value_for_each_replica(self):
        stack = job(point(lr=0.1, eta=1), point(lr=0.2, eta=1))
        assert stack.options() == {**SHORT, "lr": (0.1, 0.2), "eta": (1, 1)}

    def test_what_it_is_about(self):
        stack = job(point(), point())
        assert stack.first == point()
        assert stack.size == 2
        assert str(stack) == "trial sbm-gcn [elbo] on cora standard"

    def test_it_can_be_sent_elsewhere(self):
        stack = job(point(lr=0.1), point(lr=0.2))
        assert pickle.loads(pickle.dumps(stack)) == stack


class TestArchitecture:
    def test_scalars_may_differ(self):
        for options in [{"lr": 0.5}, {"p0": 0.8}, {"eta": 3}, {"graph_weight": 0.1}]:
            (name,) = options
            assert architecture(point(**options)) == architecture(point(**{name: 0.25}))

    def test_the_rest_may_not(self):
        for other in [
            point(hidden=8),
            point(epochs=5),
            point(lr=0.1),
            point("lsm-gcn"),
            replace(point(), dataset="pubmed"),
        ]:
            assert architecture(other) != architecture(point())


class TestRecords:
    def test_a_replica_gives_what_a_single_training_gives(self, learnable):
        points = [point(lr=0.01, eta=1), point(lr=0.1, eta=1), point(lr=0.1, eta=2)]
        records = run_job(Job("trial", tuple(points), (5, 5, 6)), "cpu", learnable)
        for record, one, seed in zip(records, points, (5, 5, 6), strict=True):
            alone = g3nn.fit(learnable, "sbm-gcn", "elbo", seed=seed, device="cpu", **one.options)
            assert (record.point, record.seed, record.stage, record.status) == (one, seed, "trial", "limit")
            assert record.val_loss == pytest.approx(alone.val_loss[0], abs=1e-5)
            assert record.val_accuracy == pytest.approx(alone.val_accuracy[0])
            assert record.test_accuracy == pytest.approx(alone.test_accuracy[0])
            assert (record.epochs, record.best_epoch) == (alone.epochs[0], alone.best_epoch[0])
            assert record.evidence is not None
            assert record.error == ""
        assert len({record.seconds for record in records}) == 1
        assert records[0].seconds > 0

    def test_a_diverged_training_has_no_numbers(self, learnable):
        good, bad = run_job(job(point(lr=0.01), point(lr=1e30)), "cpu", learnable)
        assert (good.status, bad.status) == ("limit", "diverged")
        assert (bad.val_loss, bad.val_accuracy, bad.test_accuracy, bad.evidence) == (None, None, None, None)
        assert good.val_loss is not None

    def test_no_edges_are_no_reason_to_warn(self, edgeless):
        (record,) = run_job(job(point()), "cpu", edgeless)
        assert record.status == "limit"


class TestSelectionIsBlind:
    def test_no_test_label_reaches_the_training(self, monkeypatch, learnable):
        seen = []

        def fit(task: NodeTask, *args: object, **options: object) -> g3nn.FitResult:
            seen.append(task)
            return g3nn.fit(task, *args, **options)

        monkeypatch.setattr(job_module, "fit", fit)
        run_job(job(point(), stage="select"), "cpu", learnable)
        run_job(job(point(), stage="trial"), "cpu", learnable)
        blind, full = seen
        assert blind.test.size == 0
        assert (blind.labels[learnable.test] == UNKNOWN).all()
        others = np.setdiff1d(np.arange(learnable.num_nodes), learnable.test)
        np.testing.assert_array_equal(blind.labels[others], learnable.labels[others])
        assert full is learnable

    def test_records_hold_no_test_result(self, learnable):
        for record in run_job(job(point(), point(), stage="select"), "cpu", learnable):
            assert (record.stage, record.test_accuracy, record.evidence) == ("select", None, None)

    def test_other_test_labels_change_neither_records_nor_choice(self, learnable, scrambled):
        points = [point(lr=lr) for lr in (0.001, 0.01, 0.1)]
        protocol = Protocol(selection_seeds=2, first_selection_seed=0, finalists=2, finalist_seeds=3)
        stack = Job("select", tuple(one for one in points for _ in range(3)), (0, 1, 2) * 3)
        told, lied = (run_job(stack, "cpu", task) for task in (learnable, scrambled))
        assert [replace(one, seconds=0) for one in told] == [replace(one, seconds=0) for one in lied]
        choice = chosen(points, losses(told), protocol)
        assert choice is not None
        assert chosen(points, losses(lied), protocol) == choice

    def test_they_do_change_a_trial(self, learnable, scrambled):
        (told,), (lied,) = (run_job(job(point(lr=0.1)), "cpu", task) for task in (learnable, scrambled))
        assert told.test_accuracy != lied.test_accuracy
        assert told.val_loss == lied.val_loss

    def test_both_stages_have_the_same_split(self, learnable):
        (select,) = run_job(job(point(), stage="select"), "cpu", learnable)
        (trial,) = run_job(job(point()), "cpu", learnable)
        assert select.split == trial.split == split_hash(learnable)

    def test_the_split_tells_nodes_apart(self, learnable):
        for part in ["train", "val", "test"]:
            other = replace(learnable, **{part: getattr(learnable, part)[1:]})
            assert split_hash(other) != split_hash(learnable)

    def test_the_split_tells_parts_apart(self, learnable):
        other = replace(learnable, val=learnable.test, test=learnable.val)
        assert split_hash(other) != split_hash(learnable)


class TestErrors:
    def test_a_training_that_breaks_leaves_failed_records(self, monkeypatch, learnable):
        for error in [TrainingError("too big"), RuntimeError("CUDA error: odd")]:

            def fit(*_: object, error: BaseException = error, **__: object) -> None:
                raise error

            monkeypatch.setattr(job_module, "fit", fit)
            stack = job(point(lr=0.1), point(lr=0.2), stage="select", first=7)
            records = run_job(stack, "cpu", learnable)
            assert [(record.point, record.seed) for record in records] == list(zip(stack.points, (7, 8), strict=True))
            for record in records:
                assert (record.status, record.stage, record.val_loss, record.epochs) == ("failed", "select", None, 0)
                assert record.error == f"{type(error).__name__}: {error}"
                assert record.split == split_hash(learnable)

    def test_a_very_long_error_is_cut(self, monkeypatch, learnable):
        def fit(*_: object, **__: object) -> None:
            raise TrainingError("long " * 10_000)

        monkeypatch.setattr(job_module, "fit", fit)
        (record,) = run_job(job(point()), "cpu", learnable)
        assert 100 < len(record.error) < 5000

    def test_an_interrupt_is_not_a_failure(self, monkeypatch, learnable):
        def fit(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(job_module, "fit", fit)
        with pytest.raises(KeyboardInterrupt):
            run_job(job(point()), "cpu", learnable)

    def test_a_lack_of_memory_says_nothing_about_the_point(self, monkeypatch, learnable):
        wrapped = InputError([])
        wrapped.__context__ = MemoryError()
        for error in [
            DeviceMemoryError("not even one"),
            torch.cuda.OutOfMemoryError("20 MiB"),
            MemoryError(),
            np._core._exceptions._ArrayMemoryError((10**15,), np.dtype(float)),
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            wrapped,
        ]:

            def fit(*_: object, error: BaseException = error, **__: object) -> None:
                raise error

            monkeypatch.setattr(job_module, "fit", fit)
            with pytest.raises(DeviceMemoryError, match=rf"no memory left on cpu \({type(error).__name__}: "):
                run_job(job(point(), stage="select"), "cpu", learnable)

    def test_a_device_that_is_not_there_says_nothing_about_the_point(self, learnable):
        with pytest.raises(InputError, match="device"):
            run_job(job(point()), "cup", learnable)

    def test_neither_does_a_device_that_breaks(self, monkeypatch, learnable):
        def fit(*_: object, **__: object) -> None:
            raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered\nCompile with ...")

        monkeypatch.setattr(job_module, "fit", fit)
        with pytest.raises(
            TrainingError, match=r"trial sbm-gcn .* \(CUDA error: an illegal .* encountered\)\. Finished"
        ):
            run_job(job(point()), "cpu", learnable)

    def test_neither_does_a_device_that_an_earlier_job_broke(self, monkeypatch, learnable):
        def synchronize() -> None:
            raise RuntimeError("CUDA error: an illegal memory access")

        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
        with pytest.raises(TrainingError, match=r"no longer answers .*illegal memory access"):
            run_job(job(point()), "cpu", learnable)


def test_points_share_a_stack_where_they_differ_in_one_number():
    options = {"channels": "flips", "epochs": 3, "hidden": 16}
    one, other, wide = (
        Point("cora", "pair-30", "gcn", "elbo", {**options, **change})
        for change in ({"wrong": 0.1}, {"wrong": 0.3}, {"wrong": 0.1, "hidden": 64})
    )
    assert stack_key(one, 0) == stack_key(other, 0)
    assert len({stack_key(one, 0), stack_key(one, 1), stack_key(wide, 0)}) == 3
    assert Job("trial", (one, other), (0, 0)).options()["wrong"] == (0.1, 0.3)
    split = Point("texas", "standard", "gcn", "elbo", {})
    assert stack_key(split, 0) != stack_key(split, 1)
