"""A task as example tables, like those of a data scientist: nodes, edges, and the test labels in a file apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.base.folders import check_new_folder, new_folder
from g3nn.base.parse import UNKNOWN
from g3nn.graph.outcomes import Classes
from g3nn.graph.task import NodeTask

FILES = ("nodes.parquet", "edges.csv", "answers.parquet")


def export(task: NodeTask, folder: str | Path) -> Path:
    """Write the tables into a new folder.

    nodes.parquet:   id, label (only of training and validation nodes), split (train, val, test or empty), and one
                     column for each feature: w0, w1, ... if none is negative, otherwise x0, x1, ...
    edges.csv:       source and target, one row per edge.
    answers.parquet: id and label of the test nodes.

    Binary features that were divided by the sum of their row are written as 0 and 1.
    """
    folder, problems = Path(folder), Problems()
    check_new_folder(folder, problems, "export")
    if task.outcome != Classes.name:
        problems.add("task", f"{task.name} with the outcome {task.outcome}", "labels that are classes")
    problems.raise_if_any()
    ids = pa.array([f"paper-{node}" for node in range(task.num_nodes)])
    answers = {"id": ids.take(pa.array(task.test)), "label": pa.array(task.labels[task.test])}
    edges = "".join(f"paper-{i},paper-{j}\n" for i, j in task.edges.T.tolist())
    with new_folder(folder) as draft:
        pa_parquet.write_table(_nodes(task, ids), draft / "nodes.parquet")
        (draft / "edges.csv").write_text(f"source,target\n{edges}")
        pa_parquet.write_table(pa.table(answers), draft / "answers.parquet")
    return folder


def _nodes(task: NodeTask, ids: pa.Array) -> pa.Table:
    split = np.full(task.num_nodes, None, dtype=object)
    for part in ("train", "val", "test"):
        split[getattr(task, part)] = part
    visible = np.isin(split, ("train", "val")) & (task.labels != UNKNOWN)
    labels = pa.array(task.labels, mask=~visible)
    values = _values(task)
    letter = "x" if values.min(initial=0) < 0 else "w"
    features = {f"{letter}{feature}": values[:, feature] for feature in range(task.num_features)}
    return pa.table({"id": ids, "label": labels, "split": pa.array(split, pa.string()), **features})


def _values(task: NodeTask) -> np.ndarray:
    """(n, d): 0 and 1 if all features of a row are zero or equal, in every row; otherwise unchanged."""
    dense = task.features.toarray() if sp.issparse(task.features) else task.features
    equal = (dense == 0) | (dense == dense.max(axis=1, keepdims=True))
    words = dense.min(initial=0) >= 0 and equal.all()
    return np.asfortranarray((dense != 0).astype(np.uint8) if words else dense)
