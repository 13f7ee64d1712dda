"""Label columns that hold no classes: real values, counts, and a column for each of several tags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import MISSING_NUMBERS, NUMBER, floats, is_text, listed, plain, texts
from g3nn.errors import Problems
from g3nn.outcomes import OUTCOMES, Classes, NumberOutcome, Tags, guessed_outcome, varies

CLASSES, TAGS = Classes.name, Tags.name
AUTO = "auto"


def decided(outcome: str, columns: Sequence[pa.ChunkedArray], typed: bool) -> str:
    """What the label columns hold: what the caller says, or what they look like."""
    if outcome != AUTO:
        return outcome
    return guessed_outcome(len(columns), len(columns) == 1 and _has_fractions(columns[0], typed)).name


def _has_fractions(column: pa.ChunkedArray, typed: bool) -> bool:
    """Whether a column holds numbers, and not only whole ones."""
    values = plain(column, typed)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = floats(values)
        return bool((numbers[~np.isnan(numbers)] % 1 != 0).any())
    if typed or not is_text(values.type):
        return False
    texts_given = _known_texts(values).drop_null()
    if not len(texts_given) or not pc.all(pc.match_substring_regex(texts_given, NUMBER)).as_py():
        return False
    return bool((pc.cast(texts_given, pa.float64()).to_numpy() % 1 != 0).any())


def _known_texts(values: pa.Array) -> pa.Array:
    """Null where a text stands for a missing number."""
    values = texts(values)
    missing = pc.is_in(values, value_set=pa.array(MISSING_NUMBERS, pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), values)


def number_labels(
    place: str, column: pa.ChunkedArray, typed: bool, outcome: str, problems: Problems
) -> np.ndarray | None:
    """(n,) float64, NaN where unknown; None where a problem was found."""
    rule, values = _rule(outcome), plain(column, typed)
    if is_text(values.type) and not typed:
        read = _read_numbers(place, _known_texts(values), rule, problems)
    elif _is_number(values.type) or (rule.takes_booleans and pa.types.is_boolean(values.type)):
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


def _rule(outcome: str) -> type[NumberOutcome]:
    """What an outcome other than classes allows."""
    rule = OUTCOMES[outcome]
    assert issubclass(rule, NumberOutcome)
    return rule


def _is_number(kind: pa.DataType) -> bool:
    """Also of a column without a single value."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def _read_numbers(place: str, values: pa.Array, rule: type[NumberOutcome], problems: Problems) -> np.ndarray | None:
    """Text of a CSV file as numbers; true and false are 1 and 0 where the outcome takes them."""
    if rule.takes_booleans:
        words = pc.utf8_lower(values)
        for word, digit in (("true", "1"), ("false", "0")):
            values = pc.if_else(pc.equal(words, word), pa.scalar(digit, pa.large_string()), values)
    strange = pc.filter(values, pc.invert(pc.match_substring_regex(values, NUMBER))).drop_null()
    infinite = pc.match_substring_regex(strange, r"^[+-]?inf(inity)?$", ignore_case=True)
    other = pc.unique(pc.filter(strange, pc.invert(infinite)))
    if len(other):
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
    constant = [name for name, differs in zip(names, varies(values[use]), strict=True) if not differs]
    if constant:
        columns = f"{place}, column{'s' if len(constant) > 1 else ''} {listed(constant)}"
        where = "" if split is None else " among the training nodes"
        problems.add(columns, f"the same value, or none{where}", "values that differ", _rule(outcome).constant)
    if split is not None and np.isnan(values[split == "val"]).all():
        problems.add(f"{place}, split", "no labelled node for validation", "at least one")
