"""Where the results of commands go, also if they cannot be written where they should."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from g3nn.base.errors import DataError, Problems, any_of
from g3nn.base.folders import check_new_file, check_new_folder
from g3nn.cli import said
from g3nn.graph.tables.frames import TABLE_SUFFIXES, check_excel


def as_file(out: Path) -> bool:
    """Whether the answers alone are wanted, in one file."""
    return out.suffix.lower() in TABLE_SUFFIXES and not out.is_dir()


def check_out(out: Path | None, inputs: Sequence[Path | None], dry_run: bool, problems: Problems) -> None:
    """Record why results cannot be written there: into a folder, or into a file that does not replace an input."""
    if dry_run:
        return
    if out is None:
        problems.add("out", "nothing", "a folder or a file for the results", "--dry-run needs none.")
    elif as_file(out) or (re.fullmatch(r"\.[A-Za-z]{2,5}", out.suffix) and not out.is_dir()):
        check_file(out, inputs, problems, ", or a folder")
    else:
        check_new_folder(out, problems)


def check_file(out: Path, inputs: Sequence[Path | None], problems: Problems, other: str = "") -> None:
    if out.suffix.lower() not in TABLE_SUFFIXES:
        problems.add("out", out, f"a file that ends in {any_of(TABLE_SUFFIXES)}{other}")
    elif any(path is not None and out.resolve() == path.resolve() for path in inputs):
        problems.add("out", out, "another file than the tables that are read")
    else:
        check_new_file(out, problems)
    try:
        check_excel(out)
    except DataError as error:
        problems.add("out", str(error), "a file that can be written")


@contextmanager
def kept(write: Callable[[Path], object]) -> Iterator[None]:
    """What was trained is not lost if it cannot be written in here: then `write` gets a new folder elsewhere, and the
    error names it."""
    try:
        yield
    except BrokenPipeError:
        raise  # The reader has read enough.
    except (DataError, OSError) as error:
        reason = f"{said(error).removesuffix('.')}."
        for place in (tempfile.gettempdir, Path.home):
            with ExitStack() as undone, suppress(DataError, OSError, RuntimeError):
                folder = Path(tempfile.mkdtemp(prefix="g3nn-", dir=place()))
                undone.callback(shutil.rmtree, folder, ignore_errors=True)
                write(folder)
                undone.pop_all()
                reason += f" The results are in {folder} instead."
                break
        else:
            reason += " Nor is there room for the results in the folders for temporary files."
        raise DataError(reason) from error
