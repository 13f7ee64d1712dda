"""Label columns that hold no classes: real values, counts, and a column for each of several tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import LARGEST, MISSING_NUMBERS, NUMBER, floats, is_text, listed, plain, texts
from g3nn.errors import Problems

CLASSES, TAGS, REAL, COUNTS = OUTCOMES = ("classes", "tags", "real", "counts")
AUTO = "auto"


@dataclass(frozen=True)
class _Rule:
    allowed: str
    accepts: Callable[[np.ndarray], np.ndarray]
    advice: str
    constant: str


_CONSTANT = "There is nothing to learn in a constant."
_RULES = {
    TAGS: _Rule(
        "0 or 1 (or true or false), empty where unknown",
        lambda values: (values == 0) | (values == 1),
        "Numbers are for --outcome real; several classes in one column for --outcome classes.",
        "Leave out tags that no node has, or that all have.",
    ),
    REAL: _Rule(
        f"finite numbers up to {LARGEST:g}, empty where unknown",
        lambda values: np.abs(values) <= LARGEST,
        "Correct or empty these values. Names of classes are for --outcome classes.",
        _CONSTANT,
    ),
    COUNTS: _Rule(
        "whole numbers from 0 to 2**53, empty where unknown",
        lambda values: (values >= 0) & (values == np.floor(values)) & (values <= 2.0**53),
        "Other numbers are for --outcome real, names of classes for --outcome classes.",
        _CONSTANT,
    ),
}


def decided(outcome: str, columns: Sequence[pa.ChunkedArray], typed: bool) -> str:
    """What the label columns hold, if nobody said so: several are tags, one with fractions real, else classes."""
    if outcome != AUTO:
        return outcome
    if len(columns) > 1:
        return TAGS
    values = plain(columns[0], typed)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = floats(values)
        return REAL if (numbers[~np.isnan(numbers)] % 1 != 0).any() else CLASSES
    if typed or not is_text(values.type):
        return CLASSES
    known = _known_texts(values).drop_null()
    if not len(known) or not pc.all(pc.match_substring_regex(known, NUMBER)).as_py():
        return CLASSES
    return REAL if (pc.cast(known, pa.float64()).to_numpy() % 1 != 0).any() else CLASSES


def _known_texts(values: pa.Array) -> pa.Array:
    """Null where a text stands for a missing number."""
    values = texts(values)
    missing = pc.is_in(values, value_set=pa.array(MISSING_NUMBERS, pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), values)


def number_labels(
    place: str, column: pa.ChunkedArray, typed: bool, outcome: str, problems: Problems
) -> np.ndarray | None:
    """(n,) float64, NaN where unknown; None where a problem was found."""
    rule, values = _RULES[outcome], plain(column, typed)
    if is_text(values.type) and not typed:
        read = _read_numbers(place, _known_texts(values), outcome, problems)
    elif _is_number(values.type) or (outcome == TAGS and pa.types.is_boolean(values.type)):
        read = floats(values)
    else:
        problems.add(place, f"values of type {column.type}", rule.allowed, rule.advice)
        return None
    if read is None:
        return None
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(read) & ~rule.accepts(read)
    if wrong.any():
        found = f"{int(wrong.sum())} values such as {listed(np.unique(read[wrong])[:5].tolist())}"
        problems.add(place, found, rule.allowed, rule.advice)
        return None
    return read


def _is_number(kind: pa.DataType) -> bool:
    """Also of a column without a single value."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def _read_numbers(place: str, values: pa.Array, outcome: str, problems: Problems) -> np.ndarray | None:
    """Text of a CSV file as numbers; for tags true and false are some too."""
    if outcome == TAGS:
        words = pc.utf8_lower(values)
        for word, digit in (("true", "1"), ("false", "0")):
            values = pc.if_else(pc.equal(words, word), pa.scalar(digit, pa.large_string()), values)
    strange = pc.filter(values, pc.invert(pc.match_substring_regex(values, NUMBER))).drop_null()
    infinite = pc.match_substring_regex(strange, r"^[+-]?inf(inity)?$", ignore_case=True)
    other = pc.unique(pc.filter(strange, pc.invert(infinite)))
    if len(other):
        rule = _RULES[outcome]
        found = f"text such as {listed(other[:5].to_pylist(), len(other))}"
        problems.add(place, found, rule.allowed, rule.advice)
        return None
    return pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)


def check_numbers(
    place: str,
    names: Sequence[str],
    values: np.ndarray,
    split: np.ndarray | None,
    outcome: str,
    problems: Problems,
) -> None:
    """Different values in each column, of training nodes given a split, which must then have validation nodes too.

    values: (n, T). Labels of test nodes are never counted.
    """
    use = np.ones(len(values), dtype=bool) if split is None else split == "train"
    known = np.where(np.isnan(values[use]), np.inf, values[use])
    low = known.min(0, initial=np.inf)
    high = np.where(np.isnan(values[use]), -np.inf, values[use]).max(0, initial=-np.inf)
    constant = [name for name, same in zip(names, ~(low < high), strict=True) if same]
    if constant:
        columns = f"{place}, column{'s' if len(constant) > 1 else ''} {listed(constant)}"
        where = "" if split is None else " among the training nodes"
        problems.add(columns, f"the same value, or none{where}", "values that differ", _RULES[outcome].constant)
    if split is not None and np.isnan(values[split == "val"]).all():
        problems.add(f"{place}, split", "no labelled node for validation", "at least one")
