"""Options: what can be set on a component, an objective or a training run, declared once with its limits.

A component declares a frozen dataclass whose fields are made by `number`, `integer`, `choice` and `flag`. From the
declaration come the default, the check, the help text, and whether the replicas of a stack may differ in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from g3nn.errors import Problems, suggestion


@dataclass(frozen=True)
class Rule:
    """What values one option takes."""

    kind: type
    help: str
    low: float | None = None
    high: float | None = None
    open_ends: bool = False
    choices: tuple[str, ...] = ()
    per_replica: bool = False

    def allowed(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        what = "a whole number" if self.kind is int else "a number"
        if self.low is not None and self.high is not None:
            between = "strictly between" if self.open_ends else "between"
            return f"{what} {between} {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"{what} {'above' if self.open_ends else 'of at least'} {self.low:g}"
        return what

    def accepts(self, value: Any) -> bool:
        if self.per_replica and isinstance(value, Sequence) and not isinstance(value, str):
            return len(value) > 0 and all(self._accepts_one(one) for one in value)
        return self._accepts_one(value)

    def _accepts_one(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.kind is bool:
            return isinstance(value, bool)
        if isinstance(value, bool) or not isinstance(value, int if self.kind is int else (int, float)):
            return False
        if self.low is not None and (value <= self.low if self.open_ends else value < self.low):
            return False
        if self.high is not None and (value >= self.high if self.open_ends else value > self.high):
            return False
        return value == value and abs(value) != float("inf")


def number(
    default: float,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    open_ends: bool = False,
    per_replica: bool = False,
) -> Any:
    """A real option; `per_replica` ones may be given as a sequence, one number for each replica of a stack."""
    return _field(default, Rule(float, help, low, high, open_ends, per_replica=per_replica))


def integer(default: int, help: str, *, low: int | None = None, high: int | None = None) -> Any:
    return _field(default, Rule(int, help, low, high))


def choice(default: str, choices: Sequence[str], help: str) -> Any:
    return _field(default, Rule(str, help, choices=tuple(choices)))


def flag(default: bool, help: str) -> Any:
    return _field(default, Rule(bool, help))


def _field(default: Any, rule: Rule) -> Any:
    return dataclasses.field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class NoOptions:
    """For a component with nothing to set."""


def rules(options: type) -> dict[str, Rule]:
    """The declared options of an options class, by name."""
    return {field.name: field.metadata["rule"] for field in dataclasses.fields(options)}


def known_names(groups: Iterable[type]) -> dict[str, Rule]:
    """The options of several groups by name; where groups share a name, the first declaration speaks for all."""
    known: dict[str, Rule] = {}
    for group in groups:
        for name, rule in rules(group).items():
            known.setdefault(name, rule)
    return known


def check(given: Mapping[str, Any], groups: Iterable[type], problems: Problems) -> None:
    """Record every given option that no group declares or whose value its rule refuses."""
    known = known_names(groups)
    for name, value in given.items():
        if name not in known:
            problems.add(name, repr(value), f"one of the options {', '.join(sorted(known))}", suggestion(name, known))
        elif not known[name].accepts(value):
            problems.add(name, repr(value), known[name].allowed())


def pick(given: Mapping[str, Any], options: type) -> Any:
    """An instance of an options class from those of the given values that it declares."""
    declared = rules(options)
    return options(**{name: value for name, value in given.items() if name in declared})
