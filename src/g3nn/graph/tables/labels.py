"""The label columns of a node table, read and checked by the rules of their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import Problems, counted
from g3nn.graph.outcomes import MANY_CLASSES, OUTCOMES, Labels, Outcome, guessed_outcome, without_labels_of
from g3nn.graph.outcomes.labels import name_array
from g3nn.graph.tables.cells import NULL_WORDS, is_text, known, label_values, means_text, plain
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.remarks import Remarks, listed

AUTO = "auto"

_PERHAPS_UNKNOWN = ("unknown", "missing", "unlabelled", "unlabeled", "undefined", "tbd", "none")


def read_labels(
    source: Source, table: pa.Table, names: Sequence[str], outcome: str, nulls: tuple[str, ...], remarks: Remarks
) -> tuple[str, Labels | None]:
    """The outcome, guessed if it is "auto", and the labels; None where a problem was recorded."""
    columns = {name: _known(source, name, plain(table[name], source.typed), nulls, remarks) for name in names}
    if outcome == AUTO:
        raw, first = plain(table[names[0]], source.typed), columns[names[0]]
        text = means_text(raw, first, source.typed)
        values = None if text else _numbers(label_values(first, source.typed))
        guessed = guessed_outcome(len(names), values)
        if not guessed.flags and values is not None and np.isfinite(values).all() and (values % 1 == 0).all():
            _remark_on_whole_numbers(source.place(names[0]), np.unique(values), guessed, remarks)
        outcome = guessed.name
    rule = OUTCOMES[outcome]
    if not rule.flags and len(names) > 1:
        advice = 'Use outcome="tags" for several columns, or fit one model for each column.'
        remarks.add("label", f"{len(names)} columns for outcome={outcome!r}", "one column", advice)
        return outcome, None
    read = []
    for name, column in columns.items():
        values = label_values(column, source.typed, classes=rule.exclusive)
        read.append(rule.read(values, table.num_rows, remarks, source.place(name), in_table=True))
    labels = [column for column in read if column is not None]
    if len(labels) < len(names):
        return outcome, None
    if rule.flags:
        values = np.concatenate([column.values for column in labels], axis=1)
        return outcome, Labels(name_array(names), values, flat=False)
    _remark_on_minus_one(source.place(names[0]), labels[0], rule.exclusive, remarks)
    if rule.exclusive:
        _remark_on_classes(source.place(names[0]), labels[0], remarks)
    return outcome, labels[0]


def _known(source: Source, name: str, column: pa.Array, nulls: tuple[str, ...], remarks: Remarks) -> pa.Array:
    """Words for nothing are unknown labels, which is noted unless the cells are empty or the caller named the word."""
    cells = known(column, nulls)
    if not is_text(column.type):
        return cells
    usual = pa.array([word for word in NULL_WORDS if word], pa.large_string())
    words = pc.filter(column, pc.and_(cells.is_null(), pc.is_in(pc.utf8_trim_whitespace(column), value_set=usual)))
    if len(words):
        found = f"{counted(len(words), 'label')} written as {listed(pc.unique(words))}"
        advice = "keep_na=True takes them as they are."
        remarks.note(source.place(name), found, "empty cells where unknown", "taken as unknown", advice)
    return cells


def _remark_on_whole_numbers(place: str, values: np.ndarray, outcome: type[Outcome], remarks: Remarks) -> None:
    """Many whole numbers may be classes, numbers or counts; say what they are taken for."""
    if len(values) <= MANY_CLASSES:
        return
    found = f"{len(values)} whole numbers from {values[0]:g} to {values[-1]:g}"
    if outcome.exclusive:
        done = "each is taken as a class of its own"
        advice = 'If they have an order, use outcome="real" (numbers) or outcome="counts".'
    else:
        done = f"taken as {outcome.values_title}"
        advice = 'outcome="classes" takes each as a class of its own.'
    remarks.note(place, found, "classes, real values or counts", done, advice)


def _remark_on_minus_one(place: str, labels: Labels, classes: bool, remarks: Remarks) -> None:
    """It often stands for an unknown label, where no other number is negative and enough remains without it."""
    given = labels.names[labels.values[labels.labelled]] if classes else labels.values[labels.labelled, 0]
    if given.dtype.kind not in "if" or not (count := int((given == -1).sum())):
        return
    others = np.unique(given[given != -1])
    if len(others) > 1 and others[0] >= 0:
        done = "taken as a class" if classes else "taken as a number"
        advice = 'If it means that the label is not known, use na=["-1"].'
        remarks.note(place, f"{counted(count, 'label')} of -1", "empty cells where unknown", done, advice)


def _remark_on_classes(place: str, labels: Labels, remarks: Remarks) -> None:
    """Classes that are probably meant in another way."""
    names = labels.names
    if names.dtype.kind not in "UO":
        return
    alike: dict[str, list[str]] = {}
    for name in names.tolist():
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    if same := [name for group in alike.values() if len(group) > 1 for name in group]:
        found = f"classes that differ only in case or blanks ({listed(same)})"
        remarks.note(place, found, "one spelling of each class", "taken as different classes")
    if perhaps := [name for name in names.tolist() if name.casefold() in _PERHAPS_UNKNOWN]:
        count = int(np.isin(labels.values, np.flatnonzero(np.isin(names, perhaps))).sum())
        advice = f'If it means that the label is not known, use na=["{perhaps[0]}"].'
        found = f"{counted(count, 'label')} called {listed(perhaps)}"
        remarks.note(place, found, "empty cells where unknown", "taken as a class", advice)


def _numbers(values: np.ndarray) -> np.ndarray | None:
    """The known values of a column if they are all numbers."""
    given = [value for value in values.tolist() if value is not None and value == value]
    return np.array(given) if all(isinstance(value, float) for value in given) else None


def check_split(
    table: str, labels: Labels, split: np.ndarray | None, outcome: str, remarks: Remarks
) -> tuple[Labels, np.ndarray | None, np.ndarray]:
    """The labels without those of test nodes, the labelled nodes for validation if the split names any, and those for
    test. There must be enough to train on."""
    rule, refused, none = OUTCOMES[outcome], Problems(), np.zeros(0, dtype=np.int64)
    parts = [labels.labelled[split[labels.labelled] == part] for part in ("val", "test")] if split is not None else []
    val, test = parts or (none, none)
    labels = replace(labels, values=without_labels_of(labels.values, test))
    if not labels.labelled.size:
        refused.add("", "test labels only", "labels to train on")
    elif val.size:
        rule.check_validation(labels, val, refused)
    else:
        rule.hold_out(labels, 0.5, np.random.RandomState(0), refused)
    place = f"{table}, {'split' if val.size or test.size else 'labels'}"
    remarks.found += [replace(problem, argument=place) for problem in refused.found]
    return labels, val if val.size else None, test
