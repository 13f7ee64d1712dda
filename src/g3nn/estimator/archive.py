"""A folder of one JSON record and some safetensors files, with a checksum of each. Reading it runs no code from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from g3nn.base.errors import DataError, Problems
from g3nn.base.folders import check_new_folder, mend, new_folder
from g3nn.model.objective import TERM_NAMES

FORMAT, VERSION = "g3nn-model", 4
FIRST = 3
"""The oldest version of the format that is read: that of g3nn 0.2.0, the first release."""

RECORD, PARAMETERS, GRAPH, AUDIT = "model.json", "model.safetensors", "graph.safetensors", "audit.safetensors"
MODEL = "model"
"""The folder of the model inside a folder of results."""

Arrays = Mapping[str, np.ndarray]

Record = dict[str, Any]
Tensors = dict[str, Arrays]


def _from_3(record: Record, tensors: Tensors) -> tuple[Record, Tensors]:
    """Learning curves got a term for channels, which is zero where there are none; whether validation nodes were
    trained on in the end is no longer told by the parameters."""
    place, arrays = TERM_NAMES.index("channels"), tensors[GRAPH]
    longer = {name: np.insert(array, place, 0, axis=1) for name, array in arrays.items() if name.endswith(".history")}
    fitted = {**record["fitted"], "refitted": bool(record["parameters"]["refit"])}
    return {**record, "fitted": fitted}, {**tensors, GRAPH: {**arrays, **longer}}


MIGRATIONS: dict[int, Callable[[Record, Tensors], tuple[Record, Tensors]]] = {3: _from_3}
"""For each version that was released before the current one: what turns the content of a folder into that of the next.
Whoever raises VERSION adds one here, and the folder of a model to tests/released."""

_NUMBERS = {"BOOL", "F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64"}
"""What numpy has, of what a safetensors file may hold."""

_READ = f"{FIRST} to {VERSION}" if FIRST < VERSION else f"{VERSION}"
_AGAIN = "Take a fresh copy of the folder, or fit and save the model again."


def write_archive(folder: Path, record: Mapping[str, Any], tensors: Mapping[str, Arrays], problems: Problems) -> None:
    """Raises for all problems, those found before among them; else the folder appears whole or not at all."""
    check_new_folder(folder, problems, "folder")
    problems.raise_if_any()
    with new_folder(folder) as draft:
        for name, arrays in tensors.items():
            _write_tensors(draft / name, arrays)
        files = {name: _checksum(draft / name) for name in tensors}
        content = {"format": FORMAT, "version": VERSION, **record, "files": files}
        text = json.dumps({**content, "checksum": _own_checksum(content)}, indent=1)
        (draft / RECORD).write_text(text + "\n", encoding="utf-8")


def read_archive(folder: Path) -> tuple[Record, Tensors]:
    """The record and the arrays of each file, or a `DataError` that says what is wrong and what to do. What an older
    release wrote comes in the current version.

    folder: of a model, or of results with a model inside.
    """
    mend(folder)
    try:
        inside = folder / MODEL
        return _read(inside if (inside / RECORD).is_file() else folder)
    except OSError as error:
        advice = "Check who may read it, or take a fresh copy."
        raise DataError(f"{error.filename or folder}: cannot be read: {error.strerror or error}. {advice}") from error


def _write_tensors(path: Path, arrays: Arrays) -> None:
    path.touch()
    rights = path.stat().st_mode
    try:
        save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(rights)  # safetensors makes files that are private to one user.


def _read(folder: Path) -> tuple[Record, Tensors]:
    record = _read_record(folder)
    files = record["files"]
    there = {entry.name for entry in folder.iterdir()} - {RECORD}
    absent, extra = sorted(set(files) - there), sorted(there - set(files))
    if absent:
        raise DataError(f"{folder}: {', '.join(absent)} is missing. {_AGAIN}")
    if extra:
        found = ", ".join(extra[:5])
        raise DataError(f"{folder}: {found} was not written with the model. Move it away, or take a fresh copy.")
    changed = [name for name in files if not (folder / name).is_file() or _checksum(folder / name) != files[name]]
    if changed:
        raise DataError(f"{folder}: {', '.join(changed)} was damaged or changed after it was saved. {_AGAIN}")
    try:
        tensors = {name: _read_tensors(folder / name) for name in files}
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{folder}: {error}. {_AGAIN}") from error
    for version in range(record["version"], VERSION):
        record, tensors = MIGRATIONS[version](record, tensors)
    return record, tensors


def _read_tensors(path: Path) -> Arrays:
    with safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118 - no mapping
            if (kind := file.get_slice(name).get_dtype()) not in _NUMBERS:
                raise ValueError(f"{path.name}: {name} holds numbers of the kind {kind}, which no g3nn writes")
    return load_file(path)


def _read_record(folder: Path) -> Record:
    path = folder / RECORD
    if not path.is_file():
        raise DataError(f"{folder}: there is no {RECORD} in it. Name a folder that `save` of an estimator wrote.")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        checksum = _own_checksum(record) if isinstance(record, dict) else ""
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}). {_AGAIN}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{path}: is not the record of a g3nn model. Name a folder that `save` of an estimator wrote.")
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise DataError(f"{path}: written by a newer g3nn (format {version}, this one reads {_READ}). Upgrade g3nn.")
    if isinstance(version, int) and 0 < version < FIRST:
        raise DataError(f"{path}: written by an older g3nn (format {version}, this one reads {_READ}). {_AGAIN}")
    if (
        not isinstance(version, int)
        or not FIRST <= version <= VERSION
        or record.get("checksum") != checksum
        or not isinstance(record.get("files"), dict)
    ):
        raise DataError(f"{path}: was damaged or changed after it was saved. {_AGAIN}")
    return record


def _own_checksum(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
