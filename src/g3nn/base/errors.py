"""Errors that say what is wrong, where, and what to do.

Every check of user input adds to a `Problems` list and raises once at the end, so a single error lists all problems.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, Self


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one argument.

    given: what was found, such as `-1` or `3 nodes without a label`. allowed: what was expected instead, such as
    `a number above 0`. advice: whole sentences on what to do.
    """

    argument: str
    given: str
    allowed: str
    advice: str = ""

    def __str__(self) -> str:
        text = f"{self.argument}: got {self.given}; expected {self.allowed}"
        return f"{text}. {self.advice}" if self.advice else text


class G3NNError(Exception):
    """Base class of every error that g3nn raises on purpose."""


class InputError(G3NNError, ValueError):
    """The caller's input cannot be used. `problems` lists every reason."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            message = str(self.problems[0])
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            message = f"{len(self.problems)} problems:{lines}"
        super().__init__(message)

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        """Pickles carry the problems, not only the message."""
        return type(self), (self.problems,)


_MEANT = {"gpu": "cuda"}
"""What people call some names."""


class DataError(G3NNError):
    """A data file is missing, damaged or not what it claims to be."""


class TrainingError(G3NNError):
    """Training ended without a usable model."""


class DeviceMemoryError(TrainingError):
    """Not enough free device memory; trying later may work."""


class G3NNWarning(UserWarning):
    """Something was adjusted or left out."""


@dataclass
class Problems:
    """Collects problems; `raise_if_any`, or the end of a `with` block, turns them into one `InputError`."""

    found: list[Problem] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.raise_if_any()

    def add(self, argument: str, given: object, allowed: str, advice: str = "") -> None:
        self.found.append(Problem(argument, str(given), allowed, advice))

    def name(self, argument: str, given: object, allowed: Iterable[str]) -> None:
        """Record `given` unless it is one of the `allowed` names, and suggest the nearest one."""
        if isinstance(allowed, Mapping) and isinstance(given, str) and given in allowed:
            return  # Without the names of all others, which may have to be loaded.
        names = list(allowed)
        if given not in names:
            self.add(argument, repr(given), any_of(names), suggestion(str(given), names))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Collect the problems of an `InputError` raised inside, so that the checks go on."""
        try:
            yield
        except InputError as error:
            self.found.extend(error.problems)

    def raise_if_any(self) -> None:
        if self.found:
            raise InputError(self.found)


def warn_caller(text: str) -> None:
    """Give out a `G3NNWarning` as of the line that called into g3nn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "g3nn":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, G3NNWarning, stacklevel=level)


def refuse(argument: str, given: object, allowed: str, advice: str = "") -> NoReturn:
    """Raise an `InputError` with one problem."""
    raise InputError([Problem(argument, str(given), allowed, advice)])


def any_of(names: Iterable[str]) -> str:
    """'a, b or c'."""
    listed = list(names)
    return " or ".join(filter(None, [", ".join(listed[:-1]), *listed[-1:]]))


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def suggestion(given: str, names: Iterable[str]) -> str:
    """'Did you mean ...?' with the nearest name, or nothing if no name is similar."""
    by_lower = {name.lower(): name for name in names}
    if (meant := _MEANT.get(given.lower())) in by_lower:
        return f"Did you mean {meant!r}?"
    close = difflib.get_close_matches(given.lower().replace("_", "-"), by_lower, n=1, cutoff=0.5)
    close = close or difflib.get_close_matches(given.lower(), by_lower, n=1, cutoff=0.5)
    return f"Did you mean {by_lower[close[0]]!r}?" if close else ""


def check_name(argument: str, given: object, allowed: Iterable[str]) -> None:
    """Raise unless `given` is one of the `allowed` names."""
    with Problems() as problems:
        problems.name(argument, given, allowed)
