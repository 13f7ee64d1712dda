from __future__ import annotations

import json
import os
import resource
import signal
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from g3nn.base.errors import DataError, InputError, Problems
from g3nn.estimator import saving
from g3nn.estimator.saving import RECORD, read_archive, write_archive

TENSORS = {"a.safetensors": {"x": np.arange(3.0), "none": np.zeros((2, 0))}, "b.safetensors": {"y": np.array([True])}}


@pytest.fixture
def folder(tmp_path):
    write_archive(tmp_path / "model", {"words": ["ä", 1, None]}, TENSORS, Problems())
    return tmp_path / "model"


def rewrite(folder, **changes):
    """Change the record and its checksum too, as somebody would who knows how."""
    record = json.loads((folder / RECORD).read_text())
    record = {**record, **changes}
    del record["checksum"]
    (folder / RECORD).write_text(json.dumps({**record, "checksum": saving._own_checksum(record)}))


def test_what_is_written_is_read(folder):
    record, tensors = read_archive(folder)
    assert record["words"] == ["ä", 1, None]
    assert tensors.keys() == TENSORS.keys()
    for name, arrays in TENSORS.items():
        for key, array in arrays.items():
            np.testing.assert_array_equal(tensors[name][key], array)
            assert tensors[name][key].dtype == array.dtype


def test_what_was_moving_into_its_folder_when_it_was_killed_is_read(folder):
    room = folder / f".g3nn.{'0' * 32}.whole"
    room.mkdir()
    (folder / RECORD).rename(room / RECORD)
    assert read_archive(folder)[0]["words"] == ["ä", 1, None]
    assert not room.exists()


def test_only_a_new_or_empty_folder_is_written(folder, tmp_path):
    with pytest.raises(InputError, match="not empty"):
        write_archive(folder, {}, {}, Problems())
    (tmp_path / "empty").mkdir()
    write_archive(tmp_path / "empty", {}, {}, Problems())
    assert [entry.name for entry in (tmp_path / "empty").iterdir()] == [RECORD]
    problems = Problems()
    problems.add("x", 1, "2")
    with pytest.raises(InputError, match="2 problems"):
        write_archive(tmp_path / "no" / "where", {}, {}, problems)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["empty", "model"]


def test_a_damaged_file_is_noticed(folder):
    path = folder / "a.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"a\.safetensors was damaged or changed"):
        read_archive(folder)


def test_missing_and_extra_files_are_named(folder):
    (folder / "code.py").write_text("raise SystemExit")
    with pytest.raises(DataError, match=r"code\.py was not written with the model"):
        read_archive(folder)
    (folder / "code.py").unlink()
    (folder / "b.safetensors").unlink()
    with pytest.raises(DataError, match=r"b\.safetensors is missing"):
        read_archive(folder)
    (folder / "b.safetensors").mkdir()
    with pytest.raises(DataError, match="damaged or changed"):
        read_archive(folder)


def test_a_changed_record_is_noticed(folder):
    path = folder / RECORD
    path.write_text(path.read_text().replace("null", "2"))
    with pytest.raises(DataError, match=r"model\.json: was damaged or changed"):
        read_archive(folder)


@pytest.mark.parametrize("depth", [990, 10**5])
def test_a_record_that_is_nested_too_deeply(folder, depth):
    record = json.loads((folder / RECORD).read_text())
    text = json.dumps({**record, "words": 0}).replace('"words": 0', f'"words": {"[" * depth}{"]" * depth}')
    (folder / RECORD).write_text(text)
    with pytest.raises(DataError, match=r"model\.json: (cannot be read|was damaged)"):
        read_archive(folder)


def test_a_record_without_files(folder):
    record = json.loads((folder / RECORD).read_text())
    del record["files"], record["checksum"]
    (folder / RECORD).write_text(json.dumps({**record, "checksum": saving._own_checksum(record)}))
    with pytest.raises(DataError, match=r"model\.json: was damaged or changed"):
        read_archive(folder)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_numbers_that_no_array_holds(folder, kind):
    save_file({"x": torch.zeros(3, dtype=kind)}, folder / "a.safetensors")
    rewrite(folder, files={name: saving._checksum(folder / name) for name in TENSORS})
    with pytest.raises(DataError, match=r"a\.safetensors: x holds numbers of the kind (BF16|F8_E4M3|F8_E5M2)"):
        read_archive(folder)


@pytest.mark.parametrize("name", [RECORD, "a.safetensors"])
def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch, name):
    opened = Path.open

    def refuse(path, *words, **options):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *words, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError) as caught:
        read_archive(folder)
    assert str(caught.value).startswith(f"{folder / name}: cannot be read: Permission denied. Check who may read it")


def test_all_files_follow_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        write_archive(tmp_path / "model", {}, TENSORS, Problems())
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()} == {0o640}


def test_a_full_disk_leaves_nothing(tmp_path):
    """A limit to the size of files is like a disk that is full: writing fails halfway."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        with pytest.raises(DataError, match=r"model: cannot be written: .*File too large"):
            write_archive(tmp_path / "model", {}, {"a.safetensors": {"x": np.zeros(10_000)}}, Problems())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


def test_a_newer_format_is_named(folder):
    rewrite(folder, version=99)
    with pytest.raises(DataError, match=r"newer g3nn \(format 99, this one reads 3 to 5\)\. Upgrade"):
        read_archive(folder)


def test_an_older_format_is_named(folder):
    rewrite(folder, version=1)
    with pytest.raises(
        DataError, match=r"older g3nn \(format 1, this one reads 3 to 5\)\. .*fit and save the model again"
    ):
        read_archive(folder)


@pytest.mark.parametrize("version", [0, None, "1"])
def test_a_format_that_never_was(folder, version):
    rewrite(folder, version=version)
    with pytest.raises(DataError, match="damaged or changed"):
        read_archive(folder)


def test_files_outside_the_folder_are_never_read(folder):
    rewrite(folder, files={"../secret": "0"})
    with pytest.raises(DataError, match=r"\.\./secret is missing"):
        read_archive(folder)
    rewrite(folder, files=["a.safetensors"])
    with pytest.raises(DataError, match="damaged or changed"):
        read_archive(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}', '"text"'])
def test_what_is_no_record(folder, content):
    (folder / RECORD).write_text(content)
    with pytest.raises(DataError, match=r"model\.json"):
        read_archive(folder)


def test_what_is_no_folder(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"there is no model\.json in it"):
            read_archive(path)


def test_a_file_that_is_no_safetensors(folder):
    (folder / "a.safetensors").write_bytes(b"not one")
    rewrite(folder, files={name: saving._checksum(folder / name) for name in TENSORS})
    with pytest.raises(DataError, match="fresh copy"):
        read_archive(folder)
