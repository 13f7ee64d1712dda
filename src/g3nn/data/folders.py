"""Files and folders of results appear complete or not at all, even if the run is interrupted."""

from __future__ import annotations

import os
import shutil
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
