"""Whether the labels of a node table are enough to learn from."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.columns import listed
from g3nn.data.tables.node_table import NodeTable
from g3nn.data.tables.outcome_columns import check_numbers
from g3nn.errors import Problems


def check_labels(nodes: NodeTable, problems: Problems) -> None:
    """At least two classes, each with at least two labels; with a split, each with training labels.

    Labels of test nodes are not counted: they are only used to evaluate the answers.
    """
    if nodes.values is not None:
        check_numbers(nodes.name, nodes.value_names, nodes.values, nodes.split, nodes.outcome, problems)
        return
    labels = nodes.labels
    assert labels is not None
    place = f"{nodes.name}, labels"
    usable = labels if nodes.split is None else pc.filter(labels, pa.array(nodes.split != "test"))
    classes, numbers = pc.value_counts(usable.drop_null()).flatten()
    rare = pc.filter(classes, pc.equal(numbers, 1))
    if len(classes) < 2:
        given = "none" if len(classes) == 0 else f"one class, {classes[0].as_py()!r}"
        advice = "In a column of whole numbers, -1 means that there is no label."
        problems.add(place, given, "at least two classes", advice if pa.types.is_integer(labels.type) else "")
    elif len(rare):
        advice = "One label is for training, another for validation. Label another node, or empty this label."
        problems.add(place, f"only one label of {listed(rare)}", "at least two labels of each class", advice)
    elif nodes.split is not None:
        _check_split(nodes, classes, problems)


def _check_split(nodes: NodeTable, classes: pa.Array, problems: Problems) -> None:
    place = f"{nodes.name}, split"
    parts = {
        part: pc.unique(pc.filter(nodes.labels, pa.array(nodes.split == part)).drop_null())
        for part in ("train", "val", "test")
    }
    absent = pc.filter(classes, pc.invert(pc.is_in(classes, value_set=parts["train"])))
    if len(absent):
        problems.add(place, f"no training label of {listed(absent)}", "training labels of each class")
    new = pc.filter(parts["test"], pc.invert(pc.is_in(parts["test"], value_set=classes)))
    if len(new):
        given = f"test labels of {listed(new)}, which no other node has"
        problems.add(place, given, "test labels of classes that have training labels")
    if len(parts["val"]) == 0:
        problems.add(place, "no labelled node for validation", "at least one")
