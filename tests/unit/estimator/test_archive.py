from __future__ import annotations

import json

import numpy as np
import pytest

from g3nn.errors import DataError, InputError, Problems
from g3nn.estimator import archive
from g3nn.estimator.archive import RECORD, read_archive, write_archive

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
    (folder / RECORD).write_text(json.dumps({**record, "checksum": archive._own_checksum(record)}))


def test_what_is_written_is_read(folder):
    record, tensors = read_archive(folder)
    assert record["words"] == ["ä", 1, None]
    assert tensors.keys() == TENSORS.keys()
    for name, arrays in TENSORS.items():
        for key, array in arrays.items():
            np.testing.assert_array_equal(tensors[name][key], array)
            assert tensors[name][key].dtype == array.dtype


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


def test_a_newer_format_is_named(folder):
    rewrite(folder, version=99)
    with pytest.raises(DataError, match=r"newer g3nn \(format 99, this one reads 3\)\. Upgrade"):
        read_archive(folder)


def test_an_older_format_is_named(folder):
    rewrite(folder, version=1)
    with pytest.raises(DataError, match=r"older g3nn \(format 1, this one reads 3\)\. .*fit and save the model again"):
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
    rewrite(folder, files={name: archive._checksum(folder / name) for name in TENSORS})
    with pytest.raises(DataError, match="fresh copy"):
        read_archive(folder)
