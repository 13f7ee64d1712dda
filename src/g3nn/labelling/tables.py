"""The tables of a project: read without labels, which need not be there, with people's labels put in, and compared with
the tables that the project began with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import Problems, counted, refuse, suggestion, warn_caller
from g3nn.base.parse import encode
from g3nn.graph.outcomes import Classes
from g3nn.graph.tables.cells import is_text, label_values
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.labels import check_split
from g3nn.graph.tables.remarks import Remarks, listed
from g3nn.labelling.project import Facts, Project
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
        note = f"{nodes}: no column {shown.label!r}; labelling begins from nothing{'. ' if advice else ''}{advice}"
        warn_caller(note)
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
    remarks = Remarks()
    values = label_values(pa.array(cells, pa.large_string()), typed or as_text, classes=True)
    read = Classes.read(values, len(cells), remarks, "label", in_table=True)
    remarks.raise_if_any()
    assert read is not None
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
    gone, new = (np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T for pairs in (known.removed, known.added))
    there, rejected, missing = (encode(pairs[0], pairs[1], n) for pairs in (graph.edges, gone, new))
    stays, new = ~np.isin(there, rejected), new[:, ~np.isin(missing, there)]
    edges = np.concatenate([graph.edges[:, stays], new], axis=1)
    weights = graph.weights
    if weights is not None:
        weights = np.concatenate([weights[stays], np.full(new.shape[1], weights.mean())])
    relations = graph.relations
    if relations is not None:
        relations = relations.joined(new, graph.directed).among(edges, graph.directed)
    return replace(graph, edges=edges, weights=weights, relations=relations)


def check_unchanged(project: Project, graph: TableGraph, options: Facts) -> None:
    """Tables may change as long as their ids stay; a note says what has changed. Then remember what they are now.

    options: of the command that labels, with the paths of both tables."""
    before, now = project.facts().get("tables"), digest_of(graph, options["nodes"], options["edges"])
    if before is not None:
        check_ids(before, now, sorted({one.node for one in project.current()}), graph.nodes.ids)
        if found := differences(before, now):
            note = f"the tables have changed since they were last used here: {'; '.join(found)}. All answers are kept"
            warn_caller(note)
    kept = {**options, "nodes": str(options["nodes"]), "edges": str(options["edges"])}
    project.remember({"tables": now, "options": kept})


def digest_of(graph: TableGraph, nodes: Path, edges: Path) -> Facts:
    """The two files by their content, and parts of it to say what has changed."""
    content, ids = graph.nodes.content, pc.cast(graph.nodes.ids, pa.large_string())
    return {
        "nodes": _of_file(nodes),
        "edges": _of_file(edges),
        "rows": content.num_rows,
        "pairs": int(graph.edges.shape[1]),
        "ids": _of_array(ids.take(pc.sort_indices(ids))),
        "columns": {name: _of_array(content[name].combine_chunks()) for name in content.column_names},
    }


def differences(before: Facts, now: Facts) -> list[str]:
    """What has changed, in words; nothing if both files are as they were."""
    if (before["nodes"], before["edges"]) == (now["nodes"], now["edges"]):
        return []
    found, old, new = [], before["columns"], now["columns"]
    if before["rows"] != now["rows"]:
        found.append(f"{before['rows']:,} rows became {now['rows']:,}")
    elif before["ids"] != now["ids"]:
        found.append("other ids")
    parts = {
        "new columns": [name for name in new if name not in old],
        "columns that are gone": [name for name in old if name not in new],
        "other values in": [name for name in new if name in old and new[name] != old[name]],
    }
    found += [f"{what} {listed(names)}" for what, names in parts.items() if names]
    if before["edges"] != now["edges"]:
        became = f"{counted(before['pairs'], 'edge')} became {now['pairs']:,}"
        same = before["pairs"] == now["pairs"]
        found.append("as many edges as before, but others or in another order" if same else became)
    return found or ["the same content in other bytes"]


def check_ids(before: Facts, now: Facts, answered: list[str], ids: pa.Array) -> None:
    """Answers are kept by id, so a project goes on only with the ids that it began with."""
    if before["ids"] == now["ids"]:
        return
    there = set(pc.cast(ids, pa.large_string()).to_pylist())
    lost = [id for id in answered if id not in there]
    gone = f"; {counted(len(lost), 'answered id')} no longer there ({listed(lost)})" if lost else ""
    refuse(
        "nodes",
        f"a table that has changed since the project began: {'; '.join(differences(before, now))}{gone}",
        "a table with the same ids",
        "Bring the former table back, or begin another project with another `out=...`. All answers are kept; "
        "`export=...` writes them to a file.",
    )


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_array(values: pa.Array) -> str:
    made = hashlib.sha256(str(values.type).encode())
    for buffer in values.buffers():
        made.update(b"-" if buffer is None else memoryview(buffer))
    return made.hexdigest()[:16]
