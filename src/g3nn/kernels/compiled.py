"""Functions compiled by numba: cached on disk where possible, safe in threads and after a fork."""

from __future__ import annotations

import os
import stat
import tempfile
import types
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any

import numba
from numba.core.caching import FunctionCache

from g3nn.base.threads import forked, turn

Function = Callable[..., Any]

_config: Any = numba.config


def kernel(
    parallel: bool = False, fastmath: bool | set[str] = False, nogil: bool = False
) -> Callable[[Function], Function]:
    """`numba.njit` with these options, for functions that Python calls, with the cache of this module.

    A parallel kernel runs in one thread where it cannot have more, see `g3nn.base.threads`.
    """

    def compiled(function: Function, parallel: bool) -> Function:
        made: Any = numba.njit(parallel=parallel, fastmath=fastmath, nogil=nogil)(function)
        kept = _cache(function)
        if kept is not None:
            made._cache = kept
        return made

    def decorate(function: Function) -> Function:
        many = compiled(function, parallel)
        if not parallel:
            return many

        @cache
        def alone() -> Function:
            # Under another name: numba's cache does not tell the two apart by their options.
            copy = types.FunctionType(function.__code__, function.__globals__)
            copy.__name__ = copy.__qualname__ = f"{function.__name__}_alone"
            return compiled(copy, False)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            if forked():
                return alone()(*arguments)
            with turn():
                return many(*arguments)

        return call

    return decorate


class _Cache(FunctionCache):
    """On a full disk, the code is compiled again at the next start."""

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
    """A temporary folder of this user. Its code is run unchecked, so no other user may be able to write to it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = os.path.join(tempfile.gettempdir(), f"g3nn-numba-{user}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return None
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return folder if safe else None
