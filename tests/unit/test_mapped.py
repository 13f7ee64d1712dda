"""Features in files that are mapped: every kind of file, trainings on them, and files that are not what they seem."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file

import g3nn
from g3nn.base import mapped
from g3nn.base.errors import G3NNError, InputError
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.replicas import Replicas, Sizes


@pytest.fixture
def task():
    return g3nn.synthetic(nodes=150, classes=3, degree=6, features=7, labels_per_class=8, val=20, seed=1)


def write(x: np.ndarray, path) -> str:
    if path.suffix == ".npy":
        np.save(path, x)
    elif path.suffix == ".safetensors":
        save_file({"x": np.ascontiguousarray(x)}, path)
    else:
        pq.write_table(pa.table({f"c{place}": column for place, column in enumerate(x.T)}), path)
    return str(path)


def build(task, features):
    return g3nn.NodeTask.build(features, task.edges, task.labels, task.train, task.val, task.test)


@pytest.mark.parametrize("suffix", mapped.SUFFIXES)
def test_a_file_trains_as_the_same_numbers_in_memory(task, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_BLOCK_BYTES", 4 * 7 * 11)
    on_disk = build(task, write(task.features, tmp_path / f"x{suffix}"))
    assert isinstance(on_disk.features, np.memmap)
    one, two = (g3nn.fit(each, "sbm-sage", epochs=4, device="cpu", batch=10) for each in (task, on_disk))
    np.testing.assert_array_equal(one.history, two.history)
    torch.testing.assert_close(one.answers, two.answers)


def test_without_batches_the_file_is_read_as_a_whole(task, tmp_path):
    on_disk = build(task, write(task.features, tmp_path / "x.npy"))
    one, two = (g3nn.fit(each, "lsm-gcn", epochs=4, device="cpu") for each in (task, on_disk))
    np.testing.assert_array_equal(one.history, two.history)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_answers_are_worked_out_in_blocks(task, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_BLOCK_BYTES", 100)
    x = task.features.astype(kind)
    model = ModelSpec.parse("gcn").build(Sizes.of(task), Replicas((0,)), {})
    inputs = [Inputs.of(build(task, each)) for each in (x, write(x, tmp_path / "x.npy"))]
    with torch.no_grad():
        torch.testing.assert_close(*(model.predict_log_prob(each) for each in inputs))
    assert "whole" not in vars(inputs[1].x.matrix)


def test_a_file_that_changes_is_noticed(task, tmp_path):
    path = tmp_path / "x.npy"
    on_disk = build(task, write(task.features, path))
    from g3nn.training.batches.source import FeatureRows

    rows = FeatureRows(on_disk.features, torch.device("cpu"), torch.float32, on_device=True)
    rows.at(torch.tensor([1, 2]))
    np.save(path, np.zeros((150, 9), dtype=np.float32))
    with pytest.raises(G3NNError, match=r"x\.npy' has changed"):
        rows.at(torch.tensor([1, 2]))


def broken_files(x, folder):
    truncated, pickled, two, header, text = (
        folder / name for name in ("a.npy", "b.npy", "c.safetensors", "d.safetensors", "e.parquet")
    )
    write(x, truncated)
    truncated.write_bytes(truncated.read_bytes()[:-8])
    np.save(pickled, np.array([{}], dtype=object), allow_pickle=True)
    save_file({"x": x, "y": x}, two)
    header.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    pq.write_table(pa.table({"a": ["x", "y"]}), text)
    none = folder / "none.npy"
    other = folder / "x.csv"
    other.write_text("1,2")
    return truncated, pickled, two, header, text, none, other


def test_files_that_are_no_features_are_refused(task, tmp_path):
    for path in broken_files(task.features, tmp_path):
        with pytest.raises(InputError, match="features: got"):
            build(task, path)


def test_a_file_of_another_length_and_one_with_gaps_are_refused(task, tmp_path):
    with pytest.raises(InputError, match="labels"):
        build(task, write(task.features[:-1], tmp_path / "short.npy"))
    holes = task.features.copy()
    holes[3, 2] = np.nan
    with pytest.raises(InputError, match="1 NaN or infinite"):
        build(task, write(holes, tmp_path / "holes.npy"))
