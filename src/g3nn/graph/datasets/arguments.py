"""Checks of the arguments of functions that make tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.options import Rule


def whole(low: int, high: int | None = None) -> Rule:
    return Rule(int, "", low, high)


def number(low: float, high: float | None = None, *, open_ends: bool = False) -> Rule:
    return Rule(float, "", low, high, open_ends)


def check_arguments(given: Mapping[str, Any], rules: Mapping[str, Rule], problems: Problems) -> set[str]:
    """Record every argument that its rule refuses, and return the names of the others."""
    accepted = set()
    for name, rule in rules.items():
        value = given[name]
        if rule.accepts(value.item() if isinstance(value, np.generic) else value):
            accepted.add(name)
        else:
            problems.add(name, repr(value), rule.allowed())
    return accepted
