"""A training that was interrupted goes on from its checkpoint as if nothing had happened, or says why it cannot."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import save_file

import g3nn
from g3nn.base.errors import DataError, G3NNWarning, InputError
from g3nn.training.stack import Stack

OPTIONS: dict[str, Any] = {"epochs": 10, "device": "cpu", "hidden": 8, "seed": 3}
BATCHES = {"batch": 20, "fan_out": "4/3"}


@pytest.fixture(scope="module")
def task():
    return g3nn.synthetic(nodes=300, classes=3, degree=8, features=12, labels_per_class=15, val=50, seed=1)


@pytest.fixture
def stop_at(monkeypatch):
    """Interrupts the training before an epoch, or lets it run; either way the epochs of all steps are listed."""
    step, steps = Stack.step, []

    def limit(last: int) -> list[int]:
        steps.clear()

        def limited(self: Stack) -> None:
            if self.epoch == last:
                raise KeyboardInterrupt
            steps.append(self.epoch)
            step(self)

        monkeypatch.setattr(Stack, "step", limited)
        return steps

    return limit


@pytest.mark.slow
@pytest.mark.parametrize(("model", "how"), [("sbm-gcn", BATCHES), ("dcsbm-sage", BATCHES), ("sbm-gcn", {})])
def test_an_interrupted_training_ends_alike(task, tmp_path, stop_at, model, how):
    whole = g3nn.fit(task, model, **OPTIONS, **how)
    stop_at(6)
    with pytest.raises(KeyboardInterrupt):
        g3nn.fit(task, model, **OPTIONS, **how, checkpoint=tmp_path / "kept", checkpoint_every=0)
    steps = stop_at(-1)
    again = g3nn.fit(task, model, **OPTIONS, **how, checkpoint=tmp_path / "kept", checkpoint_every=0)
    assert steps == [6, 7, 8, 9]
    np.testing.assert_array_equal(again.answers, whole.answers)
    np.testing.assert_array_equal(again.history, whole.history)
    assert again.val_loss == whole.val_loss


@pytest.mark.slow
def test_each_trial_has_its_own_checkpoint(task, tmp_path, stop_at):
    whole = g3nn.fit(task, trials=2, **OPTIONS, **BATCHES)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 0}
    g3nn.fit(task, trials=2, **OPTIONS, **BATCHES, **kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["replica-0.safetensors", "replica-1.safetensors"]
    steps = stop_at(-1)
    again = g3nn.fit(task, trials=2, **OPTIONS, **BATCHES, **kept)
    assert steps == [9, 9], "only the last epoch of each"
    np.testing.assert_array_equal(again.answers, whole.answers)


def test_a_draft_that_was_left_is_deleted(task, tmp_path):
    left = tmp_path / f".replica-0.safetensors.{'0' * 32}.part"
    left.mkdir()
    os.utime(left, (0, 0))
    g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=tmp_path, checkpoint_every=1e6)
    assert list(tmp_path.iterdir()) == []


def test_seconds_between_checkpoints_are_waited_for(task, tmp_path):
    g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=tmp_path, checkpoint_every=1e6)
    assert list(tmp_path.iterdir()) == []


def test_a_group_of_one_is_like_none(task, tmp_path):
    whole = g3nn.fit(task, **OPTIONS, **BATCHES)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        grouped = g3nn.fit(task, **OPTIONS, **BATCHES)
    finally:
        dist.destroy_process_group()
    np.testing.assert_array_equal(grouped.answers, whole.answers)
    np.testing.assert_array_equal(grouped.history, whole.history)


@pytest.fixture
def kept(task, tmp_path):
    g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=tmp_path, checkpoint_every=0)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "sbm-sage"}, "model sbm-gcn (now sbm-sage)"),
        ({"lr": 0.02}, "lr 0.01 (now 0.02)"),
        ({"seed": 4}, "seeds [3] (now [4])"),
        ({"objective": "released"}, "objective elbo (now released)"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(task, kept, changes, said):
    with pytest.raises(InputError) as refused:
        g3nn.fit(task, **{**OPTIONS, **BATCHES, **changes}, checkpoint=kept)
    assert said in str(refused.value)
    assert "name another folder" in str(refused.value)


def test_a_checkpoint_of_another_task_is_refused(task, kept):
    labels = task.labels.copy()
    labels[task.train[0]] = (labels[task.train[0]] + 1) % 3
    other = g3nn.NodeTask.build(task.features, task.edges, labels, task.train, task.val, task.test)
    with pytest.raises(InputError, match=r"holds a training with digest of the data \w+ \(now \w+\); expected"):
        g3nn.fit(other, **OPTIONS, **BATCHES, checkpoint=kept)


def test_a_checkpoint_of_more_processes_is_refused(task, kept):
    path = kept / "replica-0.safetensors"
    with safe_open(path, "pt") as file:
        known, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {name: text.replace('"processes": 1', '"processes": 2') for name, text in known.items()})
    with pytest.raises(InputError, match=r"processes 2 \(now 1\)"):
        g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=kept)


def test_a_damaged_checkpoint_is_named(task, kept):
    (kept / "replica-0.safetensors").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"replica-0.safetensors: cannot be read: .* Delete it to begin anew"):
        g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=kept)


@pytest.mark.parametrize("training", ["[]", "7", "[" * 5000], ids=["list", "number", "deep"])
def test_a_forged_checkpoint_is_refused(task, kept, training):
    path = kept / "replica-0.safetensors"
    with safe_open(path, "pt") as file:
        known, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {**known, "training": training})
    with pytest.raises(DataError, match=r"replica-0.safetensors: cannot be read: .* Delete it to begin anew"):
        g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=kept)


def test_bad_folders_are_refused_before_training(task, tmp_path, stop_at):
    steps = stop_at(-1)
    file = tmp_path / "file"
    file.write_text("")
    for folder, said in ((file, "a folder that can be written"), (tmp_path / "a" / "b", "inside one that exists")):
        with pytest.raises(InputError, match=said):
            g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=folder)
    with pytest.raises(InputError, match="checkpoint_every: got -1; expected a number of seconds"):
        g3nn.fit(task, **OPTIONS, **BATCHES, checkpoint=tmp_path, checkpoint_every=-1)
    with pytest.raises(InputError, match="checkpoint: got 4 networks that train as one stack"):
        g3nn.fit(task, **OPTIONS, trials=2, ensemble=2, checkpoint=tmp_path)
    assert steps == []


def test_a_full_disk_leaves_the_last_checkpoint_and_training_goes_on(task, tmp_path, stop_at):
    """A limit to the size of files is like a disk that is full: writing fails halfway."""
    how = {**OPTIONS, **BATCHES}
    whole = g3nn.fit(task, **how)
    stop_at(4)
    with pytest.raises(KeyboardInterrupt):
        g3nn.fit(task, **how, checkpoint=tmp_path, checkpoint_every=0)
    stop_at(-1)
    file = tmp_path / "replica-0.safetensors"
    before = file.read_bytes()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        with pytest.warns(G3NNWarning, match="cannot be written: File too large") as warned:
            found = g3nn.fit(task, **how, checkpoint=tmp_path, checkpoint_every=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(warned) == 1
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file], "no draft is left"
    np.testing.assert_array_equal(found.answers, whole.answers)
