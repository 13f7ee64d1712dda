from __future__ import annotations

import math
from dataclasses import dataclass

from g3nn.base.errors import Problems
from g3nn.base.options import NoOptions, check, choice, flag, integer, known_names, number, pick, rules


@dataclass(frozen=True)
class Example:
    share: float = number(0.5, "a share", low=0, high=1, open_ends=True, per_replica=True)
    weight: float = number(1.0, "a weight", low=0)
    free: float = number(0.0, "any number")
    size: int = integer(3, "a size", low=1, high=8)
    kind: str = choice("one", ("one", "two"), "which kind")
    on: bool = flag(True, "whether it is on")


@dataclass(frozen=True)
class Other:
    rate: float = number(0.1, "a rate", low=0, open_ends=True)


RULES = rules(Example)

ACCEPTED = {
    "share": [0.5, 1e-9, (0.1, 0.9), [0.3]],
    "weight": [0, 0.0, 1e300],
    "free": [-5, 2.5],
    "size": [1, 8],
    "kind": ["one", "two"],
    "on": [True, False],
}
REFUSED = {
    "share": [0, 1, -0.1, 1.1, math.nan, "0.5", None, (), (0.5, 1.0), [0.5, "x"], True],
    "weight": [-1e-9, math.inf, math.nan, (1.0, 2.0)],
    "free": [-math.inf, math.nan, "a"],
    "size": [0, 9, 2.0, True, "3", (1, 2)],
    "kind": ["three", "", None, 1],
    "on": [0, 1, "true", None],
}


def test_what_is_accepted_and_what_is_refused():
    for name, rule in RULES.items():
        assert [value for value in ACCEPTED[name] if not rule.accepts(value)] == [], name
        assert [value for value in REFUSED[name] if rule.accepts(value)] == [], name


def test_what_is_allowed_in_words():
    assert {name: rule.allowed() for name, rule in (RULES | rules(Other)).items()} == {
        "share": "a number strictly between 0 and 1",
        "weight": "a number of at least 0",
        "free": "a number",
        "size": "a whole number between 1 and 8",
        "kind": "one or two",
        "on": "true or false",
        "rate": "a number above 0",
    }


def test_declaration_gives_default_and_help():
    assert Example().size == 3
    assert RULES["size"].help == "a size"
    assert [name for name, rule in RULES.items() if rule.per_replica] == ["share"]


def test_nothing_to_set():
    assert rules(NoOptions) == {}


def test_names_of_several_groups():
    assert list(known_names([Example, Other])) == [*RULES, "rate"]


def test_check_records_unknown_names_and_refused_values_together():
    problems = Problems()
    check({"sise": 3, "share": 2.0, "rate": 0.5}, [Example, Other], problems)
    unknown, refused = problems.found
    assert (unknown.argument, unknown.advice) == ("sise", "Did you mean 'size'?")
    assert all(name in unknown.allowed for name in [*RULES, "rate"])
    assert (refused.argument, refused.given) == ("share", "2.0")


def test_check_is_silent_when_all_is_well():
    problems = Problems()
    check({"share": (0.2, 0.3), "size": 2}, [Example], problems)
    assert problems.found == []


def test_pick_takes_what_a_group_declares():
    assert pick({"size": 5, "rate": 0.7}, Example) == Example(size=5)
