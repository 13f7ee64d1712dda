"""A task as example tables, such as a data scientist would have: nodes, edges, and the answers kept apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import scipy.sparse as sp

from g3nn.data.folders import check_new_folder, new_folder
from g3nn.errors import Problems
from g3nn.outcomes import Classes
from g3nn.parse import UNKNOWN
from g3nn.task import NodeTask

FILES = ("nodes.parquet", "edges.csv", "answers.parquet")


def export(task: NodeTask, folder: str | Path) -> Path:
    """Write the tables into a new folder.

    nodes.parquet:   id, label (of training and validation nodes only), split (train, val, test or nothing), and one
                     column for each feature: w0, w1, ... if none is negative, otherwise x0, x1, ...
    edges.csv:       source and target, one row per edge.
    answers.parquet: id and label of the test nodes.

    Rows of features that were words present or absent, divided by their number, are written as 0 and 1 again.
    """
    folder, problems = Path(folder), Problems()
    check_new_folder(folder, problems, "export")
    if task.outcome != Classes.name:
        problems.add("task", f"{task.name} with the outcome {task.outcome}", "labels that are classes")
    problems.raise_if_any()
    ids = pa.array([f"paper-{node}" for node in range(task.num_nodes)])
    with new_folder(folder) as draft:
        pa_parquet.write_table(_nodes(task, ids), draft / "nodes.parquet")
        ends = {name: ids.take(pa.array(end)) for name, end in zip(("source", "target"), task.edges, strict=True)}
        _write_edges(pa.table(ends), draft / "edges.csv")
        answers = {"id": ids.take(pa.array(task.test)), "label": pa.array(task.labels[task.test])}
        pa_parquet.write_table(pa.table(answers), draft / "answers.parquet")
    return folder


def _write_edges(edges: pa.Table, path: Path) -> None:
    """Without the quotes that pyarrow would put around every value: people look into example files."""
    with path.open("wb") as file:
        file.write(b"source,target\n")
        pa_csv.write_csv(edges, file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))


def _nodes(task: NodeTask, ids: pa.Array) -> pa.Table:
    split = np.full(task.num_nodes, None, dtype=object)
    for part in ("train", "val", "test"):
        split[getattr(task, part)] = part
    told = np.zeros(task.num_nodes, dtype=bool)
    told[np.concatenate([task.train, task.val])] = True
    labels = pa.array(task.labels, mask=~told | (task.labels == UNKNOWN))
    values = _values(task)
    letter = "x" if values.min(initial=0) < 0 else "w"
    features = {f"{letter}{feature}": values[:, feature] for feature in range(task.num_features)}
    return pa.table({"id": ids, "label": labels, "split": pa.array(split, pa.string()), **features})


def _values(task: NodeTask) -> np.ndarray:
    """(n, d): 0 and 1 if the features of each row are all equal or zero, else as they are."""
    dense = task.features.toarray() if sp.issparse(task.features) else task.features
    present = dense != 0
    equal = np.where(present, dense, dense.max(axis=1, keepdims=True, initial=0)) == dense.max(axis=1, keepdims=True)
    if dense.min(initial=0) >= 0 and equal.all():
        return np.asfortranarray(present.astype(np.uint8))
    return np.asfortranarray(dense)
