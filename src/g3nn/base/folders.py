"""Files and folders of results appear complete or not at all, even if the run is killed or the machine stops.

Everything is drafted in a staging folder, which is hidden and on the same disk, and moved to its place at the end. A
staging folder is locked as long as its process lives, so that a later process can tell one that was left behind.
Several entries cannot move into a folder at once: then the staging folder is first renamed as complete, and the next
process that finds it moves the rest.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from g3nn.base.errors import DataError, Problems

_SHOWN = 40
"""Characters of a name that its staging folder has in its own: with all of them a long name would become too long."""
_INSIDE = "g3nn"
"""The name of a staging folder for the content of the folder that it is in."""
_PART, _WHOLE = ".part", ".whole"
"""Suffixes of staging folders: with drafts, and with content that is moving into the folder around."""
_FRESH, _DAY = 1.0, 86_400.0
"""Ages in seconds: up to the first, a staging folder may not be locked yet; beyond the second, one was surely left
behind where nothing can be locked."""


def check_new_folder(path: Path, problems: Problems, argument: str = "out") -> None:
    """Record a problem if a folder of results cannot be written to `path`, found by drafting something there."""
    try:
        tidy(path)
        _end_moves(path)
        there = path.is_dir()
        if there and (found := _content(path)):
            advice = f"Name another folder, or empty this one, which holds {found[0].name}."
            problems.add(argument, f"{path}, which is not empty", "a new or an empty folder", advice)
        elif not there and (path.exists() or path.is_symlink()):
            problems.add(argument, f"{path}, which is a file", "a new or an empty folder")
        elif not path.absolute().parent.is_dir():
            problems.add(argument, path, "a new folder inside one that exists")
        else:
            try_writing(*((path, _INSIDE) if there else (path.absolute().parent, path.name)))
    except (OSError, _UnwrittenError) as error:
        problems.add(argument, f"{path}: {_reason(error)}", "a folder that can be written")


def check_new_file(path: Path, problems: Problems, argument: str = "out") -> None:
    """Record a problem if a file of results cannot be written to `path`. A file that is there stays as it is."""
    try:
        if path.is_dir():
            problems.add(argument, path, "a file, not a folder")
        elif not path.absolute().parent.is_dir():
            problems.add(argument, path, "a file in a folder that exists")
        else:
            try_writing(path.absolute().parent, path.name)
    except OSError as error:
        problems.add(argument, f"{path}: {_reason(error)}", "a file that can be written")


def try_writing(folder: Path, name: str = "trial") -> None:
    """Draft a file of this name, as results are drafted, and delete it. An OSError says why not."""
    with _staged(folder, name) as staging:
        (staging / "draft").write_bytes(b"trial")
        os.replace(staging / "draft", staging / name)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into. At the end it becomes `path`; if there is an empty folder, which may be a link or the
    place where a disk is mounted, its content moves in there."""
    if not path.is_dir():
        with replacing(path) as draft:
            draft.mkdir()
            yield draft
        return
    with _explained(path), _staged(path, _INSIDE) as staging:
        yield staging
        _synchronise(staging)
        if _content(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        _move_content(staging.rename(staging.with_suffix(_WHOLE)), path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path` for a file or folder, which is renamed to `path` at the end, or deleted on an error. A link
    stays one, and what is no file, such as a device, is written to itself."""
    target = Path(os.path.realpath(path))
    with _explained(path):
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
            yield path
            return
        with _staged(target.parent, target.name) as staging:
            draft = staging / target.name
            yield draft
            _put(draft, target)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """As `replacing`, for a new file: if another process is faster, its file stays. An OSError says why not."""
    path = path.absolute()
    with _staged(path.parent, path.name) as staging:
        draft = staging / path.name
        yield draft
        _synchronise(draft)
        # Unlike renaming, linking never replaces an existing file.
        with suppress(FileExistsError):
            os.link(draft, path)
        _synchronise_folder(path.parent)


@contextmanager
def swapped(path: Path) -> Iterator[Path]:
    """A place beside `path` for a folder that takes its place at the end, whatever was there. Killed between the two
    renames, the former folder waits under another name for `mend`."""
    path = path.absolute()
    former = _former(path)
    with _staged(path.parent, path.name) as staging:
        draft = staging / path.name
        yield draft
        _bring_back(path)
        _discard(former, staging)
        if path.exists():
            os.replace(path, former)
        _put(draft, path)
        _discard(former, staging)


def mend(path: Path) -> None:
    """End what a killed process began: a folder whose content was moving in gets the rest, and one that was to be
    replaced comes back. Where a process is at work, nothing changes."""
    path = Path(os.path.realpath(path))
    with suppress(OSError):  # A process is at work, or nothing may be written.
        for staging in _staging_folders(path.parent, path.name):
            with _locked(staging):
                pass
        _bring_back(path)
    with suppress(OSError):
        _end_moves(path)


def tidy(path: Path) -> None:
    """Delete the drafts of `path` that killed processes left."""
    for staging in _staging_folders(path.absolute().parent, path.name):
        _delete_if_left(staging)


def _bring_back(path: Path) -> None:
    if _former(path).exists() and not path.exists():
        os.replace(_former(path), path)


def _discard(folder: Path, staging: Path) -> None:
    """Move a folder into a staging folder, which is deleted: under its own name nothing is ever half there."""
    if folder.exists():
        os.replace(folder, staging / uuid4().hex)


def _end_moves(path: Path) -> None:
    for staging in _staging_folders(path, _INSIDE):
        if staging.suffix == _WHOLE:
            _delete_if_left(staging)


def _former(path: Path) -> Path:
    return path.with_name(f".{path.name}.former")


def _put(draft: Path, path: Path) -> None:
    _synchronise(draft)
    os.replace(draft, path)
    _synchronise_folder(path.parent)


def _move_content(staging: Path, folder: Path) -> None:
    """All of it, or on an error nothing."""
    moved: list[Path] = []
    try:
        for entry in sorted(staging.iterdir()):
            os.replace(entry, folder / entry.name)
            moved.append(entry)
    except BaseException:
        for entry in moved:
            os.replace(folder / entry.name, entry)
        raise
    _synchronise_folder(folder)


def _synchronise(path: Path) -> None:
    """Wait until a file, or a folder and what is in it, is on the disk: otherwise a new name may outlive its content
    when the machine stops."""
    if path.is_dir():
        for entry in path.iterdir():
            _synchronise(entry)
        _synchronise_folder(path)
    else:
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _synchronise_folder(path: Path) -> None:
    with suppress(OSError):  # Not every system can.
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _UnwrittenError(DataError):
    """A path cannot be written. Where one draft is inside another, the outer path is named."""


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, _UnwrittenError) as error:
        cause = error.__cause__ if isinstance(error, _UnwrittenError) else error
        raise _UnwrittenError(f"{path}: cannot be written: {_reason(error)}.") from cause


def _reason(error: BaseException) -> str:
    """The reason in words, without the name of a draft."""
    cause = error.__cause__ if isinstance(error, _UnwrittenError) and error.__cause__ else error
    return getattr(cause, "strerror", None) or str(cause)


@contextmanager
def _staged(folder: Path, name: str) -> Iterator[Path]:
    """A new staging folder for drafts of what will have this name in the folder; deleted at the end."""
    tidy(folder / name)
    # Not one of tempfile, whose folders are private to one user.
    staging = folder / f".{name[:_SHOWN]}.{uuid4().hex}{_PART}"
    staging.mkdir()
    try:
        with _locked(staging):
            yield staging
    finally:
        for place in (staging, staging.with_suffix(_WHOLE)):
            shutil.rmtree(place, ignore_errors=True)


def _staging_folders(folder: Path, name: str) -> list[Path]:
    """The staging folders for a name, of any process."""
    form = re.compile(rf"\.{re.escape(name[:_SHOWN])}\.[0-9a-f]{{32}}(?:{_PART}|{_WHOLE})")
    try:
        return [entry for entry in folder.iterdir() if form.fullmatch(entry.name) and entry.is_dir()]
    except OSError:
        return []  # Some folders can be written but not listed; others do not exist.


def _content(folder: Path) -> list[Path]:
    """The entries of a folder, apart from staging folders for its own content."""
    return sorted({*folder.iterdir()} - {*_staging_folders(folder, _INSIDE)})


@contextmanager
def _locked(staging: Path) -> Iterator[bool]:
    """Lock a staging folder as long as this process lives; whether the system can. BlockingIOError: another has it."""
    handle = os.open(staging, os.O_RDONLY)
    try:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            can_lock = True
        except BlockingIOError:
            raise
        except (ImportError, OSError):
            can_lock = False  # Not every system has locks.
        yield can_lock
    finally:
        os.close(handle)


def _delete_if_left(staging: Path) -> None:
    """Delete a staging folder whose process has ended. Complete content moves to its place first, unless something else
    is there."""
    with suppress(OSError):  # It is in use, already gone, or of another user.
        age, whole = time.time() - staging.stat().st_mtime, staging.suffix == _WHOLE
        with _locked(staging) as surely:
            if not (age > (_FRESH if surely else _DAY) or (whole and surely)):
                return
            if whole:
                if any(os.path.lexists(staging.parent / entry.name) for entry in staging.iterdir()):
                    return
                _move_content(staging, staging.parent)
            shutil.rmtree(staging, ignore_errors=True)
