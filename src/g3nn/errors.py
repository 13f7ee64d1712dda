"""What went wrong, what was given, what is allowed, what to do next.

Every check of user input adds to a `Problems` list and raises once at the end, so one message names all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one argument."""

    argument: str
    given: str
    allowed: str
    advice: str = ""

    def __str__(self) -> str:
        text = f"{self.argument}: given {self.given}; allowed: {self.allowed}"
        return f"{text}. {self.advice}" if self.advice else text


class G3NNError(Exception):
    """Base of every error that g3nn raises on purpose."""


class InputError(G3NNError, ValueError):
    """The caller's input cannot be used. `problems` holds every reason found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            message = str(self.problems[0])
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            message = f"{len(self.problems)} problems:{lines}"
        super().__init__(message)

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        """Other processes get the problems too, not the message alone."""
        return type(self), (self.problems,)


class DataError(G3NNError):
    """A data file is missing, damaged or not what it claims to be."""


class TrainingError(G3NNError):
    """Training ended without a usable model."""


class DeviceMemoryError(TrainingError):
    """The device has too little memory left, which may be another matter tomorrow."""


class G3NNWarning(UserWarning):
    """Something was adjusted or left out; said once."""


@dataclass
class Problems:
    """Collects problems; `raise_if_any` turns them into one `InputError`."""

    found: list[Problem] = field(default_factory=list)

    def add(self, argument: str, given: object, allowed: str, advice: str = "") -> None:
        self.found.append(Problem(argument, str(given), allowed, advice))

    def name(self, argument: str, given: object, allowed: Iterable[str]) -> None:
        """Record `given` if it is not one of the `allowed` names, and suggest the nearest of them."""
        names = list(allowed)
        if given not in names:
            self.add(argument, repr(given), ", ".join(names), suggestion(str(given), names))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Collect the problems of an `InputError` raised inside, instead of letting it end the checks."""
        try:
            yield
        except InputError as error:
            self.found.extend(error.problems)

    def raise_if_any(self) -> None:
        if self.found:
            raise InputError(self.found)


def suggestion(given: str, names: Iterable[str]) -> str:
    """'Did you mean ...?' for the nearest name, or nothing when none is near."""
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower().replace("_", "-"), by_lower, n=1, cutoff=0.5)
    close = close or difflib.get_close_matches(given.lower(), by_lower, n=1, cutoff=0.5)
    return f"Did you mean {by_lower[close[0]]!r}?" if close else ""


def check_name(argument: str, given: object, allowed: Iterable[str]) -> None:
    """Raise unless `given` is one of the `allowed` names."""
    problems = Problems()
    problems.name(argument, given, allowed)
    problems.raise_if_any()
