"""Tests on every Python, and with the oldest and the newest dependencies: `nox`, or one of them: `nox -s lowest`."""

from __future__ import annotations

import os
from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13"]
TORCH = os.environ.get("TORCH", "")
"""A version of torch for the sessions without pins, such as 2.11.0; by default the one that they find."""

nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False


def run(session: nox.Session, *options: str) -> None:
    session.run("g3nn", "--version")
    session.run("pytest", "-n", "2", *options, *session.posargs, env={"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"})


@nox.session(python=PYTHONS)
def pinned(session: nox.Session) -> None:
    """The versions of constraints.txt."""
    session.install("-c", "constraints.txt", "-e", ".[dev]")
    run(session)


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """Whatever is the newest now."""
    session.install("--upgrade", "-e", ".[dev]", *([f"torch=={TORCH}"] if TORCH else []))
    run(session)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The lower bounds of pyproject.toml, and whatever newest versions go with them."""
    folder = Path(session.create_tmp())
    (folder / "torch.txt").write_text(f"torch=={TORCH}\n" if TORCH else "")
    given = ["--resolution=lowest-direct", f"--override={folder}/torch.txt", f"--output-file={folder}/lowest.txt"]
    extras = [f"--extra={name}" for name in ("excel", "label", "track")]
    session.run("uv", "pip", "compile", *given, *extras, "pyproject.toml", external=True)
    session.install("-r", f"{folder}/lowest.txt", "-e", ".[dev]")
    # Old packages say what will change in those that they use.
    run(session, "-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")
