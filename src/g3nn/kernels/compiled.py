"""Functions compiled by numba: kept on disk where there is room for it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

Function = Callable[..., Any]

_config: Any = numba.config


def kernel(**options: Any) -> Callable[[Function], Function]:
    """`numba.njit` for functions that Python calls, with the cache of this module. options: those of numba."""
    return lambda function: _compiled(function, options)


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    made = numba.njit(**options)(function)
    kept = _cache(function)
    if kept is not None:
        made._cache = kept
    return made


class _Cache(FunctionCache):
    """A disk that is full costs time at the next start, no result."""

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _cache(function: Function) -> FunctionCache | None:
    """Beside the source, in the user's cache or, where neither may be written to, among temporary files; else none."""
    # numba raises RuntimeError where it finds no folder.
    with suppress(RuntimeError):
        return _Cache(function)
    before, _config.CACHE_DIR = _config.CACHE_DIR, _own_folder() or ""
    try:
        return _Cache(function)
    except RuntimeError:
        return None
    finally:
        _config.CACHE_DIR = before


def _own_folder() -> str | None:
    """A temporary folder of this user. What lies there is run as it is, so nobody else may be able to write to it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = os.path.join(tempfile.gettempdir(), f"g3nn-numba-{user}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return folder if safe else None
