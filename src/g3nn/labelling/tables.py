"""The tables of a project: read without labels, so that there need not be any, and with people's labels put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from g3nn.base.errors import Problems, suggestion
from g3nn.graph.outcomes import Classes
from g3nn.graph.tables.cells import is_text, label_values
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.labels import check_split
from g3nn.graph.tables.remarks import Remarks
from g3nn.labelling.records import ShownColumns

Pair = tuple[int, int]


@dataclass(frozen=True)
class Known:
    """What people have said so far. labels: by row. removed, added: edges that they rejected, and that were missing."""

    labels: Mapping[int, str]
    removed: tuple[Pair, ...] = ()
    added: tuple[Pair, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether a model can be fitted: there must be something to tell apart."""
        return len(set(self.labels.values())) >= 2

    def same_edges(self, other: Known) -> bool:
        return (self.removed, self.added) == (other.removed, other.added)

    def new_labels(self, before: Known) -> dict[int, str]:
        """By row, the labels that were not there before, or were others."""
        return {row: label for row, label in self.labels.items() if before.labels.get(row) != label}


def read_unlabelled(
    nodes: Path, edges: Path, shown: ShownColumns, ignore: Sequence[str], problems: Problems, **options: Any
) -> TableGraph:
    """As `g3nn fit` reads them, but the label column describes nothing and may be missing or empty. Names, pictures and
    links are to look at: no features, unless a name is also named as one. options: of `read_tables`."""
    source = None
    remarks = Remarks()
    with remarks.of_table("nodes"):
        source = Source.open(nodes, "nodes", remarks)
        looked_at = {"title": (shown.title,), "image": (shown.image,), "url": (shown.url,)}
        source.check_roles(looked_at, problems)
    there = set() if source is None else set(source.names)
    seen_only = [shown.label, shown.image, shown.url]
    if shown.title not in {*shown.text, *options.get("categorical", ()), options.get("id")}:
        seen_only.append(shown.title)
    left_out = [name for name in seen_only if name in there and name not in ignore]
    graph = read_tables(
        nodes, edges, text=shown.text, ignore=[*ignore, *left_out], problems=problems, outcome=Classes.name, **options
    )
    assert source is not None
    if shown.label not in there:
        advice = suggestion(shown.label, there)
        remarks, found = Remarks(), f"no column {shown.label!r}"
        remarks.note(str(nodes), found, "a column of labels", "labelling begins from nothing", advice)
        remarks.tell()
        return graph
    # In a CSV file, a class such as 007 stays as it is written.
    labels = source.read(text=[shown.label], only=[shown.label], nulls=graph.nodes.columns.nulls)[shown.label]
    content = graph.nodes.content
    place = content.column_names.index(shown.label)
    return replace(graph, nodes=replace(graph.nodes, content=content.set_column(place, shown.label, labels)))


def with_labels(graph: TableGraph, column: str, known: Known, as_text: bool = False) -> TableGraph:
    """The graph as if these labels had been in its table, and people's edges too. Two classes are needed.

    as_text: classes are called what people see, also if they are numbers."""
    cells = np.full(graph.nodes.num_nodes, None, dtype=object)
    rows = np.fromiter(known.labels, np.int64, len(known.labels))
    cells[rows] = list(known.labels.values())
    content = graph.nodes.content
    there = column in content.column_names
    # Of a table that says so, numbers written as text are text.
    typed = graph.nodes.typed and there and is_text(content[column].type)
    problems = Problems()
    values = label_values(pa.array(cells, pa.large_string()), typed or as_text, classes=True)
    read = Classes.read(values, len(cells), problems, "label", in_table=True)
    problems.raise_if_any()
    assert read is not None
    remarks = Remarks()
    kept, val, test = check_split(graph.nodes.name, read, graph.nodes.split, Classes.name, remarks)
    remarks.raise_if_any()
    columns = graph.nodes.columns
    ignored = tuple(name for name in columns.ignore if name != column)
    columns = replace(columns, labels=(column,), ignore=ignored, outcome=Classes.name)
    nodes = replace(graph.nodes, columns=columns, labels=read)
    graph = replace(graph, nodes=nodes, labels=kept, val=val, test=test)
    return with_edges(graph, known)


def with_edges(graph: TableGraph, known: Known) -> TableGraph:
    """Without the edges that people rejected, in either direction, and with those that were missing, which weigh as
    much as edges do on average."""
    if not known.removed and not known.added:
        return graph
    n = graph.nodes.num_nodes

    def keys(pairs: np.ndarray) -> np.ndarray:
        return np.minimum(*pairs) * n + np.maximum(*pairs)

    gone, new = (np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T for pairs in (known.removed, known.added))
    stays = ~np.isin(keys(graph.edges), keys(gone))
    new = new[:, ~np.isin(keys(new), keys(graph.edges))]
    edges = np.concatenate([graph.edges[:, stays], new], axis=1)
    weights = graph.weights
    if weights is not None:
        weights = np.concatenate([weights[stays], np.full(new.shape[1], weights.mean())])
    return replace(graph, edges=edges, weights=weights)
