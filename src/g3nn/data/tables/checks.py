"""What makes a column of a node table useless: gathered column by column, said once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import LARGEST, listed
from g3nn.data.tables.outcome_columns import check_numbers
from g3nn.data.tables.reading import NodeTable
from g3nn.errors import Problems

_IGNORE = "Take it out with --ignore."


@dataclass
class Findings:
    """Names of columns, by what is wrong with them."""

    empty: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    infinite: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    unique: list[str] = field(default_factory=list)
    wordless: list[str] = field(default_factory=list)

    def report(self, place: str, missing: str, problems: Problems) -> None:
        """`missing`: "error" if a missing number or boolean is one."""
        self._add(place, self.empty, "no value at all", "columns with values", _IGNORE, problems)
        self._add(place, self.constant, "the same value in every row", "columns that differ", _IGNORE, problems)
        allowed = f"finite numbers up to {LARGEST:g}"
        self._add(place, self.infinite, "infinite or huge numbers", allowed, "Correct or empty these values.", problems)
        if missing == "error":
            advice = "Fill them in, or fit with --missing impute."
            self._add(place, self.incomplete, "missing values", "a value in every row", advice, problems)
        advice = "Use --text to make features of the words in it, or --ignore."
        self._add(place, self.unique, "almost as many values as rows", "categories that repeat", advice, problems)
        allowed = "words that occur in two rows or more"
        self._add(place, self.wordless, "no word that repeats", allowed, _IGNORE, problems)

    @staticmethod
    def _add(place: str, names: list[str], given: str, allowed: str, advice: str, problems: Problems) -> None:
        if names:
            columns = f"{place}, column{'s' if len(names) > 1 else ''} {listed(names)}"
            problems.add(columns, given, allowed, advice)


def check_labels(nodes: NodeTable, problems: Problems) -> None:
    """At least two classes, each with at least two labels; given a split, with both training and validation labels.

    Labels of test nodes are never counted: they are there to judge the answer.
    """
    if nodes.values is not None:
        check_numbers(nodes.name, nodes.value_names, nodes.values, nodes.split, nodes.outcome, problems)
        return
    labels = nodes.labels
    assert labels is not None
    place = f"{nodes.name}, labels"
    usable = labels if nodes.split is None else pc.filter(labels, pa.array(nodes.split != "test"))
    counts = pc.value_counts(usable.drop_null())
    names, numbers = counts.field("values"), counts.field("counts")
    if len(names) < 2:
        found = "none" if len(names) == 0 else f"one class, {names[0].as_py()!r}"
        advice = "In a column of whole numbers, -1 means that there is no label." if _whole(labels) else ""
        problems.add(place, found, "at least two classes", advice)
        return
    once = pc.filter(names, pc.equal(numbers, 1))
    if len(once):
        found = f"{len(once)} classes with one label: {listed(once[:5].to_pylist(), len(once))}"
        advice = "One label is for training, another for validation. Label another node, or empty this label."
        problems.add(place, found, "two labels of each class", advice)
    elif nodes.split is not None:
        _check_split(nodes, names, problems)


def _check_split(nodes: NodeTable, classes: pa.Array, problems: Problems) -> None:
    assert nodes.labels is not None
    assert nodes.split is not None
    train = pc.unique(pc.filter(nodes.labels, pa.array(nodes.split == "train")).drop_null())
    absent = pc.filter(classes, pc.invert(pc.is_in(classes, value_set=train)))
    if len(absent):
        found = f"no training label of {listed(absent[:5].to_pylist(), len(absent))}"
        problems.add(f"{nodes.name}, split", found, "training labels of each class")
    test = pc.unique(pc.filter(nodes.labels, pa.array(nodes.split == "test")).drop_null())
    new = pc.filter(test, pc.invert(pc.is_in(test, value_set=classes)))
    if len(new):
        found = f"test labels of {listed(new[:5].to_pylist(), len(new))}, which no other node has"
        problems.add(f"{nodes.name}, split", found, "test labels of classes that are trained")
    validation = pc.filter(nodes.labels, pa.array(nodes.split == "val"))
    if validation.null_count == len(validation):
        problems.add(f"{nodes.name}, split", "no labelled node for validation", "at least one")


def _whole(labels: pa.Array) -> bool:
    return bool(pa.types.is_integer(labels.type))
