"""Sixty people in three groups, as tables: every kind of column, some labels, and edges that mostly stay in a group."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from g3nn.base.errors import G3NNWarning
from g3nn.cli.fit import fit
from g3nn.graph.features import FeatureTable
from g3nn.graph.tables.edge_table import EdgeColumns, EdgeTable, load_edges
from g3nn.graph.tables.graph import NodeColumns, NodeTable, TableGraph, load_nodes, read_tables
from g3nn.graph.tables.remarks import Remarks

GROUPS = ("art", "law", "tea")
WORDS = {"art": "paint colour brush", "law": "court judge claim", "tea": "leaf water cup"}

Columns = dict[str, list[Any]]


def node_columns(people: range = range(60), labelled: int = 45) -> Columns:
    """The first `labelled` people have a label. Person i is in group i modulo 3, but one label in eleven is wrong:

    with perfect labels, training would go on for very long.
    """
    rng = np.random.default_rng(people.start)
    groups = [GROUPS[i % 3] for i in people]
    return {
        "id": [f"p{i}" for i in people],
        "group": [GROUPS[(i + (i % 11 == 5)) % 3] if i < labelled else None for i in people],
        "age": [round(30 + 5 * (i % 3) + float(rng.normal()), 3) for i in people],
        "member": [bool(i % 2) for i in people],
        "city": ["Rome" if i % 3 == 0 else "Oslo" for i in people],
        "notes": [f"{WORDS[group]} day {i % 5}" for i, group in zip(people, groups, strict=True)],
    }


def edge_columns(people: range = range(60), every: int = 4) -> Columns:
    """Each is linked to the next of the same group, and some to the next of another. The last person is isolated."""
    last = people.stop - 1
    pairs = [(i, i + 3) for i in people if i + 3 < last] + [(i, i + 1) for i in people[::every] if i + 1 < last]
    return {"source": [f"p{i}" for i, _ in pairs], "target": [f"p{j}" for _, j in pairs]}


def write(path: Path, columns: Columns) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            [["" if cell is None else cell for cell in row] for row in zip(*columns.values(), strict=True)]
        )
    return path


def text_file(folder: Path, text: str, name: str = "nodes.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def parquet_file(folder: Path, columns: Columns, name: str = "nodes.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def read_nodes(path: Any, id: str | None, *labels: str, **options: Any) -> NodeTable:
    """A node table as `g3nn fit` reads it; all its problems are one error. Options: those of `NodeColumns`."""
    remarks = Remarks()
    nodes = load_nodes(path, NodeColumns(id, labels, **options), remarks)
    remarks.raise_if_any()
    assert nodes is not None
    return nodes


def read_edges(path: Any, *names: Any, **options: Any) -> EdgeTable:
    """An edge table, likewise. Arguments: those of `EdgeColumns`."""
    remarks = Remarks()
    edges = load_edges(path, EdgeColumns(*names, **options), remarks)
    remarks.raise_if_any()
    assert edges is not None
    return edges


def read_graph(nodes: Any, edges: Any = None, **options: Any) -> TableGraph:
    """What `read_tables` makes of tables, whose notes are in the result. The label is y."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        return read_tables(nodes, edges, **{"label": "y", **options})


def one_column(folder: Path, cells: Sequence[str], **options: Any) -> TableGraph:
    """Nodes with the labels a, b, a, b, ... and one further column x, from a CSV file."""
    path = folder / "nodes.csv"
    return read_graph(write(path, {"y": labels(len(cells)), "x": list(cells)}), **options)


def labels(n: int) -> list[str]:
    return ["ab"[row % 2] for row in range(n)]


def said(graph: TableGraph) -> list[str]:
    """The notes without the name of the table."""
    return [re.sub(r"^.*?(\.csv|\.xlsx|\.parquet|\(data frame\))", "", note).removeprefix(", ") for note in graph.notes]


def matrix(features: FeatureTable) -> np.ndarray:
    return features.matrix.toarray() if sp.issparse(features.matrix) else features.matrix


def fit_people(folder: Path) -> Path:
    """Where `g3nn fit` puts its results for the sixty people."""
    files = {"nodes": write(folder / "nodes.csv", node_columns()), "edges": write(folder / "edges.csv", edge_columns())}
    given: dict[str, Any] = {**files, "id": "id", "label": ["group"], "out": folder / "out"}
    fit(**given, text=["notes"], model="gcn", ensemble=1, device="cpu", as_json=True)
    return folder / "out"
