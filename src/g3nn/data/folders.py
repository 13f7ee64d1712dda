"""Files and folders of results appear complete or not at all, even if the run is interrupted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from g3nn.errors import DataError, Problems


def check_new_folder(path: Path, problems: Problems, argument: str = "out") -> None:
    """Record a problem if a folder of results cannot be written to `path`."""
    parent = path.absolute().parent
    if path.is_dir():
        if any(path.iterdir()):
            advice = "Name another folder, or empty this one."
            problems.add(argument, f"{path}, which is not empty", "a new or an empty folder", advice)
    elif path.exists() or path.is_symlink():
        problems.add(argument, f"{path}, which is a file", "a new or an empty folder")
    elif not parent.is_dir():
        problems.add(argument, path, "a new folder inside one that exists")
    if parent.is_dir() and not os.access(parent, os.W_OK):
        problems.add(argument, path, "a folder that can be written")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `path` at the end."""
    with replacing(path) as draft:
        draft.mkdir()
        yield draft


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path` for a file or folder, which is renamed to `path` at the end, or deleted on an error."""
    path = path.absolute()
    # Not tempfile, which makes files that are private to one user.
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}.") from error
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)


@contextmanager
def swapped(path: Path) -> Iterator[Path]:
    """A place beside `path` for a folder that takes its place at the end, whatever was there. Killed between the two
    renames, the former folder waits under another name for `mend_swapped`."""
    path = path.absolute()
    former = _former(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        yield draft
        mend_swapped(path)
        if path.exists():
            os.replace(path, former)
        os.replace(draft, path)
    shutil.rmtree(former, ignore_errors=True)


def mend_swapped(path: Path) -> None:
    """Bring back the former folder if a swap was interrupted, or delete it if the new one is there."""
    former = _former(path.absolute())
    if former.exists() and not path.exists():
        os.replace(former, path)
    shutil.rmtree(former, ignore_errors=True)


def _former(path: Path) -> Path:
    return path.with_name(f".{path.name}.former")
