"""The label columns of a node table, read and checked by the rules of their outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import floats, int64, is_number, is_text, plain, texts
from g3nn.data.tables.files import TableFile
from g3nn.errors import Problems
from g3nn.outcomes import OUTCOMES, Classes, Labels, Tags, guessed_outcome, is_known, without_labels_of

AUTO = "auto"

MISSING_NUMBERS = ("NaN", "nan", "NA", "N/A", "NULL", "null")
"""Texts that mean a missing value in a column of numbers."""

_BOOLEANS = {"true": True, "false": False}
_WHOLE_NUMBER = r"(0|-?[1-9][0-9]{0,17})(\.0*)?"


def read_labels(
    file: TableFile, table: pa.Table, names: Sequence[str], outcome: str, problems: Problems
) -> tuple[str, Labels | None]:
    """The outcome, guessed if it is "auto", and the labels; None where a problem was recorded."""
    if outcome == AUTO:
        outcome = guessed_outcome(len(names), _has_fractions(label_values(table[names[0]], file.typed))).name
    rule = OUTCOMES[outcome]
    if rule is not Tags and len(names) > 1:
        advice = "Use --outcome tags for several columns, or fit one model for each column."
        problems.add("label", f"{len(names)} columns for --outcome {outcome}", "one column", advice)
        return outcome, None
    labels = []
    for name in names:
        values = label_values(table[name], file.typed, classes=rule is Classes)
        labels.append(rule.read(values, table.num_rows, problems, file.place(name)))
    columns = [column for column in labels if column is not None]
    if len(columns) < len(names):
        return outcome, None
    if rule is not Tags:
        return outcome, columns[0]
    return outcome, Labels(np.array(names), np.concatenate([column.values for column in columns], axis=1), flat=False)


def label_values(column: pa.ChunkedArray, typed: bool, classes: bool = False) -> np.ndarray:
    """(n,) as an outcome reads them: floats, or objects with None where there is no label.

    The text of a CSV file is read as numbers or, among `classes`, as whole numbers or booleans if all of it can be.
    """
    values = plain(column, typed)
    if pa.types.is_integer(values.type) and classes:
        values = int64(values)
    elif is_number(values.type):
        return floats(values)
    if not is_text(values.type):
        return _objects(values.to_pylist())
    encoded = texts(values).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if not typed:
        words = _as_classes(words) if classes else [_as_number(word) for word in words]
    return _objects([*words, None])[pc.fill_null(encoded.indices, len(words)).to_numpy()]


def _objects(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _as_classes(words: list[str]) -> list[Any]:
    numbers = [word for word in words if word not in MISSING_NUMBERS]
    if numbers and all(re.fullmatch(_WHOLE_NUMBER, word) for word in numbers):
        return [None if word in MISSING_NUMBERS else int(word.partition(".")[0]) for word in words]
    if all(word.lower() in _BOOLEANS for word in words):
        return [_BOOLEANS[word.lower()] for word in words]
    return words


def _as_number(word: str) -> Any:
    """A number, None or a boolean, or the word itself if it is none of them."""
    try:
        return float(word.replace("_", "-"))  # Python alone takes 1_000 for a number.
    except ValueError:
        return None if word in MISSING_NUMBERS else _BOOLEANS.get(word.lower(), word)


def _has_fractions(values: np.ndarray) -> bool:
    """Whether a column holds numbers, and not only whole ones."""
    known = [value for value in values.tolist() if value is not None and value == value]
    return all(isinstance(value, float) for value in known) and any(value % 1 for value in known)


def as_given(labels: Labels) -> Any:
    """Labels in the form in which an estimator takes them: classes by name, tags as a table with their names."""
    if labels.values.ndim == 1:
        return np.where(is_known(labels.values), labels.names.astype(object)[labels.values], None)
    if labels.flat:
        return labels.values[:, 0]
    return pa.table(dict(zip(labels.names.tolist(), labels.values.T, strict=True)))


def check_split(
    table: str, labels: Labels, split: np.ndarray | None, outcome: str, problems: Problems
) -> tuple[Labels, np.ndarray | None, np.ndarray]:
    """The labels without those of test nodes, the labelled nodes for validation, and those for test.

    Without a split, or with this one, there must be enough to train on and to validate on.
    """
    rule, nobody, refused = OUTCOMES[outcome], np.zeros(0, dtype=np.int64), Problems()
    if split is None:
        rule.hold_out(labels, 0.5, np.random.RandomState(0), refused)
        problems.found += [replace(problem, argument=f"{table}, labels") for problem in refused.found]
        return labels, None, nobody
    val, test = (labels.labelled[split[labels.labelled] == part] for part in ("val", "test"))
    labels = replace(labels, values=without_labels_of(labels.values, test))
    if val.size == 0:
        refused.add("", "no labelled node for validation", "at least one")
    else:
        rule.check_validation(labels, val, refused)
    problems.found += [replace(problem, argument=f"{table}, split") for problem in refused.found]
    return labels, val, test
