"""Options: what can be set on a component, an objective or a training run, declared once with its limits.

A component declares a frozen dataclass whose fields are made by `number`, `integer`, `choice`, `counts` and `flag`. The
declaration provides the default, the check, the help text, and whether the option may differ between replicas.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from g3nn.base.errors import Problems, any_of, suggestion

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """Which values an option accepts."""

    kind: type
    help: str = ""
    low: float | None = None
    high: float | None = None
    open_ends: bool = False
    choices: tuple[str, ...] = ()
    form: str = ""
    per_replica: bool = False

    def allowed(self) -> str:
        if self.choices:
            return any_of(self.choices)
        if self.form:
            return self.form
        if self.kind is bool:
            return "true or false"
        what = "a whole number" if self.kind is int else "a number"
        if self.low is not None and self.high is not None:
            between = "strictly between" if self.open_ends else "between"
            return f"{what} {between} {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"{what} {'above' if self.open_ends else 'of at least'} {self.low:g}"
        return what

    def accepts(self, value: object) -> bool:
        if self.per_replica and isinstance(value, Sequence) and not isinstance(value, str):
            return len(value) > 0 and all(map(self._accepts_one, value))
        return self._accepts_one(value)

    def _accepts_one(self, value: object) -> bool:
        if self.choices:
            return value in self.choices
        if self.form:
            return isinstance(value, str) and all(part.isascii() and part.isdigit() for part in value.split("/"))
        if self.kind is bool:
            return isinstance(value, bool)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind is int and not isinstance(value, int):
            return False
        if self.low is not None and (value <= self.low if self.open_ends else value < self.low):
            return False
        if self.high is not None and (value >= self.high if self.open_ends else value > self.high):
            return False
        return value == value and abs(value) != float("inf")


WHOLE, COUNT = Rule(int, low=0), Rule(int, low=1)
AMOUNT, SHARE = Rule(float, low=0), Rule(float, low=0, high=1)
"""What many arguments of functions accept."""


def number(
    default: float,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    open_ends: bool = False,
    per_replica: bool = False,
) -> float:
    """A real number; with `per_replica` also a sequence with one number for each replica of a stack."""
    return _field(default, Rule(float, help, low, high, open_ends, per_replica=per_replica))


def probability(default: float, help: str) -> float:
    """A number between 0 and 1, or a sequence with one for each replica of a stack."""
    return number(default, help, low=0, high=1, open_ends=True, per_replica=True)


def integer(default: int, help: str, *, low: int | None = None, high: int | None = None) -> int:
    return _field(default, Rule(int, help, low, high))


def choice(default: str, choices: Sequence[str], help: str) -> str:
    return _field(default, Rule(str, help, choices=tuple(choices)))


def counts(default: str, help: str) -> str:
    """Several whole numbers in a row, as text, since a sequence means one value for each replica."""
    return _field(default, Rule(str, help, form="whole numbers with / between them, such as 15/10/5"))


def flag(default: bool, help: str) -> bool:
    return _field(default, Rule(bool, help))


def _field(default: object, rule: Rule) -> Any:
    return dataclasses.field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class NoOptions:
    """For a component with nothing to set."""


def rules(options: type) -> dict[str, Rule]:
    """The options that an options class declares, by name."""
    return {field.name: field.metadata["rule"] for field in dataclasses.fields(options)}


def known_names(groups: Iterable[type]) -> dict[str, Rule]:
    """The options of several groups by name; where groups share a name, the first declaration counts."""
    known: dict[str, Rule] = {}
    for group in groups:
        known |= {name: rule for name, rule in rules(group).items() if name not in known}
    return known


def check(given: Mapping[str, object], groups: Iterable[type], problems: Problems) -> None:
    """Record every given option that no group declares or whose value its rule does not accept."""
    known = known_names(groups)
    for name, value in given.items():
        if name not in known:
            problems.add(name, repr(value), f"one of the options {', '.join(sorted(known))}", suggestion(name, known))
        elif not known[name].accepts(value):
            problems.add(name, repr(value), known[name].allowed())


def check_values(given: Mapping[str, object], rules: Mapping[str, Rule], problems: Problems) -> set[str]:
    """Record every value that its rule does not accept, and return the names of the others."""
    accepted = set()
    for name, rule in rules.items():
        value = given[name]
        # A number of numpy's own kinds is one like any other.
        if rule.accepts(value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value):
            accepted.add(name)
        else:
            problems.add(name, repr(value), rule.allowed())
    return accepted


def pick(given: Mapping[str, object], options: type[T]) -> T:
    """An instance of an options class, made from the given values that it declares."""
    declared = rules(options)
    made: Any = options
    return cast(T, made(**{name: value for name, value in given.items() if name in declared}))
